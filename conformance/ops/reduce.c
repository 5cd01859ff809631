/* reduce.c: every reduction on every type, over each axis, of odd lengths, in every layout, with
 * work before and after. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "case/cover.h"
#include "ops/fixture.h"

typedef struct reduce_case {
    ops_reduction reduction;
    hal_type type;
    uint32_t rank, axis;
    int64_t shape[3];
    operand_layout layout;
    bool keeps_axis;
} reduce_case;

static const char *const reduction_names[OPS_REDUCTION_COUNT] = {
    "sum", "mean", "max", "min", "argmax", "product", "argmin"};

static const case_size reduce_sizes[] = {
    CASE_SIZE(reduce_case, shape[0], "shape", 0, 1),
    CASE_SIZE(reduce_case, shape[1], "shape", 1, 1),
    CASE_SIZE(reduce_case, shape[2], "shape", 2, 1),
};

static bool finds_place(int reduction)
{
    return reduction == OPS_REDUCE_ARGMAX || reduction == OPS_REDUCE_ARGMIN;
}

static hal_type output_type(const reduce_case *tested)
{
    return finds_place(tested->reduction) ? (hal_type)HAL_TYPE_I32 : tested->type;
}

/* Small integers are summed and multiplied in 32 bits, then stored with the high bits dropped. */
static long double reduce_integers(const reduce_case *tested, const operand *x, size_t first,
                                   size_t step, size_t length)
{
    const bool multiplies = tested->reduction == OPS_REDUCE_PRODUCT;
    uint64_t result = multiplies;
    for (size_t k = 0; k < length; k++) {
        const uint64_t value =
            number_widen(x->type, number_load(x->type, x->elements, first + k * step));
        result = multiplies ? result * value : result + value;
    }
    return number_long_value(tested->type, result & number_mask(tested->type));
}

/* Sums in any order: |error| <= (n u / (1 - n u)) sum |x|, and the rounding to the output's type;
 * products: the same of their size. */
static void reduce_line(const reduce_case *tested, const operand *x, size_t first, size_t step,
                        size_t length, long double *expected, double *bound)
{
    long double sum = 0.0L, size = 0.0L, best = 0.0L, product = 1.0L;
    const double u = number_roundoff(hal_type_of_value(tested->type));
    const double gamma = (double)(length + 1) * u / (1.0 - (double)(length + 1) * u);
    const bool is_least =
        tested->reduction == OPS_REDUCE_MIN || tested->reduction == OPS_REDUCE_ARGMIN;
    size_t place = 0;
    for (size_t k = 0; k < length; k++) {
        const long double value =
            number_long_value(x->type, number_load(x->type, x->elements, first + k * step));
        sum += value;
        product *= value;
        size += fabsl(value);
        if (k == 0 || (is_least ? value < best : value > best)) {
            best = value;
            place = k;
        }
    }
    *bound = 0.0;
    switch (tested->reduction) {
    case OPS_REDUCE_SUM:
    case OPS_REDUCE_MEAN:
        if (!hal_type_is_float(tested->type)) {
            *expected = reduce_integers(tested, x, first, step, length);
            break;
        }
        const long double scale = tested->reduction == OPS_REDUCE_MEAN ? (long double)length : 1.0L;
        *expected = sum / scale;
        *bound = (double)((long double)gamma * size / scale) +
                 number_roundoff(tested->type) * fabs((double)*expected) * 1.001;
        break;
    case OPS_REDUCE_PRODUCT:
        if (!hal_type_is_float(tested->type)) {
            *expected = reduce_integers(tested, x, first, step, length);
            break;
        }
        *expected = product;
        *bound = (gamma + 1.001 * number_roundoff(tested->type)) * fabs((double)product);
        break;
    case OPS_REDUCE_ARGMAX:
    case OPS_REDUCE_ARGMIN:
        *expected = (long double)place;
        break;
    default:
        *expected = best;
    }
}

static void judge(case_run *run, const reduce_case *tested, const operand *x, const operand *y)
{
    long double *expected = case_allocate(run, y->count, sizeof *expected);
    double *bounds = case_allocate(run, y->count, sizeof *bounds);
    size_t inner = 1;
    for (uint32_t d = tested->axis + 1; d < tested->rank; d++) {
        inner *= (size_t)tested->shape[d];
    }
    const size_t length = (size_t)tested->shape[tested->axis];
    for (size_t i = 0; i < y->count; i++) {
        const size_t first = i / inner * inner * length + i % inner;
        reduce_line(tested, x, first, inner, length, &expected[i], &bounds[i]);
    }
    operand_check_bounds(run, y, expected, bounds, "result");
}

/* Reduces along an axis, with options that may be null. */
static void reduce_compute(case_run *run, ops_reduction reduction, uint32_t axis, const operand *x,
                           const ops_reduce_options *options, operand *y)
{
    operand_poison(run, y);
    case_ok(run, ops_reduce(run->ops, reduction, axis, &x->tensor, options, &y->tensor),
            "ops_reduce");
    operand_download(run, y, "result");
}

static void run_reduce(case_run *run, const void *parameters)
{
    const reduce_case *tested = parameters;
    random_state random = {run->seed};
    int64_t shape[3];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < tested->rank; d++) {
        if (d != tested->axis) {
            shape[rank++] = tested->shape[d];
        } else if (tested->keeps_axis) {
            shape[rank++] = 1;
        }
    }
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    operand x = operand_create(run, tested->type, tested->rank, tested->shape, tested->layout);
    operand y = operand_create(run, output_type(tested), rank, shape, LAYOUT_PLAIN);
    const double low =
        hal_type_is_float(tested->type) || hal_type_is_signed(tested->type) ? -100.0 : 0.0;
    operand_fill(&x, &random, low, 100.0);
    for (size_t i = 0; tested->reduction == OPS_REDUCE_PRODUCT && i < x.count; i++) {
        /* Few factors of another size, so that no product is beyond its type. */
        static const double factors[] = {0.5, 2.0, 1.5};
        const double factor = i % 257 == 11 ? factors[i / 257 % 3] : 1.0;
        if (hal_type_is_float(x.type)) {
            number_put(x.type, x.elements, i, operand_get(&x, i) < 0.0 ? -factor : factor);
        } else {
            number_store(x.type, x.elements, i, random_bits(&random, x.type) | (i % 8 != 0));
        }
    }
    operand_upload(run, &x);
    reduce_compute(run, tested->reduction, tested->axis, &x, NULL, &y);
    judge(run, tested, &x, &y);
}

static void print_reduce(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const reduce_case *tested = parameters;
    snprintf(name, bytes,
             "ops/%s(type=%s,shape=%lldx%lldx%lld,axis=%u,keeps_axis=%d,layout=%s,seed=%llu)",
             reduction_names[tested->reduction], hal_type_name(tested->type),
             (long long)tested->shape[0], (long long)tested->shape[1],
             (long long)(tested->rank == 3 ? tested->shape[2] : 1), tested->axis,
             tested->keeps_axis, layout_name(tested->layout), (unsigned long long)seed);
}

static const case_family reductions = {.function = run_reduce,
                                       .bytes = sizeof(reduce_case),
                                       .sizes = reduce_sizes,
                                       .size_count = 3,
                                       .print = print_reduce};

static void add_reduce(case_list *list, const reduce_case *tested)
{
    case_add_member(list, &reductions, tested);
    case_covers(list, tested->type, CASE_BINDING, "ops %s", reduction_names[tested->reduction]);
}

/* sqrt(sum (x - m)^2), with m an input of the prologue that is broadcast. */
static void run_around(case_run *run, const void *parameters)
{
    enum { ROWS = 13, LENGTH = 301 };
    const int64_t shape[2] = {ROWS, LENGTH}, column[2] = {ROWS, 1}, out[1] = {ROWS};
    random_state random = {run->seed};
    hal_ir_builder *b = expression_begin(run);
    const hal_ir_value difference =
        hal_ir_sub(b, hal_ir_input(b, 0, HAL_TYPE_F32), hal_ir_input(b, 1, HAL_TYPE_F32));
    hal_ir_output(b, 0, hal_ir_mul(b, difference, difference));
    ops_expression *prologue = expression_finish(run, b);
    b = expression_begin(run);
    hal_ir_output(b, 0, hal_ir_sqrt(b, hal_ir_input(b, 0, HAL_TYPE_F32)));
    ops_expression *epilogue = expression_finish(run, b);
    operand x = operand_create(run, HAL_TYPE_F32, 2, shape, LAYOUT_PLAIN);
    operand m = operand_create(run, HAL_TYPE_F32, 2, column, LAYOUT_PLAIN);
    operand y = operand_create(run, HAL_TYPE_F32, 1, out, LAYOUT_PLAIN);
    operand_fill(&x, &random, -5.0, 5.0);
    operand_fill(&m, &random, -1.0, 1.0);
    operand_upload(run, &x);
    operand_upload(run, &m);
    const ops_reduce_options options = {.size = sizeof(ops_reduce_options),
                                        .prologue = prologue,
                                        .prologue_inputs = &m.tensor,
                                        .prologue_input_count = 1,
                                        .epilogue = epilogue};
    reduce_compute(run, OPS_REDUCE_SUM, 1, &x, &options, &y);
    for (size_t i = 0; i < ROWS; i++) {
        long double sum = 0.0L;
        for (size_t k = 0; k < LENGTH; k++) {
            const long double d =
                (long double)(operand_get(&x, i * LENGTH + k) - operand_get(&m, i));
            sum += d * d;
        }
        const long double expected = sqrtl(sum);
        const double error = fabs((double)((long double)operand_get(&y, i) - expected));
        case_check(run, error <= (LENGTH + 4) * 0x1p-24 * (double)expected,
                   "row %zu is %.9g instead of %.9Lg", i, operand_get(&y, i), expected);
    }
}

/* sum rem(x, y) along the first axis, in one kernel. Remainders of far operands are loops inside
 * the loop over the axis, which some drivers end early. They are slow on the host as well, so that
 * columns repeat. */
static void run_remainders(case_run *run, const void *parameters)
{
    enum { ROWS = 800, COLUMNS = 256, DISTINCT = 17 };
    const int64_t shape[2] = {ROWS, COLUMNS}, out[1] = {COLUMNS};
    const hal_type type = HAL_TYPE_F64;
    random_state random = {run->seed};
    case_claim_arithmetic(run, type);
    hal_ir_builder *b = expression_begin(run);
    hal_ir_output(b, 0, hal_ir_rem(b, hal_ir_input(b, 0, type), hal_ir_input(b, 1, type)));
    ops_expression *prologue = expression_finish(run, b);
    operand x = operand_create(run, type, 2, shape, LAYOUT_PLAIN);
    operand divisor = operand_create(run, type, 2, shape, LAYOUT_PLAIN);
    operand y = operand_create(run, type, 1, out, LAYOUT_PLAIN);
    operand_fill(&x, &random, 1.0, 2.0);
    operand_fill(&divisor, &random, 1.0, 2.0);
    long double expected[DISTINCT] = {0};
    for (size_t i = 0; i < x.count; i++) {
        const size_t column = i % COLUMNS, first = i - column + column % DISTINCT;
        const double by = operand_get(&divisor, first);
        if (column < DISTINCT) {
            const double far = ldexp(operand_get(&x, i), 1000);
            expected[column] += (long double)fmod(far, by);
            number_put(type, x.elements, i, far);
        } else {
            number_put(type, x.elements, i, operand_get(&x, first));
            number_put(type, divisor.elements, i, by);
        }
    }
    operand_upload(run, &x);
    operand_upload(run, &divisor);
    const ops_reduce_options options = {.size = sizeof(ops_reduce_options),
                                        .prologue = prologue,
                                        .prologue_inputs = &divisor.tensor,
                                        .prologue_input_count = 1};
    reduce_compute(run, OPS_REDUCE_SUM, 0, &x, &options, &y);
    for (size_t i = 0; i < COLUMNS; i++) {
        const long double sum = expected[i % DISTINCT];
        const double error = fabs((double)((long double)operand_get(&y, i) - sum));
        case_check(run, error <= ROWS * 0x1p-53 * (double)sum,
                   "column %zu is %.17g instead of %.17Lg", i, operand_get(&y, i), sum);
    }
}

/* Rows: a NaN, an infinity, both infinities, signed zeros, equal greatest values. */
static void run_special(case_run *run, const void *parameters)
{
    enum { ROWS = 5, LENGTH = 67 };
    const int64_t shape[2] = {ROWS, LENGTH}, out[1] = {ROWS};
    const double inf = (double)INFINITY, nan_value = (double)NAN;
    static const double sums[ROWS] = {(double)NAN, (double)INFINITY, (double)NAN, 0.0, 67 * 3.0};
    static const double most[ROWS] = {(double)NAN, (double)INFINITY, (double)INFINITY, 0.0, 3.0};
    static const double least[ROWS] = {(double)NAN, 1.0, -(double)INFINITY, -0.0, 3.0};
    static const double places[ROWS] = {40, 17, 50, 33, 0};
    static const double least_places[ROWS] = {40, 0, 20, 0, 0};
    const double *expected[OPS_REDUCTION_COUNT] = {
        sums, NULL, most, least, places, [OPS_REDUCE_ARGMIN] = least_places};
    operand x = operand_create(run, HAL_TYPE_F32, 2, shape, LAYOUT_PLAIN);
    for (size_t k = 0; k < LENGTH; k++) {
        number_put(x.type, x.elements, k, k == 40 ? nan_value : 1000.0 - (double)k);
        number_put(x.type, x.elements, LENGTH + k, k == 17 ? inf : 1.0);
        number_put(x.type, x.elements, 2 * LENGTH + k, k == 50 ? inf : k == 20 ? -inf : 2.0);
        number_put(x.type, x.elements, 3 * LENGTH + k, k == 33 ? 0.0 : -0.0);
        number_put(x.type, x.elements, 4 * LENGTH + k, 3.0);
    }
    operand_upload(run, &x);
    for (int r = 0; r < OPS_REDUCTION_COUNT; r++) {
        if (!expected[r]) {
            continue;
        }
        operand y =
            operand_create(run, finds_place(r) ? HAL_TYPE_I32 : HAL_TYPE_F32, 1, out, LAYOUT_PLAIN);
        reduce_compute(run, (ops_reduction)r, 1, &x, NULL, &y);
        for (size_t i = 0; i < ROWS; i++) {
            const double value = operand_get(&y, i), wanted = expected[r][i];
            const bool same = isnan(wanted) ? isnan(value) : value == wanted;
            const bool either_zero = r == OPS_REDUCE_ARGMAX && i == 3;
            case_check(run, same || (either_zero && value == 0.0),
                       "%s of row %zu is %g instead of %g", reduction_names[r], i, value, wanted);
        }
    }
}

/* A long sum, five times: the same bits. Promise 17. */
static void run_repeat(case_run *run, const void *parameters)
{
    const int64_t shape[1] = {300007};
    operand x = operand_create(run, HAL_TYPE_F32, 1, shape, LAYOUT_PLAIN);
    random_state random = {run->seed};
    uint64_t first = 0;
    operand_fill(&x, &random, -1.0, 1.0);
    operand_upload(run, &x);
    for (int turn = 0; turn < 5; turn++) {
        operand y = operand_create(run, HAL_TYPE_F32, 0, NULL, LAYOUT_PLAIN);
        reduce_compute(run, OPS_REDUCE_SUM, 0, &x, NULL, &y);
        const uint64_t bits = number_load(HAL_TYPE_F32, y.elements, 0);
        first = turn == 0 ? bits : first;
        case_check(run, bits == first, "turn %d gave other bits than the first", turn);
    }
}

static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {4, 6}, row[1] = {6}, empty[2] = {4, 0}, column[1] = {4};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    float got[4] = {3, 3, 3, 3};
    ops_tensor x = case_tensor(run, HAL_TYPE_F32, 2, shape);
    ops_tensor y = case_tensor(run, HAL_TYPE_F32, 1, row);
    ops_tensor z = case_tensor(run, HAL_TYPE_F32, 1, column);
    ops_tensor none = case_tensor(run, HAL_TYPE_F32, 2, empty);
    case_expect(run, ops_reduce(run->ops, OPS_REDUCE_SUM, 2, &x, NULL, &y), wrong, NULL,
                "an axis out of range");
    case_expect(run, ops_reduce(run->ops, OPS_REDUCE_SUM, 1, &x, NULL, &y), wrong, NULL,
                "an output that does not fit");
    case_expect(run, ops_reduce(run->ops, OPS_REDUCE_SUM, 0, NULL, NULL, &y), wrong, NULL,
                "a null input");
    case_check(run, ops_reduce(run->ops, (ops_reduction)77, 0, &x, NULL, &y) != HAL_OK,
               "an unknown reduction was accepted");
    case_check(run, ops_reduce(run->ops, OPS_REDUCE_ARGMAX, 0, &x, NULL, &y) != HAL_OK,
               "places as f32 were taken");
    case_expect(run, ops_reduce(run->ops, OPS_REDUCE_MAX, 1, &none, NULL, &z), wrong, NULL,
                "the greatest of nothing");
    for (int ones = 0; ones < 2; ones++) {
        case_ok(
            run,
            ops_reduce(run->ops, ones ? OPS_REDUCE_PRODUCT : OPS_REDUCE_SUM, 1, &none, NULL, &z),
            "the sum or product of nothing");
        case_ok(run, ops_tensor_read(run->ops, &z, sizeof got, got), "ops_tensor_read");
        for (int i = 0; i < 4; i++) {
            case_check(run, got[i] == (float)ones, "the %s of nothing is %g",
                       ones ? "product" : "sum", (double)got[i]);
        }
    }
}

void cases_ops_reduce(case_list *list)
{
    for (int r = 0; r < OPS_REDUCTION_COUNT; r++) {
        for (hal_type type = HAL_TYPE_I8; type < HAL_TYPE_COUNT; type++) {
            if (r == OPS_REDUCE_MEAN && !hal_type_is_float(type)) {
                continue;
            }
            reduce_case tested = {(ops_reduction)r, type, 2, 1, {19, 257}, LAYOUT_PLAIN, true};
            add_reduce(list, &tested);
            tested.axis = 0;
            tested.keeps_axis = false;
            add_reduce(list, &tested);
        }
        static const int64_t shapes[][3] = {{1, 1, 1},   {5, 1000003 / 997, 3}, {1, 4099, 1},
                                            {33, 2, 65}, {3, 64, 31},           {1, 100001, 1},
                                            {81, 127, 1}};
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            reduce_case tested = {.reduction = (ops_reduction)r, .type = HAL_TYPE_F32, .rank = 3};
            memcpy(tested.shape, shapes[i], sizeof tested.shape);
            tested.axis = 1;
            tested.keeps_axis = i % 2 == 0;
            add_reduce(list, &tested);
        }
        for (int l = 0; l < LAYOUT_COUNT; l++) {
            for (uint32_t axis = 0; axis < 3; axis++) {
                const reduce_case tested = {.reduction = (ops_reduction)r,
                                            .type = HAL_TYPE_F32,
                                            .rank = 3,
                                            .axis = axis,
                                            .shape = {7, 12, 29},
                                            .layout = (operand_layout)l};
                add_reduce(list, &tested);
            }
        }
    }
    case_add(list, run_around, NULL, 0, "ops/reduce_around(sum_of_squares,sqrt)");
    case_add(list, run_remainders, NULL, 0, "ops/reduce_remainders(f64,800x256)");
    case_add(list, run_special, NULL, 0, "ops/reduce_special(nan,infinity,zeros,empty)");
    case_add(list, run_repeat, NULL, 0, "ops/reduce_repeat(same_bits)");
    case_add(list, run_refusals, NULL, 0, "ops/refuses(reduce)");
    /* More than 65,536 steps for a work-item. */
    list->level = CASE_LEVEL_STRESS;
    const reduce_case places = {OPS_REDUCE_ARGMAX, HAL_TYPE_U8,  2,    0,
                                {300000, 300},     LAYOUT_PLAIN, false};
    add_reduce(list, &places);
    const reduce_case sums = {OPS_REDUCE_SUM, HAL_TYPE_I8,  2,    0,
                              {1100003, 27},  LAYOUT_PLAIN, false};
    add_reduce(list, &sums);
}
