/* matrix.c: one matrix product on the device and in long double on the host. */
#include "ops/matrix.h"

#include <math.h>
#include <string.h>

#define MAX_INPUTS 2

/* A batch of matrices in a zone: element (b, i, j) at b * steps[0] + i * steps[1] + j * steps[2];
 * memory between elements holds the canary. */
typedef struct matrix {
    hal_type type;
    int batch, rows, columns;
    int64_t steps[3];
    size_t memory_count;
    uint8_t *memory;
    red_zone zone;
    ops_tensor tensor;
} matrix;

typedef struct matrices {
    matrix a, b, c, inputs[MAX_INPUTS];
    uint32_t input_count;
    long double *expected;
    double *bounds;
} matrices;

static void make_matrix(case_run *run, matrix *made, hal_type type, int batch, int rows,
                        int columns, bool transposed, int padding)
{
    const int64_t inner = transposed ? rows : columns, outer = transposed ? columns : rows;
    const int64_t leading = (inner > 0 ? inner : 1) + padding;
    made->type = type;
    made->batch = batch;
    made->rows = rows;
    made->columns = columns;
    made->steps[0] = leading * outer + padding;
    made->steps[1] = transposed ? 1 : leading;
    made->steps[2] = transposed ? leading : 1;
    made->memory_count = (size_t)(made->steps[0] * batch);
    made->memory = case_allocate(run, made->memory_count + 1, hal_type_size(type));
    canary_fill(made->memory, (made->memory_count + 1) * hal_type_size(type));
}

static size_t place_of(const matrix *m, int b, int i, int j)
{
    return (size_t)(b * m->steps[0] + i * m->steps[1] + j * m->steps[2]);
}

static void fill_matrix(matrix *filled, random_state *random, bool whole)
{
    for (int b = 0; b < filled->batch; b++) {
        for (int i = 0; i < filled->rows; i++) {
            for (int j = 0; j < filled->columns; j++) {
                const double value = whole ? (double)random_below(random, 5) - 2.0
                                           : random_between(random, -1.0, 1.0);
                number_put(filled->type, filled->memory, place_of(filled, b, i, j), value);
            }
        }
    }
}

static void upload_matrix(case_run *run, matrix *uploaded, int rank)
{
    const uint32_t size = hal_type_size(uploaded->type);
    const int64_t lengths[3] = {uploaded->batch, uploaded->rows, uploaded->columns};
    ops_tensor *tensor = &uploaded->tensor;
    uploaded->zone = zone_create(run, uploaded->memory_count * size, uploaded->memory);
    *tensor = (ops_tensor){.buffer = uploaded->zone.buffer,
                           .type = uploaded->type,
                           .rank = (uint32_t)rank,
                           .offset = (int64_t)(uploaded->zone.offset / size)};
    for (int d = 0; d < rank; d++) {
        tensor->shape[d] = lengths[3 - rank + d];
        tensor->stride[d] = uploaded->steps[3 - rank + d];
    }
}

static void make_inputs(case_run *run, const product *tested, random_state *random, bool whole,
                        matrices *made)
{
    static const uint32_t counts[EPILOGUE_COUNT] = {0, 1, 0, 2, 2};
    made->input_count = counts[tested->epilogue];
    for (uint32_t i = 0; i < made->input_count; i++) {
        const bool residual = tested->epilogue == EPILOGUE_RESIDUAL;
        const bool bias = tested->epilogue == EPILOGUE_BIAS_RELU || (residual && i == 0);
        const int rows = bias ? 1 : tested->m;
        const int columns = !bias && !residual && i == 1 ? 1 : tested->n;
        make_matrix(run, &made->inputs[i], residual ? tested->type : HAL_TYPE_F32, 1, rows, columns,
                    false, 0);
        fill_matrix(&made->inputs[i], random, whole);
        upload_matrix(run, &made->inputs[i], 2);
    }
}

static void make_matrices(case_run *run, const product *tested, bool whole, matrices *made)
{
    const size_t count = (size_t)tested->batch * (size_t)tested->m * (size_t)tested->n;
    random_state random = {run->seed + whole};
    const int rank = tested->batch > 1 ? 3 : 2;
    made->expected = case_allocate(run, count, sizeof *made->expected);
    made->bounds = case_allocate(run, count, sizeof *made->bounds);
    make_matrix(run, &made->a, tested->type, tested->shared_a ? 1 : tested->batch, tested->m,
                tested->k, tested->transpose_a, tested->padding);
    make_matrix(run, &made->b, tested->type, tested->shared_b ? 1 : tested->batch, tested->k,
                tested->n, tested->transpose_b, tested->padding);
    make_matrix(run, &made->c, tested->type_c, tested->batch, tested->m, tested->n,
                tested->transpose_c, tested->padding);
    fill_matrix(&made->a, &random, whole);
    fill_matrix(&made->b, &random, whole);
    if (tested->beta != 0.0) {
        fill_matrix(&made->c, &random, whole);
    }
    upload_matrix(run, &made->a, tested->shared_a ? 2 : rank);
    upload_matrix(run, &made->b, tested->shared_b ? 2 : rank);
    upload_matrix(run, &made->c, rank);
    make_inputs(run, tested, &random, whole, made);
}

static ops_expression *make_epilogue(case_run *run, const product *tested)
{
    const hal_type type = hal_type_of_value(tested->type);
    hal_ir_builder *b = expression_begin(run);
    hal_ir_value value = hal_ir_input(b, 0, type);
    const hal_ir_value row = hal_ir_input(b, 1, HAL_TYPE_U32);
    const hal_ir_value column = hal_ir_input(b, 2, HAL_TYPE_U32);
    const hal_ir_value batch = hal_ir_input(b, 3, HAL_TYPE_U32);
    if (tested->epilogue == EPILOGUE_INDICES) {
        const hal_ir_value sum =
            hal_ir_add(b, hal_ir_add(b, row, hal_ir_mul(b, column, hal_ir_u32(b, 2))),
                       hal_ir_mul(b, batch, hal_ir_u32(b, 4)));
        value = hal_ir_add(b, value, hal_ir_cast(b, type, sum));
    } else {
        hal_ir_value inputs[MAX_INPUTS];
        const uint32_t count = tested->epilogue == EPILOGUE_BIAS_RELU ? 1 : 2;
        for (uint32_t i = 0; i < count; i++) {
            const bool residual = tested->epilogue == EPILOGUE_RESIDUAL;
            inputs[i] = hal_ir_input(b, 4 + i, residual ? type : HAL_TYPE_F32);
            inputs[i] =
                hal_ir_type_of(b, inputs[i]) == type ? inputs[i] : hal_ir_cast(b, type, inputs[i]);
        }
        value = tested->epilogue == EPILOGUE_RESIDUAL
                    ? hal_ir_add(b, hal_ir_add(b, value, inputs[0]), inputs[1])
                : count == 1 ? ops_unary_value(b, OPS_RELU, hal_ir_add(b, value, inputs[0]))
                             : hal_ir_sub(b, hal_ir_mul(b, value, inputs[0]), inputs[1]);
    }
    hal_ir_output(b, 0, value);
    return expression_finish(run, b);
}

static void multiply(case_run *run, const product *tested, const matrices *made)
{
    ops_tensor inputs[MAX_INPUTS];
    for (uint32_t i = 0; i < made->input_count; i++) {
        inputs[i] = made->inputs[i].tensor;
    }
    const ops_gemm_options options = {
        .size = sizeof(ops_gemm_options),
        .alpha = tested->alpha,
        .precision = tested->precision,
        .beta = tested->beta,
        .impl = tested->impl,
        .epilogue = tested->epilogue != EPILOGUE_NONE ? make_epilogue(run, tested) : NULL,
        .inputs = inputs,
        .input_count = made->input_count};
    case_ok(run, ops_gemm(run->ops, &options, &made->a.tensor, &made->b.tensor, &made->c.tensor),
            "ops_gemm");
}

/* An element; a matrix with one row, column or batch has it for all of them. */
static double value_of(const matrix *m, int b, int i, int j)
{
    return number_get(
        m->type, m->memory,
        place_of(m, m->batch == 1 ? 0 : b, m->rows == 1 ? 0 : i, m->columns == 1 ? 0 : j));
}

static long double apply_epilogue(const product *tested, const matrices *made, int b, int i, int j,
                                  long double value, long double *slack)
{
    const double u = 2.0 * number_roundoff(hal_type_of_value(tested->type));
    switch (tested->epilogue) {
    case EPILOGUE_BIAS_RELU:
        value += (long double)value_of(&made->inputs[0], b, i, j);
        *slack += (long double)(u * fabs((double)value));
        return value > 0.0L ? value : 0.0L;
    case EPILOGUE_INDICES:
        value += (long double)(i + 2 * j + 4 * b);
        *slack += (long double)(u * fabs((double)value));
        return value;
    case EPILOGUE_TWO_INPUTS: {
        const long double factor = (long double)value_of(&made->inputs[0], b, i, j);
        const long double less = (long double)value_of(&made->inputs[1], b, i, j);
        const long double scaled = value * factor;
        *slack =
            *slack * fabsl(factor) + (long double)(u * (fabs((double)scaled) + fabs((double)less)));
        return scaled - less;
    }
    case EPILOGUE_RESIDUAL:
        for (uint32_t input = 0; input < 2; input++) {
            value += (long double)value_of(&made->inputs[input], b, i, j);
            *slack += (long double)(u * fabs((double)value));
        }
        return value;
    default:
        return value;
    }
}

/* The sum of products and, where asked for, that of their magnitudes, in double: several at once
 * keep a processor busy. */
static inline void dot_in_double(const double *row, const double *column, size_t count, double *sum,
                                 double *size)
{
    enum { PAIRS = 4, STEP = 2 * PAIRS };
    typedef double pair __attribute__((vector_size(16)));
    typedef int64_t bits __attribute__((vector_size(16)));
    pair sums[PAIRS] = {{0}}, sizes[PAIRS] = {{0}};
    double rest = 0.0, rest_size = 0.0;
    size_t k = 0;
    for (; k + STEP <= count; k += STEP) {
#pragma GCC unroll 4
        for (size_t i = 0; i < PAIRS; i++) {
            pair x, y;
            memcpy(&x, row + k + 2 * i, sizeof x);
            memcpy(&y, column + k + 2 * i, sizeof y);
            const pair term = x * y;
            sums[i] += term;
            if (size) {
                sizes[i] += (pair)((bits)term & INT64_MAX);
            }
        }
    }
    for (; k < count; k++) {
        rest += row[k] * column[k];
        rest_size += fabs(row[k] * column[k]);
    }
    for (size_t i = 0; i < PAIRS; i++) {
        rest += sums[i][0] + sums[i][1];
        rest_size += sizes[i][0] + sizes[i][1];
    }
    *sum = rest;
    if (size) {
        *size = rest_size;
    }
}

/* Sums of whole numbers are exact in double, and have no bounds. Products of types narrower than
 * F64 are exact there, and their sums add less than 2^-28 of the bound. */
static void dot_product(hal_type type, bool whole, const double *row, const double *column,
                        size_t count, long double *sum, long double *size)
{
    double narrow_sum, narrow_size = 0.0;
    *sum = *size = 0.0L;
    if (!whole && type == HAL_TYPE_F64) {
        for (size_t k = 0; k < count; k++) {
            const long double term = (long double)row[k] * (long double)column[k];
            *sum += term;
            *size += fabsl(term);
        }
        return;
    }
    if (whole) {
        dot_in_double(row, column, count, &narrow_sum, NULL);
    } else {
        dot_in_double(row, column, count, &narrow_sum, &narrow_size);
    }
    *sum = (long double)narrow_sum;
    *size = (long double)narrow_size;
}

/* Rows of A, and columns of B, of one of the batch. */
static void widen_operands(const product *tested, const matrices *made, int b, double *rows,
                           double *columns)
{
    for (int i = 0; i < tested->m; i++) {
        for (int k = 0; k < tested->k; k++) {
            *rows++ = value_of(&made->a, b, i, k);
        }
    }
    for (int j = 0; j < tested->n; j++) {
        for (int k = 0; k < tested->k; k++) {
            *columns++ = value_of(&made->b, b, k, j);
        }
    }
}

/* |c' - c| <= gamma(K + 2) (|alpha| |A| |B| + |beta| |C|) + u |c|, where gamma has the roundoff of
 * the accumulator and u that of the output; an epilogue adds its own roundings. The fast class may
 * round one operand to 11 bits and truncate the other, and drops bits of sums of F8_E4M3. */
static void compute_reference(case_run *run, const product *tested, bool whole, matrices *made)
{
    const double u = number_roundoff(hal_type_of_value(tested->type));
    const double out = number_roundoff(tested->type_c);
    const int fast = tested->precision == HAL_GEMM_FAST && tested->type == HAL_TYPE_F32;
    /* Half of C's smallest number: a result below it may become 0. */
    const double least = hal_type_is_narrow_float(tested->type_c)
                             ? ldexp(0.501, hal_type_float_format(tested->type_c).least)
                             : 0x1p-140;
    const double dropped =
        tested->precision == HAL_GEMM_FAST && tested->type == HAL_TYPE_F8_E4M3 ? 0x1p-5 : 0.0;
    const double gamma =
        (tested->k + 2) * u / (1.0 - (tested->k + 2) * u) + (fast ? 0x1.8p-10 : dropped);
    const size_t k_count = (size_t)tested->k;
    double *rows = case_allocate(run, (size_t)tested->m * k_count + 1, sizeof *rows);
    double *columns = case_allocate(run, (size_t)tested->n * k_count + 1, sizeof *columns);
    size_t at = 0;
    for (int b = 0; b < tested->batch; b++) {
        widen_operands(tested, made, b, rows, columns);
        for (int i = 0; i < tested->m; i++) {
            for (int j = 0; j < tested->n; j++, at++) {
                const double *row = rows + (size_t)i * k_count;
                const double *column = columns + (size_t)j * k_count;
                long double sum, size;
                dot_product(tested->type, whole, row, column, k_count, &sum, &size);
                long double value = (long double)tested->alpha * sum;
                size *= fabsl((long double)tested->alpha);
                if (tested->beta != 0.0) {
                    const double old =
                        number_get(made->c.type, made->c.memory, place_of(&made->c, b, i, j));
                    value += (long double)(tested->beta * old);
                    size += fabsl((long double)(tested->beta * old));
                }
                long double slack = (long double)gamma * size;
                value = apply_epilogue(tested, made, b, i, j, value, &slack);
                made->expected[at] = value;
                made->bounds[at] = (double)slack + 1.001 * out * fabs((double)value) + least;
            }
        }
    }
}

static void check_gaps(case_run *run, const matrix *c, const uint8_t *after)
{
    const uint32_t size = hal_type_size(c->type);
    uint8_t *used = case_allocate(run, c->memory_count, 1);
    for (int b = 0; b < c->batch; b++) {
        for (int i = 0; i < c->rows; i++) {
            for (int j = 0; j < c->columns; j++) {
                used[place_of(c, b, i, j)] = 1;
            }
        }
    }
    for (size_t i = 0; i < c->memory_count; i++) {
        case_check(run, used[i] != 0 || memcmp(after + i * size, c->memory + i * size, size) == 0,
                   "C: element %zu of its memory, between its rows, was written to", i);
    }
}

static void judge(case_run *run, const product *tested, const matrices *made, bool whole)
{
    const size_t count = (size_t)tested->batch * (size_t)tested->m * (size_t)tested->n;
    const hal_type type = tested->type_c;
    uint8_t *after = case_allocate(run, made->c.memory_count + 1, 8);
    uint8_t *actual = case_allocate(run, count, 8), *expected = case_allocate(run, count, 8);
    comparison found;
    size_t at = 0;
    zone_read(run, &made->c.zone, after, "C");
    zone_read(run, &made->a.zone, NULL, "A");
    zone_read(run, &made->b.zone, NULL, "B");
    check_gaps(run, &made->c, after);
    for (int b = 0; b < tested->batch; b++) {
        for (int i = 0; i < tested->m; i++) {
            for (int j = 0; j < tested->n; j++, at++) {
                const uint64_t bits = number_load(type, after, place_of(&made->c, b, i, j));
                number_store(type, actual, at, bits);
                /* The sign of a zero depends on the order of the sum. */
                const double exact = (double)made->expected[at];
                const bool zero = exact == 0.0 && number_value(type, bits) == 0.0;
                number_store(type, expected, at, zero ? bits : number_bits(type, exact));
            }
        }
    }
    if (whole && !compare_bits(type, actual, expected, count, true, &found)) {
        case_report(run, &found, "whole numbers");
    }
    if (!whole && !compare_bounds(type, actual, made->expected, made->bounds, count, &found)) {
        case_report(run, &found, "random numbers");
    }
}

const char *product_epilogue_name(product_epilogue epilogue)
{
    static const char *const names[EPILOGUE_COUNT] = {"none", "bias_relu", "indices", "two_inputs",
                                                      "residual"};
    return names[epilogue];
}

void product_run(case_run *run, const product *tested, bool whole)
{
    matrices made = {0};
    const size_t objects = run->object_count;
    make_matrices(run, tested, whole, &made);
    multiply(run, tested, &made);
    compute_reference(run, tested, whole, &made);
    judge(run, tested, &made, whole);
    case_release(run, objects);
}
