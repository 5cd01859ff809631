/* Where a run of dispatches that repeats itself, as a loop does, is cut: at the same dispatch as
 * before, so that whole iterations come again as the same run wherever batches end. */
#ifndef PLUGINS_CUDA_CHAIN_PERIOD_H
#define PLUGINS_CUDA_CHAIN_PERIOD_H

#include "queue.h"

/* How many of `count` dispatches, given by their hashes, come before the cut: all of them where
 * they do not repeat. A loop that was not seen before gets an anchor at its first dispatch. */
uint32_t cuda_period_cut(cuda_loop_anchors *anchors, const uint64_t *hashes, uint32_t count);

#endif
