/* statistics.c: variance, norms, logsumexp, any and all along axes; cumulative maxima, search,
 * counts, selections, padding and moves, against plain loops. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/shape.h>
#include <ops/statistics.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef enum statistic {
    VARIANCE,
    NORM_1,
    NORM_2,
    NORM_3,
    NORM_MOST,
    LOG_SUM_EXP,
    STATISTIC_COUNT
} statistic;

typedef struct statistic_case {
    hal_type type;
    statistic kind;
    int64_t shape[3];
    uint32_t axes; /* as bits */
    operand_layout layout;
} statistic_case;

static const char *const names[STATISTIC_COUNT] = {"variance", "norm_1",    "norm_2",
                                                   "norm_3",   "norm_most", "log_sum_exp"};

/* The place of element i of x in the result. */
static size_t result_of(const statistic_case *t, size_t i)
{
    const size_t n[3] = {(size_t)t->shape[0], (size_t)t->shape[1], (size_t)t->shape[2]};
    const size_t at[3] = {i / n[2] / n[1], i / n[2] % n[1], i % n[2]};
    size_t place = 0;
    for (uint32_t axis = 0; axis < 3; axis++) {
        place = t->axes >> axis & 1 ? place : place * n[axis] + at[axis];
    }
    return place;
}

static size_t results_of(const statistic_case *t, int64_t kept[3], uint32_t *rank)
{
    size_t count = 1;
    *rank = 0;
    for (uint32_t axis = 0; axis < 3; axis++) {
        if (!(t->axes >> axis & 1)) {
            kept[(*rank)++] = t->shape[axis];
            count *= (size_t)t->shape[axis];
        }
    }
    return count;
}

/* Terms of the sum, and what becomes of it. */
static long double term(statistic kind, long double x, long double mean)
{
    switch (kind) {
    case VARIANCE:
        return (x - mean) * (x - mean);
    case NORM_1:
        return fabsl(x);
    case NORM_2:
        return x * x;
    case NORM_3:
        return fabsl(x * x * x);
    default:
        return expl(x);
    }
}

static long double finish(statistic kind, long double sum, double n)
{
    switch (kind) {
    case VARIANCE:
        return sum / (long double)(n - 1);
    case NORM_1:
        return sum;
    case NORM_2:
        return sqrtl(sum);
    case NORM_3:
        return cbrtl(sum);
    default:
        return logl(sum);
    }
}

static void judge(case_run *run, const statistic_case *t, const operand *x, const operand *y)
{
    const double u = number_roundoff(hal_type_of_value(t->type)), v = number_roundoff(t->type);
    const double n = (double)(x->count / y->count);
    long double *mean = case_allocate(run, y->count, sizeof *mean);
    long double *expected = case_allocate(run, y->count, sizeof *expected);
    double *bounds = case_allocate(run, y->count, sizeof *bounds);
    for (size_t i = 0; i < x->count; i++) {
        mean[result_of(t, i)] += (long double)operand_get(x, i) / (long double)n;
    }
    for (size_t i = 0; i < x->count; i++) {
        const size_t r = result_of(t, i);
        const long double value = (long double)operand_get(x, i);
        expected[r] = t->kind == NORM_MOST ? fmaxl(expected[r], fabsl(value))
                                           : expected[r] + term(t->kind, value, mean[r]);
    }
    for (size_t r = 0; r < y->count; r++) {
        expected[r] = t->kind == NORM_MOST ? expected[r] : finish(t->kind, expected[r], n);
        const double size = (double)fabsl(expected[r]) + (t->kind == LOG_SUM_EXP ? 8 : 1);
        bounds[r] = 8 * (n + 16) * u * size + 1.01 * v * (double)fabsl(expected[r]);
    }
    operand_check_bounds(run, y, expected, bounds, "result");
}

static ops_array *compute(const statistic_case *t, ops_array *x)
{
    static const double powers[] = {
        [NORM_1] = 1, [NORM_2] = 2, [NORM_3] = 3, [NORM_MOST] = (double)INFINITY};
    int32_t axes[3];
    uint32_t count = 0;
    for (int32_t axis = 0; axis < 3; axis++) {
        if (t->axes >> axis & 1) {
            axes[count++] = axis - 3;
        }
    }
    return t->kind == VARIANCE      ? ops_array_variance(axes, count, 0, 1, x)
           : t->kind == LOG_SUM_EXP ? ops_array_log_sum_exp(axes, count, 0, x)
                                    : ops_array_norm(axes, count, 0, powers[t->kind], x);
}

static void run_statistic(case_run *run, const void *parameters)
{
    const statistic_case *t = parameters;
    random_state random = {run->seed};
    int64_t kept[3] = {1, 1, 1};
    uint32_t rank;
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    results_of(t, kept, &rank);
    operand x = operand_create(run, t->type, 3, t->shape, t->layout);
    operand y = operand_create(run, t->type, rank, kept, LAYOUT_PLAIN);
    operand_fill(&x, &random, -3, 5);
    operand_upload(run, &x);
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *array = compute(t, ops_array_from_tensor(run->ops, &x.tensor));
    const hal_status status =
        read_claimed(run, array, y.count * hal_type_size(t->type), y.elements);
    ops_scope_end(run->ops);
    case_ok(run, status, "ops_array_read");
    judge(run, t, &x, &y);
}

static void print_statistic(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const statistic_case *t = parameters;
    snprintf(name, bytes,
             "ops/statistic(kind=%s,type=%s,shape=%lldx%lldx%lld,axes=%u,layout=%s,"
             "seed=%llu)",
             names[t->kind], hal_type_name(t->type), (long long)t->shape[0], (long long)t->shape[1],
             (long long)t->shape[2], t->axes, layout_name(t->layout), (unsigned long long)seed);
}

static const case_family statistics = {
    .function = run_statistic, .bytes = sizeof(statistic_case), .print = print_statistic};

enum { COUNT = 1000 };

/* Random whole numbers from -20 to 20, many of them equal. */
static void whole_numbers(case_run *run, int32_t *numbers)
{
    random_state random = {run->seed};
    for (size_t i = 0; i < COUNT; i++) {
        numbers[i] = (int32_t)(random_bits(&random, HAL_TYPE_U32) % 41) - 20;
    }
}

static void check_numbers(case_run *run, ops_array *array, const int64_t *expected, size_t count,
                          const char *what)
{
    int64_t found[COUNT * 2];
    ops_array *wide = ops_array_cast(HAL_TYPE_I64, array);
    case_ok(run, read_claimed(run, wide, count * sizeof *found, found), what);
    for (size_t i = 0; i < count; i++) {
        case_check(run, found[i] == expected[i], "%s: element %zu: expected %lld, got %lld", what,
                   i, (long long)expected[i], (long long)found[i]);
    }
}

/* Cumulative maxima, counts, and numbers that differ from 0. */
static void run_selections(case_run *run, const void *parameters)
{
    const int64_t length = COUNT;
    int32_t numbers[COUNT];
    int64_t places[COUNT], bins[8] = {0}, chosen[COUNT], values[COUNT];
    size_t found = 0, best = 0;
    case_claim_storage(run, HAL_TYPE_I64);
    whole_numbers(run, numbers);
    for (size_t i = 0; i < COUNT; i++) {
        best = numbers[i] >= numbers[best] ? i : best;
        places[i] = (int64_t)best;
        bins[numbers[i] & 7] += numbers[i] >= 0 && numbers[i] < 8;
        if (numbers[i] > 3) {
            chosen[found] = (int64_t)i;
            values[found++] = numbers[i];
        }
    }
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *x = ops_array_from_host(run->ops, HAL_TYPE_I32, 1, &length, numbers);
    ops_array *mask = ops_gt(x, ops_array_scalar(run->ops, HAL_TYPE_I32, 3));
    check_numbers(run, ops_array_scan_places(OPS_SCAN_MAX, 0, x), places, COUNT, "scan_places");
    check_numbers(run, ops_array_bin_count(8, x, NULL), bins, 8, "bin_count");
    ops_array *selected = ops_array_masked_select(x, mask);
    case_check(run, ops_array_get_element_count(selected) == (int64_t)found, "masked_select: %s",
               hal_status_message());
    check_numbers(run, selected, values, found, "masked_select");
    check_numbers(run, ops_array_nonzero(mask), chosen, found, "nonzero");
    ops_scope_end(run->ops);
}

/* Different numbers, and the places of all numbers among them by search. */
static void run_unique(case_run *run, const void *parameters)
{
    const int64_t length = COUNT;
    int32_t numbers[COUNT];
    int64_t counts[41] = {0}, different[41], occurrences[41], inverse[COUNT];
    size_t found = 0;
    case_claim_storage(run, HAL_TYPE_I64);
    whole_numbers(run, numbers);
    for (size_t i = 0; i < COUNT; i++) {
        counts[numbers[i] + 20]++;
    }
    for (int64_t i = 0; i < 41; i++) {
        if (counts[i] > 0) {
            different[found] = i - 20;
            occurrences[found] = counts[i];
            counts[i] = (int64_t)found++;
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        inverse[i] = counts[numbers[i] + 20];
    }
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *at, *often, *x = ops_array_from_host(run->ops, HAL_TYPE_I32, 1, &length, numbers);
    ops_array *result = ops_array_unique(x, &at, &often);
    case_check(run, ops_array_get_element_count(result) == (int64_t)found, "unique: %s",
               hal_status_message());
    check_numbers(run, result, different, found, "unique");
    check_numbers(run, at, inverse, COUNT, "unique, inverse");
    check_numbers(run, often, occurrences, found, "unique, counts");
    check_numbers(run, ops_array_search_sorted(result, x, 0), inverse, COUNT, "search_sorted");
    for (size_t i = 0; i < COUNT; i++) {
        inverse[i]++;
    }
    check_numbers(run, ops_array_search_sorted(result, x, 1), inverse, COUNT,
                  "search_sorted, right");
    ops_scope_end(run->ops);
}

/* The element that a padded axis takes for element i of 5. */
static int64_t padded(ops_pad_mode mode, int64_t i)
{
    static const int64_t mirrored[8] = {0, 1, 2, 3, 4, 3, 2, 1};
    switch (mode) {
    case OPS_PAD_EDGE:
        return i < 0 ? 0 : i > 4 ? 4 : i;
    case OPS_PAD_REFLECT:
        return mirrored[((i % 8) + 8) % 8];
    case OPS_PAD_WRAP:
        return ((i % 5) + 5) % 5;
    default:
        return i < 0 || i > 4 ? -1 : i;
    }
}

static void run_moves(case_run *run, const void *parameters)
{
    const int64_t before[2] = {2, 7}, after[2] = {-1, 9}, repeats[2] = {2, 3};
    const int32_t axes[2] = {0, -1};
    int64_t expected[COUNT];
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *x = ops_array_iota(run->ops, HAL_TYPE_I32, 15, 1, 1);
    x = ops_array_reshape(x, 2, (int64_t[]){3, 5});
    for (uint32_t mode = 0; mode < OPS_PAD_MODE_COUNT; mode++) {
        const bool is_constant = mode == OPS_PAD_CONSTANT;
        for (int64_t i = 0; i < 4 * 21; i++) { /* rows 0 and 1 stay: as if there were no others */
            const int64_t row = i / 21 - 2, column = padded((ops_pad_mode)mode, i % 21 - 7);
            const int64_t from = mode == OPS_PAD_EDGE ? (row > 0) : ((row % 2) + 2) % 2;
            const bool is_value = is_constant && (row < 0 || column < 0);
            expected[i] = is_value ? -7 : from * 5 + column + 1;
        }
        check_numbers(run, ops_array_pad((ops_pad_mode)mode, before, after, -7, x), expected,
                      4 * 21, "pad");
    }
    for (int64_t i = 0; i < 15; i++) {
        expected[i] = 15 - i;
    }
    check_numbers(run, ops_array_flip(axes, 2, x), expected, 15, "flip");
    for (int64_t i = 0; i < 15; i++) {
        expected[i] = i / 5 * 5 + (i % 5 + 3) % 5 + 1;
    }
    check_numbers(run, ops_array_roll(1, -8, x), expected, 15, "roll");
    for (int64_t i = 0; i < 90; i++) {
        expected[i] = i / 15 % 3 * 5 + i % 5 + 1;
    }
    check_numbers(run, ops_array_tile(repeats, x), expected, 90, "tile");
    for (int64_t i = 0; i < 15; i++) {
        expected[i] = i % 5 <= i / 5 - 1 ? i + 1 : 0;
    }
    check_numbers(run, ops_array_lower_triangle(-1, x), expected, 15, "lower_triangle");
    for (int64_t i = 0; i < 15; i++) {
        expected[i] = i % 5 >= i / 5 - 1 ? i + 1 : 0;
    }
    check_numbers(run, ops_array_upper_triangle(-1, x), expected, 15, "upper_triangle");
    ops_scope_end(run->ops);
}

/* NaN and infinities, and arrays without elements. */
static void run_special(case_run *run, const void *parameters)
{
    const float numbers[6] = {(float)-INFINITY, (float)-INFINITY, (float)NAN, 0, 0, -0.0F};
    const int32_t axis = 1;
    float found[3];
    uint8_t logic[3];
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *x = ops_array_from_host(run->ops, HAL_TYPE_F32, 2, (int64_t[]){3, 2}, numbers);
    case_ok(run, read_claimed(run, ops_array_log_sum_exp(&axis, 1, 0, x), sizeof found, found),
            "read");
    case_check(run, isinf(found[0]) && found[0] < 0 && isnan(found[1]), "log_sum_exp: got %d",
               (int)found[0]);
    case_ok(run, read_claimed(run, ops_array_any(&axis, 1, 0, x), sizeof logic, logic), "read");
    case_check(run, logic[0] == 1 && logic[1] == 1 && logic[2] == 0, "any: got %d %d %d", logic[0],
               logic[1], logic[2]);
    case_ok(run, read_claimed(run, ops_array_all(&axis, 1, 0, x), sizeof logic, logic), "read");
    case_check(run, logic[0] == 1 && logic[1] == 0 && logic[2] == 0, "all: got %d %d %d", logic[0],
               logic[1], logic[2]);
    ops_array *none = ops_array_slice(x, 1, 0, 0, 1);
    case_ok(run, read_claimed(run, ops_array_all(&axis, 1, 0, none), sizeof logic, logic), "read");
    case_check(run, logic[0] == 1 && logic[2] == 1, "all of none: got %d", logic[0]);
    case_check(run, ops_array_get_length(ops_array_nonzero(none), 0) == 0, "nonzero of none: %s",
               hal_status_message());
    case_check(run, !ops_array_variance(&axis, 1, 0, 1, none), "a variance of no elements");
    ops_scope_end(run->ops);
}

void cases_ops_statistics(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16};
    uint32_t turn = 0;
    for (uint32_t kind = 0; kind < STATISTIC_COUNT; kind++) {
        for (uint32_t k = 0; k < 4; k++, turn++) {
            const statistic_case tested = {.type = types[(turn + k) % 4],
                                           .kind = (statistic)kind,
                                           .shape = {5, turn % 3 ? 7 : 70, 6},
                                           .axes = (const uint32_t[]){4, 2, 5, 7}[k],
                                           .layout = (operand_layout)(turn % LAYOUT_BROADCAST)};
            case_add_member(list, &statistics, &tested);
        }
    }
    case_add(list, run_selections, NULL, 0, "ops/statistics(selections)");
    case_add(list, run_unique, NULL, 0, "ops/statistics(unique)");
    case_add(list, run_moves, NULL, 0, "ops/statistics(moves)");
    case_add(list, run_special, NULL, 0, "ops/statistics(special)");
}
