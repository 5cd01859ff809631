/* Period detection in a run of dispatches, see chain/period.h. */
#include "chain/period.h"

/* The smallest distance at which all hashes repeat: the count less the longest part that is both a
 * prefix and a suffix (Knuth, Morris and Pratt, "Fast pattern matching in strings", 1977). */
static uint32_t period_find(const uint64_t *hashes, uint32_t count)
{
    uint16_t borders[CUDA_CHAIN_MAX]; /* of each prefix: the length of its longest border */
    uint32_t border = 0;
    borders[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        while (border > 0 && hashes[i] != hashes[border]) {
            border = borders[border - 1];
        }
        border += hashes[i] == hashes[border];
        borders[i] = (uint16_t)border;
    }
    return count - border;
}

/* The index in the first period of a dispatch at which an earlier loop was cut; else 0, where the
 * new anchor is. */
static uint32_t anchor_find(cuda_loop_anchors *anchors, const uint64_t *hashes, uint32_t period)
{
    for (uint32_t i = 0; i < period; i++) {
        for (uint32_t k = 0; k < CUDA_ANCHORS; k++) {
            if (anchors->hashes[k] == hashes[i]) {
                return i;
            }
        }
    }
    anchors->hashes[anchors->next++ % CUDA_ANCHORS] = hashes[0];
    return 0;
}

uint32_t cuda_period_cut(cuda_loop_anchors *anchors, const uint64_t *hashes, uint32_t count)
{
    const uint32_t period = period_find(hashes, count);
    if (period > count / 2) {
        return count;
    }
    const uint32_t anchor = anchor_find(anchors, hashes, period);
    return anchor > 0 ? anchor : count / period * period;
}
