/* The threads of a device. A call runs one function on the calling thread and on those of the pool
 * that come in time: the caller never waits for a thread that has not begun. So a thread that the
 * system schedules late costs parallelism, not time. */
#ifndef PLUGINS_CPU_THREADS_POOL_H
#define PLUGINS_CPU_THREADS_POOL_H

#include <stdint.h>

typedef struct cpu_thread_pool cpu_thread_pool;

/* Called with the thread's number, which is the same in all calls: 0 for the caller, 1 up to the
 * pool's size for the others. The function must complete the work whatever threads come. */
typedef void cpu_thread_function(void *context, uint32_t thread);

/* Creates the pool of a device with `threads` threads, the calling one included. Starts fewer if
 * the system refuses more; returns null when the host has no memory. */
cpu_thread_pool *cpu_thread_pool_create(uint32_t threads);

/* Ends the threads. No call may be running. */
void cpu_thread_pool_destroy(cpu_thread_pool *pool);

/* Returns the number of threads that take part at most, the calling one included. */
uint32_t cpu_thread_pool_size(const cpu_thread_pool *pool);

/* Calls `function` on up to `threads` threads and returns when all calls have.
 * Threads: any; calls from several threads take turns. */
void cpu_thread_pool_run(cpu_thread_pool *pool, uint32_t threads, cpu_thread_function *function,
                         void *context);

/* The same on the calling thread alone while another call runs.
 * Threads: any. */
void cpu_thread_pool_run_now(cpu_thread_pool *pool, uint32_t threads, cpu_thread_function *function,
                             void *context);

/* Tells the processor that this is a loop that waits. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* One turn of a loop that waits for work of other threads; `turn` counts from 0. After some turns
 * it yields, because the thread that it waits for may need this processor. */
void cpu_wait_turn(uint32_t turn);

#endif
