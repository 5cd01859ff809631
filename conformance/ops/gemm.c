/* gemm.c: matrix products through both implementations. Each case runs twice: on small whole
 * numbers, whose result has to be right in every bit, and on random ones, within the bound of
 * ops/gemm.h. There is NaN around the matrices and between their rows, and in C where beta is 0
 * (promise 16). */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/matrix.h"

typedef struct shape {
    int m, n, k;
} shape;

static const shape shapes[] = {{1, 1, 1},     {2, 3, 4},     {1, 65, 33},   {65, 1, 33},
                               {33, 65, 127}, {7, 9, 300},   {16, 16, 16},  {17, 15, 33},
                               {64, 64, 64},  {63, 129, 31}, {129, 127, 5}, {128, 128, 128},
                               {100, 3, 257}, {3, 100, 257}, {1, 1, 513},   {255, 66, 17},
                               {1, 256, 256}, {64, 32, 32},  {64, 100, 90}, {500, 2, 130}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], FEW_SHAPES = 6 };

static const case_size product_sizes[] = {
    CASE_SIZE(product, m, "m", 0, 1),
    CASE_SIZE(product, n, "n", 0, 1),
    CASE_SIZE(product, k, "k", 0, 1),
    CASE_SIZE(product, batch, "batch", 0, 1),
    CASE_SIZE(product, padding, "padding", 0, 0),
    CASE_SIZE(product, transpose_a, "ta", 0, 0),
    CASE_SIZE(product, transpose_b, "tb", 0, 0),
    CASE_SIZE(product, transpose_c, "tc", 0, 0),
    CASE_SIZE(product, shared_a, "one_a", 0, 0),
    CASE_SIZE(product, shared_b, "one_b", 0, 0),
};

static void run_product(case_run *run, const void *parameters)
{
    const product *tested = parameters;
    if (tested->precision != HAL_GEMM_EXACT) { /* which computes F64 by integers */
        case_claim_storage(run, tested->type);
        case_claim_arithmetic(run, tested->type);
    }
    if (tested->impl == OPS_GEMM_NATIVE) {
        case_claim_or_rewrite(run, false, "a native product of this kind");
    }
    product_run(run, tested, true);
    product_run(run, tested, false);
}

static const char *impl_name(ops_gemm_impl impl)
{
    return impl == OPS_GEMM_NATIVE ? "native" : "portable";
}

static void print_product(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const product *tested = parameters;
    char more[128] = "";
    size_t used = 0;
    const struct {
        const char *name;
        double value, usual;
    } extras[] = {{"alpha", tested->alpha, 1.0},    {"beta", tested->beta, 0.0},
                  {"batch", tested->batch, 1.0},    {"one_a", tested->shared_a, 0.0},
                  {"one_b", tested->shared_b, 0.0}, {"tc", tested->transpose_c, 0.0},
                  {"padding", tested->padding, 0.0}};
    for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++) {
        if (extras[i].value != extras[i].usual) {
            used += (size_t)snprintf(more + used, sizeof more - used, ",%s=%g", extras[i].name,
                                     extras[i].value);
        }
    }
    if (tested->epilogue != EPILOGUE_NONE) {
        used += (size_t)snprintf(more + used, sizeof more - used, ",epilogue=%s",
                                 product_epilogue_name(tested->epilogue));
    }
    if (tested->type_c != tested->type) {
        used += (size_t)snprintf(more + used, sizeof more - used, ",c=%s",
                                 hal_type_name(tested->type_c));
    }
    if (tested->precision != HAL_GEMM_STRICT) {
        static const char *const names[] = {
            [HAL_GEMM_ACCURATE] = "accurate", [HAL_GEMM_FAST] = "fast", [HAL_GEMM_EXACT] = "exact"};
        snprintf(more + used, sizeof more - used, ",precision=%s", names[tested->precision]);
    }
    snprintf(name, bytes, "gemm(type=%s,m=%d,n=%d,k=%d,ta=%d,tb=%d%s,impl=%s,seed=%llu)",
             hal_type_name(tested->type), tested->m, tested->n, tested->k, tested->transpose_a,
             tested->transpose_b, more, impl_name(tested->impl), (unsigned long long)seed);
}

static const case_family products = {.function = run_product,
                                     .bytes = sizeof(product),
                                     .sizes = product_sizes,
                                     .size_count = sizeof product_sizes / sizeof product_sizes[0],
                                     .print = print_product};

static void add_product(case_list *list, const product *tested)
{
    case_add_member(list, &products, tested);
    case_covers(list, tested->type, CASE_BINDING, "ops gemm %s", impl_name(tested->impl));
}

/* Each differs from the plain product in one property. */
static void add_variants(case_list *list, hal_type type, ops_gemm_impl impl)
{
    const product plain = {.type = type,
                           .type_c = type,
                           .m = 37,
                           .n = 51,
                           .k = 29,
                           .alpha = 1.0,
                           .batch = 1,
                           .impl = impl};
    static const double scales[][2] = {{2.0, 0.0}, {1.0, 1.0}, {-0.5, 2.0}, {0.0, 1.0}, {0.0, 0.0}};
    product tested = plain;
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        tested.alpha = scales[i][0];
        tested.beta = scales[i][1];
        add_product(list, &tested);
    }
    for (int i = 1; i < 4; i++) {
        tested = plain;
        tested.padding = 3 * i + (i == 2);
        tested.transpose_a = i == 2;
        tested.transpose_b = i >= 2;
        tested.transpose_c = i == 3;
        add_product(list, &tested);
    }
    for (int i = 0; i < 4; i++) {
        tested = plain;
        tested.batch = 3;
        tested.shared_a = i == 1;
        tested.shared_b = i == 2;
        tested.beta = i == 3 ? 1.0 : 0.0;
        tested.padding = i == 3 ? 2 : 0;
        add_product(list, &tested);
    }
    /* Each way to store A and B, with C read and with further inputs. One of them is enough for the
     * portable kernel, which some devices compile for long. */
    for (int i = impl == OPS_GEMM_NATIVE ? 0 : 3; i < 4; i++) {
        tested = plain;
        tested.m = 129;
        tested.n = 67;
        tested.transpose_a = i % 2;
        tested.transpose_b = i / 2;
        tested.alpha = -1.0;
        tested.beta = 0.5;
        add_product(list, &tested);
        tested.epilogue = EPILOGUE_TWO_INPUTS;
        add_product(list, &tested);
    }
    for (int e = EPILOGUE_BIAS_RELU; e < EPILOGUE_COUNT; e++) {
        tested = plain;
        tested.epilogue = (product_epilogue)e;
        tested.batch = e == EPILOGUE_INDICES ? 2 : 1;
        add_product(list, &tested);
        tested.beta = 0.5;
        tested.m = 65;
        tested.k = 200;
        add_product(list, &tested);
    }
    tested = plain;
    tested.k = 0;
    tested.beta = 2.0;
    add_product(list, &tested);
    if (hal_type_is_narrow_float(type)) {
        tested = plain;
        tested.type_c = HAL_TYPE_F32;
        add_product(list, &tested);
    }
}

/* Without a product, C = beta C in every bit: with alpha = 0 A and B, which hold NaN, are not read,
 * and with k = 0 alpha plays no part. */
typedef struct scale_case {
    hal_type type;
    ops_gemm_impl impl;
    int k;
    double alpha, beta;
} scale_case;

static void run_scale(case_run *run, const void *parameters)
{
    const scale_case *tested = parameters;
    static const double corners[] = {0.0, -0.0, 1.0, -3.0, (double)INFINITY, -(double)INFINITY};
    enum { M = 33, N = 20, CORNERS = sizeof corners / sizeof corners[0] };
    const int64_t a_shape[2] = {M, tested->k}, b_shape[2] = {tested->k, N}, c_shape[2] = {M, N};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    uint8_t *expected = case_allocate(run, M * N, 8);
    operand a = operand_create(run, tested->type, 2, a_shape, LAYOUT_PLAIN);
    operand b = operand_create(run, tested->type, 2, b_shape, LAYOUT_PLAIN);
    operand c = operand_create(run, tested->type, 2, c_shape, LAYOUT_STRIDED);
    for (size_t i = 0; i < M * N; i++) {
        const double value = corners[i % CORNERS];
        number_put(tested->type, c.elements, i, value);
        number_put(tested->type, expected, i, tested->beta == 0.0 ? 0.0 : tested->beta * value);
    }
    const ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                      .alpha = tested->alpha,
                                      .beta = tested->beta,
                                      .impl = tested->impl};
    operand_poison(run, &a);
    operand_poison(run, &b);
    operand_upload(run, &c);
    case_ok(run, ops_gemm(run->ops, &options, &a.tensor, &b.tensor, &c.tensor), "ops_gemm");
    operand_download(run, &c, "C");
    operand_check_bits(run, &c, expected, true, "C");
}

static void add_scales(case_list *list, hal_type type)
{
    static const double numbers[][3] = {
        {0, INFINITY, -2.0}, {0, NAN, 1.0}, {0, 1.0, 0.0}, {25, 0.0, 1.0}, {25, 0.0, 0.0}};
    for (size_t i = 0; i < 2 * sizeof numbers / sizeof numbers[0]; i++) {
        const double *n = numbers[i / 2];
        const scale_case tested = {.type = type,
                                   .impl = i % 2 != 0 ? OPS_GEMM_NATIVE : OPS_GEMM_PORTABLE,
                                   .k = (int)n[0],
                                   .alpha = n[1],
                                   .beta = n[2]};
        case_add(list, run_scale, &tested, sizeof tested,
                 "gemm(type=%s,scale,k=%d,alpha=%g,beta=%g,impl=%s)", hal_type_name(type), tested.k,
                 tested.alpha, tested.beta, impl_name(tested.impl));
    }
}

/* The classes of precision that may use matrix units, whole and ragged in their tiles. */
static void add_classes(case_list *list, hal_type type, ops_gemm_impl impl)
{
    static const shape sizes[] = {{128, 256, 128}, {136, 264, 72},  {200, 72, 104},
                                  {65, 66, 67},    {263, 261, 131}, {264, 136, 456}};
    const int size_count = impl == OPS_GEMM_NATIVE ? 6 : 5;
    for (uint32_t precision = HAL_GEMM_ACCURATE; precision <= HAL_GEMM_FAST; precision++) {
        for (int s = 0; s < 4 * size_count; s++) {
            const product tested = {.type = type,
                                    .type_c = type,
                                    .m = sizes[s / 4].m,
                                    .n = sizes[s / 4].n,
                                    .k = sizes[s / 4].k,
                                    .transpose_a = s % 2 != 0,
                                    .transpose_b = s / 2 % 2 != 0,
                                    .alpha = 1.0,
                                    .beta = s % 4 == 3 ? 0.5 : 0.0,
                                    .batch = s / 4 == 1 ? 2 : 1,
                                    .epilogue = s % 4 == 2 ? EPILOGUE_INDICES : EPILOGUE_NONE,
                                    .impl = impl,
                                    .precision = precision};
            add_product(list, &tested);
        }
    }
}

/* The class EXACT: layouts, batches and factors, with few steps of k and with more. */
static void add_exact(case_list *list, ops_gemm_impl impl)
{
    static const double scales[][2] = {{1.0, 0.0}, {-0.5, 2.0}, {1.0, 1.0}, {0.0, 0.5}, {3.0, 0.0}};
    for (int i = 0; i < 16; i++) {
        const double *scale = scales[i % 5];
        const product tested = {.type = HAL_TYPE_F64,
                                .type_c = HAL_TYPE_F64,
                                .m = i == 15 ? 1 : 37,
                                .n = i == 15 ? 1 : 51,
                                .k = i == 15      ? 16500
                                     : i % 3 == 0 ? 9
                                                  : 70,
                                .transpose_a = i % 2 != 0,
                                .transpose_b = i / 2 % 2 != 0,
                                .transpose_c = i / 4 % 2 != 0,
                                .padding = i % 3,
                                .alpha = scale[0],
                                .beta = scale[1],
                                .batch = i > 8 && i < 15 ? 3 : 1,
                                .shared_a = i == 10 || i == 11,
                                .shared_b = i == 12 || i == 13,
                                .impl = impl,
                                .precision = HAL_GEMM_EXACT};
        add_product(list, &tested);
    }
}

/* What a native implementation on matrix units may get wrong apart from sizes: scales, batches that
 * share an operand, a wider C, and further inputs. */
static void add_native_classes(case_list *list, hal_type type)
{
    add_classes(list, type, OPS_GEMM_NATIVE);
    for (int i = 0; i < 8; i++) {
        product tested = {.type = type,
                          .type_c = i == 3 || i == 4 ? HAL_TYPE_F32 : type,
                          .m = 136,
                          .n = 200,
                          .k = 200,
                          .alpha = i == 0 ? -2.0 : 1.0,
                          .beta = i == 0 || i == 4 ? 0.5 : 0.0,
                          .batch = i == 1 || i == 2 ? 3 : 1,
                          .shared_a = i == 1,
                          .shared_b = i == 2,
                          .padding = i == 3 ? 8 : 0,
                          .epilogue = i == 5 ? EPILOGUE_BIAS_RELU : EPILOGUE_NONE,
                          .impl = OPS_GEMM_NATIVE,
                          .precision = i % 2 != 0 ? HAL_GEMM_FAST : HAL_GEMM_ACCURATE};
        if (i == 6) {
            tested.epilogue = EPILOGUE_TWO_INPUTS;
            tested.batch = 2;
        }
        if (i == 7) {
            tested.epilogue = EPILOGUE_RESIDUAL;
        }
        add_product(list, &tested);
    }
}

/* Few elements and a long k: products that devices compute in parts of k, the first one on all but
 * processors, the others on large ones. */
static void add_long(case_list *list)
{
    const product plain = {.type = HAL_TYPE_F32,
                           .type_c = HAL_TYPE_F32,
                           .m = 4,
                           .n = 4,
                           .k = 200000,
                           .transpose_a = 1,
                           .alpha = 1.0,
                           .batch = 1,
                           .impl = OPS_GEMM_PORTABLE};
    product tested = plain;
    add_product(list, &tested);
    tested.m = 9;
    tested.n = 15;
    tested.k = 40003;
    tested.beta = 0.5;
    tested.epilogue = EPILOGUE_INDICES;
    add_product(list, &tested);
    tested.m = 40;
    tested.n = 36;
    tested.k = 16500;
    tested.beta = 0.0;
    tested.epilogue = EPILOGUE_NONE;
    add_product(list, &tested);
    /* More steps than loops may have together on some devices, also in a general kernel. */
    tested.m = 64;
    tested.n = 27;
    tested.k = 70000;
    tested.transpose_a = 0;
    add_product(list, &tested);
    tested.transpose_a = 1;
    /* More steps than a loop may have on some devices, of a batch with an epilogue. */
    tested.m = 5;
    tested.n = 3;
    tested.k = 70001;
    tested.batch = 3;
    tested.beta = 0.5;
    tested.epilogue = EPILOGUE_INDICES;
    add_product(list, &tested);
    tested = plain;
    tested.m = tested.n = 64;
    tested.k = 2112;
    tested.precision = HAL_GEMM_ACCURATE;
    add_product(list, &tested);
    tested.type = tested.type_c = HAL_TYPE_BF16;
    tested.precision = HAL_GEMM_FAST;
    tested.transpose_a = 0;
    add_product(list, &tested);
}

static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t a_shape[2] = {5, 7}, b_shape[2] = {7, 3}, c_shape[2] = {5, 3}, odd[2] = {6, 3};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    ops_tensor a = case_tensor(run, HAL_TYPE_F32, 2, a_shape);
    ops_tensor b = case_tensor(run, HAL_TYPE_F32, 2, b_shape);
    ops_tensor c = case_tensor(run, HAL_TYPE_F32, 2, c_shape);
    ops_tensor unfit = case_tensor(run, HAL_TYPE_F32, 2, odd);
    ops_tensor i = case_tensor(run, HAL_TYPE_I32, 2, b_shape);
    case_expect(run, ops_gemm(run->ops, NULL, &a, &a, &c), wrong, NULL, "5x7 times 5x7");
    case_expect(run, ops_gemm(run->ops, NULL, &a, &b, &unfit), wrong, NULL, "a C of 6 rows");
    case_check(run, ops_gemm(run->ops, NULL, &a, &i, &c) != HAL_OK, "f32 times i32 was taken");
    case_expect(run, ops_gemm(run->ops, NULL, NULL, &b, &c), wrong, NULL, "a null A");
    case_expect(run, ops_gemm(NULL, NULL, &a, &b, &c), wrong, NULL, "a null context");
    ops_tensor inside = a;
    inside.shape[1] = 3;
    case_expect(run, ops_gemm(run->ops, NULL, &a, &b, &inside), wrong, NULL, "a C that overlaps A");
    ops_gemm_options options = {.size = sizeof(ops_gemm_options), .alpha = 1.0, .precision = 99};
    case_check(run, ops_gemm(run->ops, &options, &a, &b, &c) != HAL_OK,
               "an unknown precision was accepted");
    options.precision = HAL_GEMM_STRICT;
    options.impl = (ops_gemm_impl)9;
    case_check(run, ops_gemm(run->ops, &options, &a, &b, &c) != HAL_OK,
               "an unknown implementation was accepted");
}

void cases_ops_gemm(case_list *list)
{
    static const ops_gemm_impl impls[] = {OPS_GEMM_PORTABLE, OPS_GEMM_NATIVE};
    for (int d = 0; d < 2; d++) {
        for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
            if (!hal_type_is_float(type)) {
                continue;
            }
            const int count = type == HAL_TYPE_F32 ? (int)SHAPES : (int)FEW_SHAPES;
            for (int s = 0; s < count * 4; s++) {
                const product tested = {.type = type,
                                        .type_c = type,
                                        .m = shapes[s / 4].m,
                                        .n = shapes[s / 4].n,
                                        .k = shapes[s / 4].k,
                                        .transpose_a = s % 2 != 0,
                                        .transpose_b = s / 2 % 2 != 0,
                                        .alpha = 1.0,
                                        .batch = 1,
                                        .impl = impls[d]};
                add_product(list, &tested);
            }
            add_variants(list, type, impls[d]);
        }
    }
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (hal_type_is_float(type)) {
            add_scales(list, type);
        }
    }
    case_add(list, run_refusals, NULL, 0, "ops/refuses(gemm)");
}

void cases_ops_gemm_classes(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (hal_type_is_float(type)) {
            add_classes(list, type, OPS_GEMM_PORTABLE);
        }
    }
    add_exact(list, OPS_GEMM_PORTABLE);
}

void cases_ops_gemm_native_classes(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (hal_type_is_narrow_float(type) || type == HAL_TYPE_F32) {
            add_native_classes(list, type);
        }
    }
    add_exact(list, OPS_GEMM_NATIVE);
}

void cases_ops_gemm_long(case_list *list)
{
    add_long(list);
    list->level = CASE_LEVEL_STRESS;
    product longest = {.type = HAL_TYPE_F32,
                       .type_c = HAL_TYPE_F32,
                       .m = 20,
                       .n = 20,
                       .k = 1048576,
                       .alpha = 1.0,
                       .batch = 1,
                       .impl = OPS_GEMM_PORTABLE};
    add_product(list, &longest);
    longest.m = longest.n = 33;
    longest.k = 1048561;
    longest.transpose_b = true;
    add_product(list, &longest);
}
