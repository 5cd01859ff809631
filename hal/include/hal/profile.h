/* What libraries on top of hal tell tools: which of their calls became which commands.
 *
 * HAL_PROFILE=FILE writes a page with the times of queues, calls and kernels, findings of
 * HAL_SANITIZE name the calls, and HAL_DUMP=calls keeps their values (docs/layers.md). The
 * functions below do nothing without one of them;
 * callers that compose texts ask hal_profile_is_on first. */
#ifndef HAL_PROFILE_H
#define HAL_PROFILE_H

#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the process writes a profile, checks kernels or keeps the values of calls.
 * Threads: any. Errors: none. */
HAL_API int hal_profile_is_on(void);

/* Whether fusion is off, by HAL_DUMP=calls,unfused: each call records its own commands.
 * Threads: any. Errors: none. */
HAL_API int hal_profile_is_unfused(void);

/* Begins a group: the commands that are recorded on the queue until hal_profile_group_end are what
 * became of the program's `calls`, words such as "matmul add tanh"; `end` says why no further call
 * is part of the group. Texts are copied, up to 1,000 bytes.
 * Threads: the queue's. Errors: none. */
HAL_API void hal_profile_group_begin(hal_queue *queue, const char *calls, const char *end);

/* Ends the group of the queue.
 * Threads: the queue's. Errors: none. */
HAL_API void hal_profile_group_end(hal_queue *queue);

/* The commands of the group store the value of call number `number` of the program in a range.
 * HAL_DUMP=calls keeps values, so that hal-replay compares runs whose calls became other commands.
 *   type    of the elements
 *   number  in the order of the program's calls, the same in all its runs
 *   call    a word such as "add"; copied
 * Threads: the queue's. Errors: none. */
HAL_API void hal_profile_value(hal_queue *queue, const hal_range *range, hal_type type,
                               uint64_t number, const char *call);

/* Sets the number of operations of the kernel's dispatches with this grid and these scalars, which
 * the profile compares with the device's rates (hal/peaks.h). To be called before the first such
 * dispatch is submitted; graphs and other queues may repeat it without another call.
 *   operations       a multiply-add counts as two
 *   type             of what is multiplied
 *   on_matrix_units  not 0: matrix units do them
 * Threads: any. Errors: none. */
HAL_API void hal_profile_operations(const hal_kernel *kernel, const uint32_t grid[3],
                                    const void *scalars, uint32_t scalar_bytes, double operations,
                                    hal_type type, int on_matrix_units);

#ifdef __cplusplus
}
#endif
#endif
