/* rows.c: operations on arrays that one kernel computes row by row: softmax, normalisations and
 * variances written out, of lengths around those of vectors, subgroups and groups, over every axis;
 * the same bits with fusion and without, and close to long double. */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/array_fixture.h"
#include "ops/fixture.h"

typedef enum row_program { ROW_SOFTMAX, ROW_NORM, ROW_LENGTH, ROW_PROGRAMS } row_program;
typedef enum row_special { ROW_PLAIN, ROW_NAN, ROW_INFINITY, ROW_LEAST, ROW_SPECIALS } row_special;

typedef struct rows_case {
    hal_type type;
    row_program program;
    uint32_t axis;
    int64_t shape[3];
    row_special special; /* of line 1 */
} rows_case;

static const case_size rows_sizes[] = {
    CASE_SIZE(rows_case, shape[0], "shape", 0, 1),
    CASE_SIZE(rows_case, shape[1], "shape", 1, 1),
    CASE_SIZE(rows_case, shape[2], "shape", 2, 1),
};

typedef struct rows_run {
    case_run *run;
    const rows_case *tested;
    ops_array *x;
    size_t count;
    uint8_t *y;
} rows_run;

/* exp(x - max) / sum; (x - mean) / sqrt(mean square + 1/1024); x / sqrt(sum of squares). */
static ops_array *program_make(const rows_run *r)
{
    const int32_t axis = (int32_t)r->tested->axis;
    ops_array *x = r->x;
    if (r->tested->program == ROW_SOFTMAX) {
        ops_array *top = ops_array_reduce(OPS_REDUCE_MAX, axis, 1, x);
        ops_array *power = ops_array_unary(OPS_EXP, ops_array_binary(OPS_SUB, x, top));
        return ops_array_binary(OPS_DIV, power, ops_array_reduce(OPS_REDUCE_SUM, axis, 1, power));
    }
    if (r->tested->program == ROW_NORM) {
        ops_array *mean = ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x);
        ops_array *shifted = ops_array_binary(OPS_SUB, x, mean);
        ops_array *square = ops_array_unary(OPS_SQUARE, shifted);
        ops_array *variance = ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, square);
        ops_array *root = ops_array_unary(OPS_SQRT, ops_add_scalar(variance, 0x1p-10));
        return ops_array_binary(OPS_DIV, shifted, root);
    }
    ops_array *square = ops_array_unary(OPS_SQUARE, x);
    ops_array *length =
        ops_array_unary(OPS_SQRT, ops_array_reduce(OPS_REDUCE_SUM, axis, 1, square));
    return ops_array_binary(OPS_DIV, x, length);
}

static void program_execute(case_run *run, const void *parameters)
{
    const rows_run *r = parameters;
    scope_begin(run);
    ops_array *y = array_check(run, program_make(r), "a program of rows");
    if (!r->y) {
        case_ok(run, ops_array_evaluate(&y, 1), "ops_array_evaluate");
    } else {
        case_ok(run, ops_array_read(y, r->count * hal_type_size(r->tested->type), r->y),
                "ops_array_read");
    }
    scope_end(run);
}

static hal_status rehearse(ops_context *context, void *user)
{
    const rows_run *r = user;
    (void)context;
    return case_execute(r->run, program_execute, r) ? HAL_OK : HAL_ERROR_INTERNAL;
}

static void line_set(const rows_case *tested, uint8_t *x, size_t first, size_t step)
{
    const size_t length = (size_t)tested->shape[tested->axis];
    for (size_t k = 0; k < length; k++) {
        const double old = number_get(tested->type, x, first + k * step);
        const bool is_set = tested->special == ROW_LEAST || k == length / 2;
        number_put(tested->type, x, first + k * step,
                   !is_set                           ? old
                   : tested->special == ROW_NAN      ? (double)NAN
                   : tested->special == ROW_INFINITY ? (double)INFINITY
                                                     : -(double)INFINITY);
    }
}

/* Every intermediate array is rounded to the type; a sum of n numbers is off by n roundings. */
static void line_judge(const rows_run *r, const uint8_t *x, size_t first, size_t step)
{
    const rows_case *tested = r->tested;
    const size_t length = (size_t)tested->shape[tested->axis];
    long double top = -INFINITY, sum = 0, mean = 0, squares = 0;
    for (size_t k = 0; k < length; k++) {
        const long double v = (long double)number_get(tested->type, x, first + k * step);
        top = v > top ? v : top;
        mean += v / (long double)length;
    }
    for (size_t k = 0; k < length; k++) {
        const long double v = (long double)number_get(tested->type, x, first + k * step);
        const long double d = tested->program == ROW_NORM ? v - mean : v;
        sum += expl(v - top);
        squares += d * d;
    }
    const double out = number_roundoff(tested->type);
    const double u = number_roundoff(hal_type_of_value(tested->type)) * (double)length + 40 * out;
    for (size_t k = 0; k < length; k++) {
        const size_t at = first + k * step;
        const long double v = (long double)number_get(tested->type, x, at);
        const long double expected =
            tested->program == ROW_SOFTMAX ? expl(v - top) / sum
            : tested->program == ROW_NORM
                ? (v - mean) / sqrtl(squares / (long double)length + 0x1p-10L)
                : v / sqrtl(squares);
        const double y = number_get(tested->type, r->y, at);
        const double error = fabs((double)((long double)y - expected));
        case_check(r->run, error <= u * (4 + fabs((double)expected)),
                   "element %zu is %.9g instead of %.9Lg", at, y, expected);
    }
}

static void run_rows(case_run *run, const void *parameters)
{
    const rows_case *tested = parameters;
    rows_run r = {.run = run, .tested = tested};
    random_state random = {run->seed};
    r.count = (size_t)(tested->shape[0] * tested->shape[1] * tested->shape[2]);
    case_claim_arithmetic(run, tested->type);
    size_t inner = 1;
    for (uint32_t i = tested->axis + 1; i < 3; i++) {
        inner *= (size_t)tested->shape[i];
    }
    const size_t length = (size_t)tested->shape[tested->axis], lines = r.count / length;
    uint8_t *x = case_allocate(run, r.count, hal_type_size(tested->type));
    random_fill(&random, tested->type, -4.0, 4.0, x, r.count);
    if (tested->special != ROW_PLAIN && lines > 1) {
        line_set(tested, x, 1 / inner * inner * length + 1 % inner, inner);
    }
    r.x = array_own(run, ops_array_from_host(run->ops, tested->type, 3, tested->shape, x),
                    "ops_array_from_host");
    case_ok(run, ops_prepare(run->ops, rehearse, &r), "ops_prepare");
    uint8_t *fused = case_allocate(run, r.count, hal_type_size(tested->type));
    uint8_t *unfused = case_allocate(run, r.count, hal_type_size(tested->type));
    r.y = fused;
    program_execute(run, &r);
    r.y = unfused;
    ops_context_set_fusion(run->ops, 0);
    const bool done = case_execute(run, program_execute, &r);
    ops_context_set_fusion(run->ops, 1);
    case_check(run, done, "the program without fusion failed");
    comparison found;
    if (!compare_bits(tested->type, fused, unfused, r.count, true, &found)) {
        case_report(run, &found, "fused and not");
    }
    r.y = fused;
    for (size_t line = 0; line < lines; line++) {
        if (tested->special == ROW_PLAIN || line != 1) {
            line_judge(&r, x, line / inner * inner * length + line % inner, inner);
        }
    }
}

static void print_rows(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    static const char *const programs[] = {"softmax", "norm", "length"};
    static const char *const specials[] = {"none", "nan", "infinity", "least"};
    const rows_case *tested = parameters;
    snprintf(name, bytes,
             "ops/rows(program=%s,type=%s,shape=%lldx%lldx%lld,axis=%u,special=%s,seed=%llu)",
             programs[tested->program], hal_type_name(tested->type), (long long)tested->shape[0],
             (long long)tested->shape[1], (long long)tested->shape[2], tested->axis,
             specials[tested->special], (unsigned long long)seed);
}

static const case_family rows_family = {.function = run_rows,
                                        .bytes = sizeof(rows_case),
                                        .sizes = rows_sizes,
                                        .size_count = 3,
                                        .print = print_rows};

static void add_rows(case_list *list, const rows_case *tested)
{
    case_add_member(list, &rows_family, tested);
}

void cases_ops_rows(case_list *list)
{
    static const int64_t lengths[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (uint32_t axis = 0; axis < 3; axis++) {
            rows_case tested = {.type = i % 3 ? HAL_TYPE_F32 : HAL_TYPE_F16,
                                .program = (row_program)((i + axis) % ROW_PROGRAMS),
                                .axis = axis,
                                .shape = {3, 5, 7},
                                .special = (row_special)((i + axis) % ROW_SPECIALS)};
            tested.shape[axis] = lengths[i];
            add_rows(list, &tested);
        }
    }
    list->level = CASE_LEVEL_STRESS;
    for (int i = 0; i < 4; i++) {
        const int64_t length = i / 2 ? (1 << 20) + 1 : 128256;
        rows_case tested = {.type = HAL_TYPE_F32, .program = (row_program)(i % 2), .axis = 1};
        tested.shape[0] = 2;
        tested.shape[1] = length;
        tested.shape[2] = 1;
        add_rows(list, &tested);
    }
}
