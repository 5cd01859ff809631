/* Copies of large blocks between host memories by several threads: one thread moves 6 to 12 GB/s on
 * servers whose bus moves 55. The helper threads live from begin to end, within one call of the
 * program, so exit and fork meet none. */
#ifndef HAL_SRC_BASE_COPY_TEAM_H
#define HAL_SRC_BASE_COPY_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    HAL_COPY_TEAM_HELPERS = 7, /* at most */
    HAL_COPY_TEAM_COPIES = 2   /* that are added and not finished, at most */
};

/* A copy; members take the next block of it, so that one who starts late delays nobody. */
typedef struct hal_team_copy {
    char *target;
    const char *source;
    uint64_t bytes, taken;
    _Atomic uint32_t busy; /* members that copy a block */
} hal_team_copy;

typedef struct hal_copy_team {
    pthread_mutex_t lock;
    pthread_cond_t added, done;
    pthread_t helpers[HAL_COPY_TEAM_HELPERS];
    uint32_t helper_count;
    hal_team_copy copies[HAL_COPY_TEAM_COPIES]; /* a ring */
    uint32_t finished;                          /* copies */
    _Atomic uint32_t posted;                    /* copies that were added, and 1 for the end */
    int ends;
} hal_copy_team;

/* Starts the helpers for copies of `bytes` bytes in all. There are none where they would not help,
 * as below 2 MiB, or cannot be had. */
void hal_copy_team_begin(hal_copy_team *team, uint64_t bytes);

/* Adds a copy, which helpers begin. Threads: the one that began the team, as for the others. */
void hal_copy_team_add(hal_copy_team *team, void *target, const void *source, uint64_t bytes);

/* Copies along, and returns when the oldest copy that was added is done. */
void hal_copy_team_finish(hal_copy_team *team);

/* Adds a copy and finishes it; no other is unfinished. */
void hal_copy_team_copy(hal_copy_team *team, void *target, const void *source, uint64_t bytes);

/* Ends the helpers, which finish what was added. */
void hal_copy_team_end(hal_copy_team *team);

#endif
