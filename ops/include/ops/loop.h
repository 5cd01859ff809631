/* Loops and branches on values of the device: solvers, decoding until an end is found.
 *
 *     static ops_array *goes_on(void *user, ops_array *const *s)   // while the residual is large
 *     {
 *         return ops_array_binary_scalar(OPS_GT, s[1], 1e-6);
 *     }
 *     static hal_status step(void *user, ops_array *const *s, ops_array **next)
 *     {
 *         ops_array *residual = residual_of(user, s[0]);
 *         next[0] = ops_sub(s[0], ops_mul_scalar(residual, 0.5));
 *         next[1] = ops_reduce_max(ops_abs(residual), 0);
 *         return HAL_OK;
 *     }
 *     ops_array_while(NULL, goes_on, step, user, state, 2, results);
 *
 * The callbacks make arrays as any other code does, and their calls are fused by the same rules.
 * They are called in a scope, so what they make in between needs no release. */
#ifndef OPS_LOOP_H
#define OPS_LOOP_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_MAX_LOOP_STATE 16u

/* Whether a loop goes on in this state: a BOOL array of one element. Null, and an error, ends the
 * loop with that error. */
typedef ops_array *(*ops_loop_condition)(void *user, ops_array *const *state);

/* Makes other arrays of some: the next state of a loop, the results of a branch. They may be the
 * operands, or one array twice. A status other than HAL_OK, and null arrays, end the call with that
 * error. */
typedef hal_status (*ops_loop_body)(void *user, ops_array *const *operands, ops_array **results);

/* With all fields but the size 0 it has the defaults. */
typedef struct ops_loop_options {
    uint32_t size;   /* sizeof(ops_loop_options) */
    uint32_t stride; /* iterations between reads of the condition by the host; 0: 1 */
    uint64_t limit;  /* most iterations; 0: no limit */
} ops_loop_options;

#define OPS_LOOP_OPTIONS_DEFAULT         \
    {                                    \
        .size = sizeof(ops_loop_options) \
    }

/* state = body(state) while condition(state), at most options.limit times; `options` may be null.
 * Types and shapes of the state do not change. An iteration is computed together with the condition
 * after it, in as few kernels as fusion gives, and then the host reads that condition.
 * With a stride of s the host reads every s-th condition: after an iteration whose condition is
 * false the state stays as it is, by ops_array_where on the device, so results are the same, and up
 * to s - 1 bodies are computed in vain. A limit of at most s takes no read at all: then the loop
 * may be part of a graph.
 * `results` may be `state`, whose arrays keep their references.
 * Ownership: the results are the scope's or the caller's. Threads: the queue's.
 * Errors: results are null then. INVALID_ARGUMENT for a count beyond 1 to OPS_MAX_LOOP_STATE, a
 * condition that is not one BOOL, a next state of another type or shape; INVALID_STATE where a
 * graph is recorded and the host would read; those of the callbacks, of ops_array_evaluate and
 * _read. */
HAL_API hal_status ops_array_while(const ops_loop_options *options, ops_loop_condition condition,
                                   ops_loop_body body, void *user, ops_array *const *state,
                                   uint32_t count, HAL_OUT ops_array **results);

/* results = if_true(operands) where the condition, a BOOL array of one element, is true, else
 * if_false(operands): the host reads it and calls one of the two. Each makes `result_count` arrays
 * of any types and shapes. Where both are cheap, or within a graph, ops_array_where needs no read.
 * Ownership: the results are the scope's or the caller's. Threads: the queue's.
 * Errors: as ops_array_while. */
HAL_API hal_status ops_array_cond(ops_array *condition, ops_loop_body if_true,
                                  ops_loop_body if_false, void *user, ops_array *const *operands,
                                  uint32_t operand_count, HAL_OUT ops_array **results,
                                  uint32_t result_count);

#ifdef __cplusplus
}
#endif
#endif
