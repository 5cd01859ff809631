/* Copies of large blocks between host memories by several threads: one thread moves 6 to 12 GB/s on
 * servers whose bus moves 55. The helper threads live from begin to end, within one call of the
 * program, so exit and fork meet none. */
#ifndef HAL_SRC_BASE_COPY_WORKERS_H
#define HAL_SRC_BASE_COPY_WORKERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HAL_COPY_WORKERS_HELPERS = 7, /* at most */
    HAL_COPY_WORKERS_COPIES = 2   /* that are added and not finished, at most */
};

/* A copy; members take the next block of it, so that one who starts late delays nobody. */
typedef struct hal_worker_copy {
    char *target;
    const char *source;
    uint64_t bytes, taken;
    _Atomic uint32_t busy; /* members that copy a block */
} hal_worker_copy;

typedef struct hal_copy_workers {
    pthread_mutex_t lock;
    pthread_cond_t added, done;
    pthread_t helpers[HAL_COPY_WORKERS_HELPERS];
    uint32_t helper_count;
    hal_worker_copy copies[HAL_COPY_WORKERS_COPIES]; /* a ring */
    uint32_t finished;                               /* copies */
    _Atomic uint32_t posted;                         /* copies that were added, and 1 for the end */
    bool ends;
} hal_copy_workers;

/* Starts the helpers for copies of `bytes` bytes in all. There are none where they would not help,
 * as below 2 MiB, or cannot be had. */
void hal_copy_workers_begin(hal_copy_workers *workers, uint64_t bytes);

/* Adds a copy, which helpers begin. Threads: the one that called hal_copy_workers_begin, as for the
 * others. */
void hal_copy_workers_add(hal_copy_workers *workers, void *target, const void *source,
                          uint64_t bytes);

/* Copies along, and returns when the oldest copy that was added is done. */
void hal_copy_workers_finish(hal_copy_workers *workers);

/* Adds a copy and finishes it; no other is unfinished. */
void hal_copy_workers_copy(hal_copy_workers *workers, void *target, const void *source,
                           uint64_t bytes);

/* Ends the helpers, which finish what was added. */
void hal_copy_workers_end(hal_copy_workers *workers);

#endif
