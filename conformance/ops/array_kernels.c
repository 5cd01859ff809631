/* array_kernels.c: how many kernels programs of arrays take: what stays in a group, what is
 * computed into the memory of a result, and what is joined. */
#include <inttypes.h>

#include <ops/complex.h>

#include "case/cases.h"
#include "ops/array_fixture.h"

enum { SIDE = 8, PARAMETERS = 20, MOST_RESULTS = 2 * PARAMETERS };

/* A program from leaves to results, which belong to the scope. */
typedef struct counted {
    const char *name;
    uint32_t kernels; /* at most */
    uint32_t (*make)(ops_array *const *x, ops_array **results);
} counted;

/* tanh of views of x x. */
static uint32_t slices(ops_array *const *x, ops_array **results)
{
    ops_array *y = ops_array_transpose(ops_mul(x[0], x[0]), 0, 1);
    results[0] = ops_tanh(ops_array_slice(y, 1, SIDE - 1, SIDE / 2, -2));
    return 1;
}

static uint32_t reshapes(ops_array *const *x, ops_array **results)
{
    static const int64_t split[3] = {SIDE / 2, 2, SIDE};
    static const int32_t order[3] = {1, 2, 0};
    ops_array *y = ops_array_reshape(ops_mul(x[0], x[0]), 3, split);
    results[0] = ops_tanh(ops_array_permute(y, order));
    return 1;
}

static uint32_t sum_of_reshape(ops_array *const *x, ops_array **results)
{
    static const int64_t shape[2] = {SIDE / 2, 2 * SIDE};
    results[0] =
        ops_array_reduce(OPS_REDUCE_SUM, 1, 0, ops_array_reshape(ops_mul(x[0], x[1]), 2, shape));
    return 1;
}

/* A step of an LSTM, whose gates are slices of one product. */
static uint32_t lstm(ops_array *const *x, ops_array **results)
{
    ops_array *z = ops_add(ops_matmul(x[0], x[2]), x[3]), *gate[4];
    for (int i = 0; i < 4; i++) {
        gate[i] = ops_array_slice(z, 1, SIDE * i, SIDE, 1);
    }
    results[0] = ops_add(ops_mul(ops_sigmoid(gate[0]), x[1]),
                         ops_mul(ops_sigmoid(gate[1]), ops_tanh(gate[2])));
    results[1] = ops_mul(ops_sigmoid(gate[3]), ops_tanh(results[0]));
    return 2;
}

/* Three computed parts are computed straight into the result. */
static uint32_t concatenation(ops_array *const *x, ops_array **results)
{
    ops_array *const parts[3] = {ops_tanh(x[0]), ops_mul(x[0], x[1]), ops_exp(x[1])};
    results[0] = ops_array_concatenate(1, parts, 3);
    return 1;
}

/* A row replaced, in memory that nothing else holds: one kernel that computes the array, one that
 * computes the row in its place. */
static uint32_t update(ops_array *const *x, ops_array **results)
{
    ops_tensor all, part;
    ops_array *y = ops_array_keep(ops_neg(x[0])), *row = ops_array_slice(x[1], 0, 2, 1, 1);
    const bool is_ready = y && row && ops_array_evaluate(&y, 1) == HAL_OK &&
                          ops_array_describe(y, &all) == HAL_OK &&
                          ops_tensor_slice(&all, 0, 1, 1, 1, &part) == HAL_OK;
    results[0] = is_ready ? ops_array_update(y, &part, ops_tanh(row)) : NULL;
    ops_array_release(y);
    return 1;
}

/* Parameters of many sizes and their moments, updated by one evaluation. */
static uint32_t optimizer(ops_array *const *x, ops_array **results)
{
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        ops_array *p = ops_array_slice(x[0], 0, 0, 1 + i % SIDE, 1);
        ops_array *g = ops_array_slice(x[1], 0, 0, 1 + i % SIDE, 1);
        results[2 * i + 1] = ops_add(ops_mul_scalar(p, 0.9), ops_mul_scalar(ops_mul(g, g), 0.1));
        results[2 * i] =
            ops_sub(p, ops_div(g, ops_add_scalar(ops_sqrt(ops_abs(results[2 * i + 1])), 1e-3)));
    }
    return 2 * PARAMETERS;
}

/* (z w + z) / exp(sin(w)) of the first two columns as complex numbers. */
static uint32_t complex_chain(ops_array *const *x, ops_array **results)
{
    ops_array *z = ops_array_slice(x[0], 1, 0, 2, 1), *w = ops_array_slice(x[1], 1, 0, 2, 1);
    ops_array *y =
        ops_complex_binary(OPS_COMPLEX_ADD, ops_complex_binary(OPS_COMPLEX_MUL, z, w), z);
    results[0] = ops_complex_binary(
        OPS_COMPLEX_DIV, y,
        ops_complex_unary(OPS_COMPLEX_EXP, ops_complex_unary(OPS_COMPLEX_SIN, w)));
    return 1;
}

/* |z w| */
static uint32_t complex_modulus(ops_array *const *x, ops_array **results)
{
    ops_array *z = ops_array_slice(x[0], 1, 0, 2, 1), *w = ops_array_slice(x[1], 1, 0, 2, 1);
    results[0] = ops_complex_unary(OPS_COMPLEX_ABS, ops_complex_binary(OPS_COMPLEX_MUL, z, w));
    return 1;
}

/* softmax(q k^T s) v. */
static uint32_t attention(ops_array *const *x, ops_array **results)
{
    ops_array *scores = ops_matmul(x[0], ops_array_transpose(x[1], 0, 1));
    results[0] = ops_matmul(ops_array_softmax(1, ops_mul_scalar(scores, 0.5)), x[1]);
    return 1;
}

static const counted programs[] = {
    {"slices", 1, slices},
    {"reshapes", 1, reshapes},
    {"sum_of_reshape", 1, sum_of_reshape},
    {"lstm", 2, lstm},
    {"concatenate", 3, concatenation},
    {"update", 2, update},
    {"optimizer", 4, optimizer},
    {"attention", 1, attention},
    {"complex_chain", 1, complex_chain},
    {"complex_modulus", 1, complex_modulus},
};
enum { PROGRAMS = sizeof programs / sizeof programs[0] };

static uint64_t kernels_of(case_run *run)
{
    ops_array_statistics statistics = {.size = sizeof statistics};
    case_ok(run, ops_context_get_statistics(run->ops, &statistics), "ops_context_get_statistics");
    return statistics.kernels;
}

/* The second time, when no kernel is missing any more. */
static void run_counted(case_run *run, const void *parameters)
{
    const counted *tested = parameters;
    array_run r = {.run = run, .random = {run->seed}};
    static const int64_t square[2] = {SIDE, SIDE}, gates[2] = {SIDE, 4 * SIDE};
    array_add_leaf(&r, HAL_TYPE_F32, 2, square, -1, 1, NULL);
    array_add_leaf(&r, HAL_TYPE_F32, 2, square, -1, 1, NULL);
    array_add_leaf(&r, HAL_TYPE_F32, 2, gates, -1, 1, NULL);
    array_add_leaf(&r, HAL_TYPE_F32, 2, gates, -1, 1, NULL);
    uint64_t kernels = UINT64_MAX;
    for (int i = 0; i < 24 && kernels > tested->kernels; i++) {
        ops_array *results[MOST_RESULTS];
        scope_begin(run);
        const uint64_t before = kernels_of(run);
        const uint32_t count = tested->make(r.leaves, results);
        case_check(run, count > 0, "%s: %s", tested->name, hal_status_message());
        for (uint32_t k = 0; k < count; k++) {
            array_check(run, results[k], tested->name);
        }
        case_ok(run, ops_array_evaluate(results, count), "ops_array_evaluate");
        kernels = kernels_of(run) - before;
        scope_end(run);
    }
    case_check(run, kernels <= tested->kernels,
               "%s took %" PRIu64 " kernels each time, not at most %" PRIu32, tested->name, kernels,
               tested->kernels);
}

void cases_ops_array_kernels(case_list *list)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        case_add(list, run_counted, &programs[i], sizeof programs[i],
                 "ops/array_kernels(program=%s,seed=%llu)", programs[i].name,
                 (unsigned long long)list->seed);
    }
}
