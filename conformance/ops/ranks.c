/* ranks.c: sixteen axes, the most that a tensor has: each operation gives the elements that it
 * gives of the same numbers with three axes. Axes are cut into many and lie in memory in another
 * order, so that most of them stay apart in a kernel. */
#include <ops/shape.h>

#include "case/cases.h"
#include "case/reference.h"
#include "ops/array_fixture.h"
#include "ops/fixture.h"

/* The three axes, and the middle one among the sixteen. */
enum { OUTER = 36, MIDDLE = 5, INNER = 48, ELEMENTS = OUTER * MIDDLE * INNER, AXIS = 7 };

static const int64_t long_shape[OPS_MAX_RANK] = {2, 1, 3, 2, 1, 3, 1, 5, 2, 2, 1, 3, 1, 2, 2, 1};

typedef struct rank_case {
    ops_array *wide, *narrow; /* the same numbers with 16 axes and with 3 */
    ops_array *indices;       /* I32, of the axis */
    ops_array *picks[2];      /* I32, of the shapes of both */
} rank_case;

/* What is computed of x; `other` has x's shape, and picks are indices along the axis. */
typedef ops_array *(*rank_function)(const rank_case *c, ops_array *x, int32_t axis,
                                    ops_array *picks);

static ops_array *pointwise(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_sub(ops_abs(x), ops_array_cast(HAL_TYPE_F32, picks));
}

static ops_array *broadcast(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_mul(x, ops_array_slice(x, axis, 2, 1, 1));
}

static ops_array *sum(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_neg(ops_array_reduce(OPS_REDUCE_SUM, axis, 1, ops_abs(x)));
}

static ops_array *greatest_place(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_reduce(OPS_REDUCE_ARGMAX, axis, 0, x);
}

static ops_array *less_greatest(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_sub(x, ops_array_reduce(OPS_REDUCE_MAX, axis, 1, x));
}

static ops_array *scan(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_scan(OPS_SCAN_SUM, axis, x);
}

static ops_array *sort(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_sort(axis, 1, -1, x);
}

static ops_array *sort_places(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_argsort(axis, 0, -1, x);
}

static ops_array *gather(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_gather(axis, x, c->indices);
}

static ops_array *take(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_take_along_axis(axis, x, picks);
}

static ops_array *scatter(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_scatter(OPS_SCATTER_ADD, axis, x, picks, ops_neg(x));
}

static ops_array *concatenate(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    ops_array *const parts[3] = {ops_neg(x), ops_array_slice(x, axis, 1, 2, 2), x};
    return ops_array_concatenate(axis, parts, 3);
}

static ops_array *update(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    ops_array *copy = ops_array_copy(x);
    ops_tensor view;
    ops_array_describe(copy, &view);
    return ops_tensor_slice(&view, axis, 1, 2, 2, &view)
               ? NULL
               : ops_array_update(copy, &view, ops_array_slice(x, axis, 0, 1, 1));
}

static ops_array *flip(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    return ops_array_flip(&axis, 1, x);
}

static ops_array *tile(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    int64_t repeats[OPS_MAX_RANK];
    for (int32_t i = 0; i < (int32_t)OPS_MAX_RANK; i++) {
        repeats[i] = 1 + (i == axis);
    }
    return ops_array_tile(repeats, x);
}

/* A product of which each line of the inner axis is a row. */
static ops_array *product(const rank_case *c, ops_array *x, int32_t axis, ops_array *picks)
{
    const int64_t rows[2] = {OUTER * MIDDLE, INNER};
    ops_array *matrix = ops_array_reshape(x, 2, rows);
    return ops_matmul(ops_array_transpose(matrix, 0, 1), matrix);
}

static const struct {
    const char *name;
    rank_function function;
} rank_functions[] = {
    {"pointwise", pointwise},
    {"broadcast", broadcast},
    {"sum", sum},
    {"argmax", greatest_place},
    {"max", less_greatest},
    {"scan", scan},
    {"sort", sort},
    {"argsort", sort_places},
    {"gather", gather},
    {"take", take},
    {"scatter", scatter},
    {"concatenate", concatenate},
    {"update", update},
    {"product", product},
    {"flip", flip},
    {"tile", tile},
};

/* The same elements, in memory in another order of axes. */
static ops_array *scattered(ops_array *x)
{
    int32_t order[OPS_MAX_RANK], back[OPS_MAX_RANK];
    for (int32_t i = 0; i < (int32_t)OPS_MAX_RANK; i++) {
        order[i] = 5 * i % (int32_t)OPS_MAX_RANK;
        back[order[i]] = i;
    }
    return ops_array_permute(ops_array_copy(ops_array_permute(x, order)), back);
}

static void elements_read(case_run *run, ops_array *x, const char *what, uint8_t *bits,
                          size_t *count)
{
    array_check(run, x, what);
    *count = (size_t)ops_array_get_element_count(x);
    case_check(run, *count <= 3 * ELEMENTS, "%s: %zu elements", what, *count);
    case_ok(run, ops_array_read(x, *count * hal_type_size(ops_array_get_type(x)), bits), what);
}

static void run_ranks(case_run *run, const void *parameters)
{
    const size_t number = *(const size_t *)parameters;
    const rank_function function = rank_functions[number].function;
    const int64_t shape[3] = {OUTER, MIDDLE, INNER}, places[1] = {4};
    const int32_t indices[4] = {4, 0, 2, 2};
    float *numbers = case_allocate(run, ELEMENTS, sizeof *numbers);
    int32_t *picks = case_allocate(run, ELEMENTS, sizeof *picks);
    uint8_t *found = case_allocate(run, 3 * ELEMENTS, 8),
            *expected = case_allocate(run, 3 * ELEMENTS, 8);
    random_state random = {run->seed};
    for (size_t i = 0; i < ELEMENTS; i++) {
        numbers[i] = (float)random_below(&random, 17) - 8.0f;
        picks[i] = (int32_t)random_below(&random, MIDDLE);
    }
    scope_begin(run);
    ops_context *ops = run->ops;
    rank_case c = {.narrow = ops_array_from_host(ops, HAL_TYPE_F32, 3, shape, numbers),
                   .indices = ops_array_from_host(ops, HAL_TYPE_I32, 1, places, indices),
                   .picks[1] = ops_array_from_host(ops, HAL_TYPE_I32, 3, shape, picks)};
    c.wide = scattered(ops_array_reshape(c.narrow, OPS_MAX_RANK, long_shape));
    c.picks[0] = scattered(ops_array_reshape(c.picks[1], OPS_MAX_RANK, long_shape));
    size_t count, wanted;
    ops_array *wide = function(&c, array_check(run, c.wide, "sixteen axes"), AXIS, c.picks[0]);
    ops_array *narrow = function(&c, array_check(run, c.narrow, "three axes"), 1, c.picks[1]);
    elements_read(run, wide, "of sixteen axes", found, &count);
    elements_read(run, narrow, "of three axes", expected, &wanted);
    case_check(run, count == wanted, "%zu elements of sixteen axes, %zu of three", count, wanted);
    comparison difference;
    if (!compare_bits(ops_array_get_type(wide), found, expected, count, false, &difference)) {
        case_report(run, &difference, "sixteen axes next to three");
    }
    scope_end(run);
}

/* An axis more is refused with a message. */
static void run_beyond(case_run *run, const void *parameters)
{
    int64_t shape[OPS_MAX_RANK + 1];
    const float number = 1;
    for (uint32_t i = 0; i <= OPS_MAX_RANK; i++) {
        shape[i] = 1;
    }
    scope_begin(run);
    ops_array *x = ops_array_from_host(run->ops, HAL_TYPE_F32, OPS_MAX_RANK, shape, &number);
    case_check(run,
               !ops_array_reshape(array_check(run, x, "sixteen axes"), OPS_MAX_RANK + 1, shape),
               "an array has seventeen axes");
    case_check(run, hal_status_message()[0] != 0, "no message for seventeen axes");
    scope_end(run);
}

void cases_ops_ranks(case_list *list)
{
    const unsigned long long seed = list->seed;
    for (size_t i = 0; i < sizeof rank_functions / sizeof rank_functions[0]; i++) {
        case_add(list, run_ranks, &i, sizeof i, "ops/ranks(%s,seed=%llu)", rank_functions[i].name,
                 seed);
    }
    case_add(list, run_beyond, NULL, 0, "ops/ranks(beyond)");
}
