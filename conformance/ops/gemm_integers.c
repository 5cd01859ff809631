/* gemm_integers.c: products of integers of every width and layout, of all their numbers. Each is
 * right in every bit: sums wrap. */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct integer_case {
    hal_type type, type_c; /* floats: dequantised by the epilogue */
    int m, n, k, batch;
    operand_layout a, b, c;
    int alpha, beta;
    ops_gemm_impl impl;
    bool scaled; /* the epilogue has factors of rows and columns */
} integer_case;

static const int sizes[][4] = {/* m, n, k, batch */
                               {1, 1, 1, 1},    {37, 51, 29, 1},  {1, 67, 300, 1},
                               {65, 2, 33, 1},  {64, 64, 64, 1},  {129, 70, 37, 3},
                               {5, 3, 4099, 1}, {128, 128, 96, 1}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void fill_bits(operand *o, random_state *random)
{
    for (size_t i = 0; i < o->count; i++) {
        number_store(o->type, o->elements, i, random_bits(random, o->type));
    }
}

/* Modulo 2^64, so modulo the power of two of any narrower type. */
static uint64_t element(const operand *o, size_t index)
{
    return (uint64_t)number_signed(o->type, number_load(o->type, o->elements, index));
}

/* Powers of two, so that no product is rounded. */
static double factor_of(int axis, size_t index)
{
    return ldexp(1.0, (int)(index % (axis == 0 ? 5 : 7)) - 3);
}

static float factor(size_t row, size_t column)
{
    return (float)(factor_of(0, row) * factor_of(1, column));
}

static void expect_products(const integer_case *t, const operand *a, const operand *b, operand *c,
                            uint8_t *expected)
{
    const hal_type sum_type = hal_type_of_value(t->type);
    const size_t m = (size_t)t->m, n = (size_t)t->n, k = (size_t)t->k;
    for (size_t i = 0; i < (size_t)t->batch * m * n; i++) {
        const size_t row = i / n, column = i / (m * n) * k * n + i % n;
        uint64_t sum = 0;
        for (size_t step = 0; step < k; step++) {
            sum += element(a, row * k + step) * element(b, column + step * n);
        }
        sum *= (uint64_t)(int64_t)t->alpha;
        sum += t->beta != 0 ? (uint64_t)(int64_t)t->beta * element(c, i) : 0;
        if (hal_type_is_float(t->type_c)) {
            const uint64_t bits = sum & number_mask(sum_type);
            const float scaled = (float)number_value(sum_type, bits) * 0.25F;
            number_put(t->type_c, expected, i,
                       t->scaled ? scaled * factor(row % m, i % n) : scaled);
        } else {
            number_store(t->type_c, expected, i, sum & number_mask(t->type_c));
        }
    }
}

/* A sum as a float, a quarter of it; or that times the factors of inputs 4 and 5. */
static ops_expression *dequantise(case_run *run, hal_type sum, bool scaled)
{
    hal_ir_builder *b = expression_begin(run);
    hal_ir_value value = hal_ir_cast(b, HAL_TYPE_F32, hal_ir_input(b, 0, sum));
    value = hal_ir_mul(b, value, hal_ir_f32(b, 0.25F));
    for (uint32_t i = 1; scaled && i < 4; i++) { /* row, column, batch */
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    for (uint32_t i = 4; scaled && i < 6; i++) {
        value = hal_ir_mul(b, value, hal_ir_input(b, i, HAL_TYPE_F32));
    }
    hal_ir_output(b, 0, value);
    return expression_finish(run, b);
}

/* Factors of a case: of rows and columns, broadcast along the other axis. */
static void create_factors(case_run *run, const integer_case *t, ops_tensor factors[2])
{
    const int64_t shapes[2][2] = {{t->m, 1}, {1, t->n}};
    for (int i = 0; i < 2; i++) {
        operand made = operand_create(run, HAL_TYPE_F32, 2, shapes[i], LAYOUT_PLAIN);
        for (size_t j = 0; j < made.count; j++) {
            number_put(HAL_TYPE_F32, made.elements, j, factor_of(i, j));
        }
        operand_upload(run, &made);
        factors[i] = made.tensor;
    }
}

static void run_integers(case_run *run, const void *parameters)
{
    const integer_case *t = parameters;
    const uint32_t rank = t->batch > 1 ? 3 : 2;
    const int64_t shapes[3][3] = {
        {t->batch, t->m, t->k}, {t->batch, t->k, t->n}, {t->batch, t->m, t->n}};
    random_state random = {run->seed};
    case_claim_storage(run, t->type);
    case_claim_storage(run, t->type_c);
    case_claim_arithmetic(run, t->type);
    operand a = operand_create(run, t->type, rank, shapes[0] + 3 - rank, t->a);
    operand b = operand_create(run, t->type, rank, shapes[1] + 3 - rank, t->b);
    operand c = operand_create(run, t->type_c, rank, shapes[2] + 3 - rank, t->c);
    fill_bits(&a, &random);
    fill_bits(&b, &random);
    if (t->beta != 0) {
        fill_bits(&c, &random);
    }
    uint8_t *expected = case_allocate(run, c.count, 8);
    expect_products(t, &a, &b, &c, expected);
    ops_tensor factors[2];
    if (t->impl == OPS_GEMM_NATIVE) {
        case_claim_or_rewrite(run, false, "a native product of this kind");
    }
    if (t->scaled) {
        create_factors(run, t, factors);
    }
    const ops_gemm_options options = {
        .size = sizeof(ops_gemm_options),
        .impl = t->impl,
        .alpha = t->alpha,
        .beta = t->beta,
        .epilogue = hal_type_is_float(t->type_c)
                        ? dequantise(run, hal_type_of_value(t->type), t->scaled)
                        : NULL,
        .inputs = factors,
        .input_count = t->scaled ? 2 : 0};
    operand_upload(run, &a);
    operand_upload(run, &b);
    if (t->beta != 0) {
        operand_upload(run, &c);
    } else {
        operand_poison(run, &c);
    }
    case_ok(run, ops_gemm(run->ops, &options, &a.tensor, &b.tensor, &c.tensor), "ops_gemm");
    operand_download(run, &c, "C");
    operand_check_bits(run, &c, expected, false, "C");
}

static void add_integers(case_list *list, const integer_case *t)
{
    case_add(list, run_integers, t, sizeof *t,
             "gemm_integers(type=%s,c=%s,m=%d,n=%d,k=%d,batch=%d,a=%s,b=%s,alpha=%d,beta=%d%s%s)",
             hal_type_name(t->type), hal_type_name(t->type_c), t->m, t->n, t->k, t->batch,
             layout_name(t->a), layout_name(t->b), t->alpha, t->beta, t->scaled ? ",scaled" : "",
             t->impl == OPS_GEMM_NATIVE ? ",impl=native" : "");
    case_covers(list, t->type, CASE_BINDING, "ops gemm %s",
                t->impl == OPS_GEMM_NATIVE ? "native" : "portable");
}

/* Bytes, of which units add four products at a time: sums that C holds, or floats of them. */
static void add_bytes(case_list *list, hal_type type)
{
    static const struct {
        int m, n, k, batch;
        operand_layout a, b;
    } shapes[] = {{6, 6, 1000, 1, LAYOUT_PLAIN, LAYOUT_PERMUTED},
                  {70, 45, 131, 1, LAYOUT_PERMUTED, LAYOUT_PLAIN},
                  {33, 99, 2113, 1, LAYOUT_PLAIN, LAYOUT_PLAIN},
                  {45, 52, 67, 3, LAYOUT_PLAIN, LAYOUT_PLAIN},
                  {65, 33, 200, 1, LAYOUT_PERMUTED, LAYOUT_PERMUTED}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
        const bool is_odd = s % 2 == 1;
        integer_case tested = {.type = type,
                               .type_c = hal_type_of_value(type),
                               .m = shapes[s].m,
                               .n = shapes[s].n,
                               .k = shapes[s].k,
                               .batch = shapes[s].batch,
                               .a = shapes[s].a,
                               .b = shapes[s].b,
                               .c = LAYOUT_PLAIN,
                               .alpha = is_odd ? (hal_type_is_signed(type) ? -7 : 7) : 1,
                               .beta = is_odd ? 5 : 0};
        add_integers(list, &tested);
        tested.type_c = HAL_TYPE_F32;
        tested.beta = 0;
        add_integers(list, &tested);
    }
}

/* Kernels of plugins, in all layouts of A and B: whole and odd lines, sums of 32 bits that wrap,
 * results of all types, and a k that groups may share. */
static void add_native(case_list *list, hal_type type)
{
    static const struct {
        int m, n, k, batch;
    } shapes[] = {{144, 272, 400, 1},
                  {128, 96, 4096, 1},
                  {40, 2064, 96, 1},
                  {131, 67, 259, 1},
                  {96, 160, 144, 3}};
    const hal_type results[] = {hal_type_of_value(type), HAL_TYPE_F32, HAL_TYPE_BF16, HAL_TYPE_F16};
    const int step = type == HAL_TYPE_I8 ? 1 : 3;
    for (int i = 0; i < 4 * (int)(sizeof shapes / sizeof *shapes); i += step) {
        const int s = i / 4;
        /* permuted, the batch would be the fastest axis */
        const bool is_batch = shapes[s].batch > 1;
        integer_case tested = {.type = type,
                               .type_c = results[(i + s) % 4],
                               .m = shapes[s].m,
                               .n = shapes[s].n,
                               .k = shapes[s].k,
                               .batch = shapes[s].batch,
                               .a = i % 2 != 0 && !is_batch ? LAYOUT_PERMUTED : LAYOUT_PLAIN,
                               .b = i / 2 % 2 != 0 && !is_batch ? LAYOUT_PERMUTED : LAYOUT_PLAIN,
                               .c = LAYOUT_PLAIN,
                               .alpha = s % 2 != 0 ? 3 : 1,
                               .impl = OPS_GEMM_NATIVE};
        tested.scaled = i % 3 == 0 && hal_type_is_float(tested.type_c);
        add_integers(list, &tested);
        if (is_batch && i % 4 != 0) {
            continue; /* the layouts of the first one */
        }
        tested.type_c = results[0];
        tested.scaled = false;
        tested.beta = 5;
        add_integers(list, &tested);
    }
}

void cases_ops_gemm_integers(case_list *list)
{
    static const operand_layout layouts[] = {LAYOUT_PLAIN, LAYOUT_PERMUTED, LAYOUT_STRIDED,
                                             LAYOUT_OFFSET};
    add_bytes(list, HAL_TYPE_I8);
    add_bytes(list, HAL_TYPE_U8);
    add_native(list, HAL_TYPE_I8);
    add_native(list, HAL_TYPE_U8);
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (!hal_type_is_integer(type)) {
            continue;
        }
        const bool is_narrow = hal_type_of_value(type) != type;
        const bool is_common = type == HAL_TYPE_I8 || type == HAL_TYPE_U8 || type == HAL_TYPE_I32 ||
                               type == HAL_TYPE_I64;
        for (int s = is_common ? 0 : 1; s < SIZES; s += is_common ? 1 : 2) {
            integer_case tested = {.type = type,
                                   .type_c = s % 2 == 0 ? hal_type_of_value(type) : type,
                                   .m = sizes[s][0],
                                   .n = sizes[s][1],
                                   .k = sizes[s][2],
                                   .batch = sizes[s][3],
                                   .a = sizes[s][3] > 1 ? LAYOUT_PLAIN : layouts[s % 4],
                                   .b = sizes[s][3] > 1 ? LAYOUT_PLAIN : layouts[s / 2 % 4],
                                   .c = s == 1 ? LAYOUT_STRIDED : LAYOUT_PLAIN,
                                   .alpha = s == 3 ? (hal_type_is_signed(type) ? -3 : 3) : 1,
                                   .beta = s == 3 || s == 5 ? 2 : 0};
            add_integers(list, &tested);
            if (s == 1 && is_narrow) {
                tested.type_c = HAL_TYPE_F32;
                add_integers(list, &tested);
            }
        }
    }
}
