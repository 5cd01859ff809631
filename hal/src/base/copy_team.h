/* Copies of large blocks between host memories by several threads: one thread moves 12 GB/s on a
 * server whose bus moves 55. The helper threads live from begin to end, within one call of the
 * program, so exit and fork meet none. Used by core/transfer.c. */
#ifndef HAL_SRC_BASE_COPY_TEAM_H
#define HAL_SRC_BASE_COPY_TEAM_H

#include <stdint.h>

typedef struct hal_copy_team hal_copy_team;

/* Starts the helpers for copies of `bytes` bytes in all. Null where none would help, as below
 * 16 MiB, or can be had; hal_copy_team_copy then copies alone. */
hal_copy_team *hal_copy_team_begin(uint64_t bytes);

/* Copies, and returns when all is copied. Threads: the one that began the team. */
void hal_copy_team_copy(hal_copy_team *team, void *target, const void *source, uint64_t bytes);

/* Ends the helpers. Null is allowed. */
void hal_copy_team_end(hal_copy_team *team);

#endif
