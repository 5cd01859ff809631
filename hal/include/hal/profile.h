/* What libraries on top of hal tell tools: which of their calls became which commands.
 *
 * HAL_PROFILE=FILE writes a page with the times of queues, calls and kernels, and findings of
 * HAL_SANITIZE name the calls (docs/layers.md). The functions below do nothing without both;
 * callers that compose texts ask hal_profile_is_on first. */
#ifndef HAL_PROFILE_H
#define HAL_PROFILE_H

#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the process writes a profile or checks kernels.
 * Threads: any. Errors: none. */
HAL_API int hal_profile_is_on(void);

/* Begins a group: the commands that are recorded on the queue until hal_profile_group_end are what
 * became of the program's `calls`, words such as "matmul add tanh"; `end` says why no further call
 * is part of the group. Texts are copied, up to 1,000 bytes.
 * Threads: the queue's. Errors: none. */
HAL_API void hal_profile_group_begin(hal_queue *queue, const char *calls, const char *end);

/* Ends the group of the queue.
 * Threads: the queue's. Errors: none. */
HAL_API void hal_profile_group_end(hal_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
