/* hal-replay --unfused: compares the values of calls in two recordings of one program, with and
 * without fusion. Called by hal_replay.c. */
#ifndef HAL_TOOLS_REPLAY_FUSION_H
#define HAL_TOOLS_REPLAY_FUSION_H

#include "replay_compare.h"
#include "replay_file.h"

/* Prints the first call whose value in `fused` is beyond the bound of that in `unfused`, with the
 * kernel that stored it, and writes the kernel's command to `reproducer`. Nothing runs.
 * Returns the exit status of hal-replay. */
int replay_fusion_compare(replay_file *fused, replay_file *unfused, const replay_bound *bound,
                          const char *reproducer);

#endif
