/* array_values.c: the values of fused chains and trees against double precision. The bounds are
 * those of the single functions, carried through what comes after. */
#include <math.h>
#include <string.h>

#include "case/cases.h"
#include "ops/array_fixture.h"
#include "ops/functions.h"
#include "ops/fixture.h"

enum { ELEMENTS = 61, CHAIN = 14, TREE_LEAVES = 11 };

/* A value and the bound of its error. */
typedef struct approximation {
    long double value;
    double error;
} approximation;

typedef struct values_case {
    hal_type type;
    bool is_tree;
} values_case;

/* Of numbers between 0.5 and 2 each gives numbers that are neither large nor near 0. */
static const ops_unary_function links[CHAIN] = {
    OPS_TANH, OPS_EXP,   OPS_SQRT, OPS_LOG1P,    OPS_RECIPROCAL, OPS_SQUARE, OPS_ATAN,
    OPS_COSH, OPS_RSQRT, OPS_NEG,  OPS_SOFTPLUS, OPS_SIGMOID,    OPS_ERF,    OPS_COS};

/* The operation that takes in leaf number i + 1, and which operand the leaf is. */
static const ops_binary_function joints[TREE_LEAVES - 1] = {
    OPS_ADD, OPS_MUL,     OPS_DIV, OPS_MAXIMUM, OPS_SUB,
    OPS_ADD, OPS_MINIMUM, OPS_MUL, OPS_DIV,     OPS_SUB};

static void tree(array_run *r)
{
    scope_begin(r->run);
    ops_array *x = r->leaves[0];
    for (uint32_t i = 1; i < TREE_LEAVES; i++) {
        x = ops_array_binary(joints[i - 1], x, ops_array_unary(OPS_SIGMOID, r->leaves[i]));
    }
    array_note(r, x, "the tree");
    scope_end(r->run);
}

static void chain(array_run *r)
{
    scope_begin(r->run);
    ops_array *x = r->leaves[0];
    for (int i = 0; i < CHAIN; i++) {
        x = ops_array_unary(links[i], x);
    }
    array_note(r, x, "the chain");
    scope_end(r->run);
}

/* The error of the result from those of the operands and that of the function, `units` in the last
 * place. All functions here are monotone, or nearly so for their operands. */
static void widen(approximation *result, double at_bounds, double units, hal_type type)
{
    const double size = (double)fabsl(result->value) + at_bounds;
    result->error = 1.01 * at_bounds + units * 2.0 * number_roundoff(type) * size;
}

static approximation expected_tree(const case_run *run, hal_type type, const double *leaves)
{
    approximation at = {(long double)leaves[0], 0.0};
    for (int i = 0; i < TREE_LEAVES - 1; i++) {
        approximation leaf = {function_unary(OPS_SIGMOID, (long double)leaves[i + 1]), 0.0};
        widen(&leaf, 0.0, function_unary_bound(run, OPS_SIGMOID, type), type);
        const long double value = function_binary(joints[i], type, at.value, leaf.value);
        double far = 0.0;
        for (int corner = 0; corner < 4; corner++) {
            const long double x = at.value + (corner % 2 != 0 ? 1 : -1) * (long double)at.error;
            const long double y = leaf.value + (corner / 2 != 0 ? 1 : -1) * (long double)leaf.error;
            far = fmax(far, (double)fabsl(function_binary(joints[i], type, x, y) - value));
        }
        at.value = value;
        widen(&at, far, function_binary_bound(run, joints[i], type), type);
    }
    return at;
}

static approximation expected_chain(const case_run *run, hal_type type, double x)
{
    approximation at = {(long double)x, 0.0};
    for (int i = 0; i < CHAIN; i++) {
        const long double value = function_unary(links[i], at.value);
        double far = 0.0;
        for (int side = -1; side <= 1; side += 2) {
            const long double end = at.value + side * (long double)at.error;
            far = fmax(far, (double)fabsl(function_unary(links[i], end) - value));
        }
        at.value = value;
        widen(&at, far, function_unary_bound(run, links[i], type), type);
    }
    return at;
}

static void judge(array_run *r, const values_case *tested, const uint8_t *leaves,
                  const array_values *values)
{
    long double expected[ELEMENTS];
    double bounds[ELEMENTS];
    for (size_t i = 0; i < ELEMENTS; i++) {
        double x[TREE_LEAVES];
        for (size_t k = 0; k < (tested->is_tree ? TREE_LEAVES : 1u); k++) {
            x[k] = number_get(tested->type, leaves + k * ELEMENTS * 8, i);
        }
        const approximation wanted = tested->is_tree ? expected_tree(r->run, tested->type, x)
                                                     : expected_chain(r->run, tested->type, x[0]);
        expected[i] = wanted.value;
        bounds[i] = wanted.error;
    }
    comparison found;
    if (!compare_bounds(tested->type, values->all[0].bits, expected, bounds, ELEMENTS, &found)) {
        case_report(r->run, &found, "the result");
    }
}

static void run_values(case_run *run, const void *parameters)
{
    const values_case *tested = parameters;
    const int64_t shape[1] = {ELEMENTS};
    array_run r = {.run = run, .random = {run->seed}};
    uint8_t leaves[TREE_LEAVES][ELEMENTS * 8];
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    for (int i = 0; i < (tested->is_tree ? TREE_LEAVES : 1); i++) {
        array_add_leaf(&r, tested->type, 1, shape, 0.5, 2.0, leaves[i]);
    }
    judge(&r, tested, leaves[0], array_run_both_ways(&r, tested->is_tree ? tree : chain));
}

/* Every bit pattern of a narrow float, NaN included, moves as it is. */
static void run_moves(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const size_t bytes = hal_type_size(type), count = (size_t)1 << 8 * bytes;
    const int64_t shape[2] = {16, (int64_t)(count / 16)};
    uint8_t *elements = case_allocate(run, count, bytes);
    uint8_t *expected = case_allocate(run, count, bytes), *found = case_allocate(run, count, bytes);
    case_claim_storage(run, type);
    for (size_t i = 0; i < count; i++) {
        number_store(type, elements, i, i);
        number_store(type, expected, i % (count / 16) * 16 + i / (count / 16), i);
    }
    scope_begin(run);
    ops_array *x = ops_array_from_host(run->ops, type, 2, shape, elements);
    case_ok(run, ops_array_read(ops_array_transpose(x, 0, 1), count * bytes, found),
            "ops_array_read");
    scope_end(run);
    for (size_t i = 0; i < count; i++) {
        case_check(run, memcmp(found + i * bytes, expected + i * bytes, bytes) == 0,
                   "element %zu: expected the bits 0x%llx, got 0x%llx", i,
                   (unsigned long long)number_load(type, expected, i),
                   (unsigned long long)number_load(type, found, i));
    }
}

void cases_ops_array_values(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if (!hal_type_is_float(type)) {
            continue;
        }
        if (hal_type_is_narrow_float(type)) {
            case_add(list, run_moves, &type, sizeof type, "ops/array_moves(type=%s)",
                     hal_type_name(type));
        }
        const int programs = type == HAL_TYPE_F32 || type == HAL_TYPE_F16 ? 2 : 1;
        for (int is_tree = 0; is_tree < programs; is_tree++) {
            const values_case tested = {type, is_tree != 0};
            case_add(list, run_values, &tested, sizeof tested,
                     "ops/array_values(type=%s,program=%s,seed=%llu)", hal_type_name(type),
                     is_tree ? "tree" : "chain", (unsigned long long)list->seed);
        }
    }
}
