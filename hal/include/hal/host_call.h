/* Functions of the program that run in the order of a queue. */
#ifndef HAL_HOST_CALL_H
#define HAL_HOST_CALL_H

#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the program.
 *   status  HAL_OK when the work before it has ended; else the error by which that work, or the
 *           device, was lost, or INVALID_STATE when the queue was destroyed before
 * It may block. It makes no call of hal or ops except releases. */
typedef void (*hal_host_function)(void *user, hal_status status);

typedef enum hal_host_call_flag {
    HAL_HOST_CALL_DETACHED = 1 /* later commands of the queue do not wait for the function */
} hal_host_call_flag;

/* Calls `function` with `user` once, on the host, after all commands that were recorded before on
 * the queue have ended and their writes are visible to the host where memory is mapped. Commands
 * that are recorded after it begin when it has returned, unless it is detached, and see what it
 * wrote to mapped memory that is coherent.
 * The commands before are flushed. hal has no threads: the function runs on a thread that flushes,
 * waits for or destroys any queue of the process, without a lock of hal.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT for null and unknown flags, INVALID_STATE while a graph is in recording,
 * OUT_OF_MEMORY, DEVICE_LOST, those of a flush; the function is not called then. */
HAL_API hal_status hal_queue_host_call(hal_queue *queue, hal_host_function function, void *user,
                                       uint32_t flags);

#ifdef __cplusplus
}
#endif
#endif
