/* loop.c: loops and branches on values of the device. Newton's iterations for square roots, until
 * the greatest residual is small: the roots, and the same bits and the same number of iterations
 * however rarely the host reads the condition. */
#include <math.h>
#include <ops/loop.h>

#include "case/cases.h"
#include "case/reference.h"
#include "ops/array_fixture.h"
#include "ops/fixture.h"

enum { NUMBERS = 37, STATE = 4, STRIDES = 4 };

/* The state: numbers, their roots so far, the greatest residual, the number of iterations. */
static ops_array *goes_on(void *user, ops_array *const *state)
{
    (void)user;
    return ops_array_binary_scalar(OPS_GT, state[2], 1e-5);
}

static hal_status step(void *user, ops_array *const *state, ops_array **next)
{
    (void)user;
    ops_array *root = ops_mul_scalar(ops_add(state[1], ops_div(state[0], state[1])), 0.5);
    next[0] = state[0];
    next[1] = root;
    next[2] = ops_reduce_max(ops_abs(ops_sub(root, state[1])), 0);
    next[3] = ops_add_scalar(state[3], 1);
    return HAL_OK;
}

static hal_status negated(void *user, ops_array *const *operands, ops_array **results)
{
    (void)user;
    results[0] = ops_neg(operands[0]);
    return HAL_OK;
}

static hal_status as_before(void *user, ops_array *const *operands, ops_array **results)
{
    (void)user;
    results[0] = operands[0];
    return HAL_OK;
}

static int32_t find_roots(array_run *r, uint32_t stride, float *roots)
{
    case_run *run = r->run;
    int32_t count = 0;
    const ops_loop_options options = {.size = sizeof options, .stride = stride, .limit = 50};
    scope_begin(run);
    ops_array *x = r->leaves[0], *results[STATE];
    ops_array *const state[STATE] = {x, x, ops_array_scalar(run->ops, HAL_TYPE_F32, 1),
                                     ops_array_scalar(run->ops, HAL_TYPE_I32, 0)};
    case_ok(run, ops_array_while(&options, goes_on, step, NULL, state, STATE, results),
            "ops_array_while");
    case_ok(run, ops_array_read(results[1], NUMBERS * sizeof *roots, roots), "the roots");
    case_ok(run, ops_array_read(results[3], sizeof count, &count), "the number of iterations");
    scope_end(run);
    return count;
}

static void run_loop(case_run *run, const void *parameters)
{
    (void)parameters;
    const int64_t shape[1] = {NUMBERS};
    float numbers[NUMBERS], roots[STRIDES][NUMBERS];
    array_run r = {.run = run, .random = {run->seed}};
    array_add_leaf(&r, HAL_TYPE_F32, 1, shape, 0.5, 90.0, numbers);
    const int32_t count = find_roots(&r, 1, roots[0]);
    case_check(run, count > 3 && count < 50, "Newton's method took %d iterations", (int)count);
    for (int i = 0; i < NUMBERS; i++) {
        case_check(run, fabs((double)roots[0][i] - sqrt((double)numbers[i])) < 1e-5,
                   "the root of %g is %g", (double)numbers[i], (double)roots[0][i]);
    }
    for (uint32_t s = 1; s < STRIDES; s++) {
        static const uint32_t strides[STRIDES] = {1, 2, 7, 50};
        comparison found;
        case_check(run, find_roots(&r, strides[s], roots[s]) == count,
                   "a stride of %u changes the number of iterations", strides[s]);
        if (!compare_bits(HAL_TYPE_F32, roots[s], roots[0], NUMBERS, false, &found)) {
            case_report(run, &found, "a loop with fewer reads compared with one that reads");
        }
    }
}

static void run_branch(case_run *run, const void *parameters)
{
    (void)parameters;
    const int64_t shape[1] = {NUMBERS};
    float numbers[NUMBERS], got[NUMBERS];
    array_run r = {.run = run, .random = {run->seed}};
    array_add_leaf(&r, HAL_TYPE_F32, 1, shape, -9.0, -1.0, numbers);
    scope_begin(run);
    ops_array *is_negative = ops_array_binary_scalar(OPS_LT, ops_reduce_sum(r.leaves[0], 0), 0), *x;
    case_ok(run, ops_array_cond(is_negative, negated, as_before, NULL, r.leaves, 1, &x, 1),
            "ops_array_cond");
    is_negative = ops_array_binary_scalar(OPS_LT, ops_reduce_sum(x, 0), 0);
    case_ok(run, ops_array_cond(is_negative, negated, as_before, NULL, &x, 1, &x, 1),
            "ops_array_cond again");
    case_ok(run, ops_array_read(x, sizeof got, got), "ops_array_read");
    for (int i = 0; i < NUMBERS; i++) {
        case_check(run, got[i] == -numbers[i], "%g became %g", (double)numbers[i], (double)got[i]);
    }
    scope_end(run);
}

void cases_ops_loop(case_list *list)
{
    const unsigned long long seed = list->seed;
    case_add(list, run_loop, NULL, 0, "ops/loop(while,seed=%llu)", seed);
    case_add(list, run_branch, NULL, 0, "ops/loop(cond,seed=%llu)", seed);
}
