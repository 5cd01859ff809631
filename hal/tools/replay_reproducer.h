/* The file that hal-replay --bisect writes: a recording (hal/dump.h) of the one command that
 * differs, with the results of the first side as the recorded ones, and next to it the same as
 * text. */
#ifndef HAL_TOOLS_REPLAY_REPRODUCER_H
#define HAL_TOOLS_REPLAY_REPRODUCER_H

#include "replay_side.h"

/* Writes `path`, and `path`.txt with the IR, the grid, and the first bytes that differ.
 *   expected, got  contents of all bindings after the command, of the two sides
 * Errors: IO. */
hal_status replay_reproducer_write(const char *path, const replay_work *work,
                                   uint8_t *const *expected, uint8_t *const *got);

#endif
