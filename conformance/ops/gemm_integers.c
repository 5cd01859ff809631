/* gemm_integers.c: products of integers of every width and layout, of all their numbers. Each is
 * right in every bit: sums wrap. */
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct integer_case {
    hal_type type, type_c; /* F32: dequantised by the epilogue */
    int m, n, k, batch;
    operand_layout a, b, c;
    int alpha, beta;
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
        if (t->type_c == HAL_TYPE_F32) {
            const uint64_t bits = sum & number_mask(sum_type);
            number_put(HAL_TYPE_F32, expected, i, number_value(sum_type, bits) * 0.25);
        } else {
            number_store(t->type_c, expected, i, sum & number_mask(t->type_c));
        }
    }
}

/* A sum as a float, a quarter of it. */
static ops_expression *dequantise(case_run *run, hal_type sum)
{
    hal_ir_builder *b = expression_begin(run);
    const hal_ir_value value = hal_ir_cast(b, HAL_TYPE_F32, hal_ir_input(b, 0, sum));
    hal_ir_output(b, 0, hal_ir_mul(b, value, hal_ir_f32(b, 0.25F)));
    return expression_finish(run, b);
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
    const ops_gemm_options options = {
        .size = sizeof(ops_gemm_options),
        .alpha = t->alpha,
        .beta = t->beta,
        .epilogue = t->type_c == HAL_TYPE_F32 ? dequantise(run, hal_type_of_value(t->type)) : NULL};
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
             "gemm_integers(type=%s,c=%s,m=%d,n=%d,k=%d,batch=%d,a=%s,b=%s,alpha=%d,beta=%d)",
             hal_type_name(t->type), hal_type_name(t->type_c), t->m, t->n, t->k, t->batch,
             layout_name(t->a), layout_name(t->b), t->alpha, t->beta);
    case_covers(list, t->type, CASE_BINDING, "ops gemm portable");
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

void cases_ops_gemm_integers(case_list *list)
{
    static const operand_layout layouts[] = {LAYOUT_PLAIN, LAYOUT_PERMUTED, LAYOUT_STRIDED,
                                             LAYOUT_OFFSET};
    add_bytes(list, HAL_TYPE_I8);
    add_bytes(list, HAL_TYPE_U8);
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
