/* Hazard tracking within a batch. */
#include "hazard.h"

#include "base/mix.h"

#include <string.h>

#define MAX_SEARCHED 8 /* ranges that a search finds faster than the filters are updated */

/* One of the 256 bits of a filter. */
static uint32_t filter_bit(const void *memory)
{
    return (uint32_t)(hal_mix((uintptr_t)memory) >> 56);
}

/* Adds the ranges that are not in the filters yet. */
static void filters_update(hal_hazards *hazards)
{
    if (hazards->filtered == hazards->first) {
        memset(hazards->reads, 0, sizeof hazards->reads);
        memset(hazards->writes, 0, sizeof hazards->writes);
    }
    for (; hazards->filtered < hazards->end; hazards->filtered++) {
        const hal_hazard_range *range = &hazards->ranges[hazards->filtered];
        const uint32_t bit = filter_bit(range->memory);
        const uint64_t mask = UINT64_C(1) << (bit & 63);
        hazards->writes[bit >> 6] |= range->access & HAL_ACCESS_WRITE ? mask : 0;
        hazards->reads[bit >> 6] |= range->access & HAL_ACCESS_READ ? mask : 0;
    }
}

static bool filters_may_conflict(const hal_hazards *hazards, const hal_hazard_range *range)
{
    const uint32_t bit = filter_bit(range->memory), word = bit >> 6;
    const uint64_t reads = range->access & HAL_ACCESS_WRITE ? hazards->reads[word] : 0;
    return (hazards->writes[word] | reads) >> (bit & 63) & 1;
}

/* Newest ranges first: they conflict most often. */
static bool ranges_conflict(const hal_hazards *hazards, const hal_hazard_range *range)
{
    const hal_hazard_range *first = hazards->ranges + hazards->first;
    for (const hal_hazard_range *other = hazards->ranges + hazards->end; other-- != first;) {
        if (other->memory == range->memory && other->begin < range->end &&
            range->begin < other->end && ((other->access | range->access) & HAL_ACCESS_WRITE)) {
            return true;
        }
    }
    return false;
}

bool hal_hazards_note_ranges(hal_hazards *hazards, uint32_t count)
{
    const uint32_t start = hazards->end, known = start - hazards->first;
    const hal_hazard_range *ranges = hazards->ranges + start;
    bool barrier = hazards->forced || known + count > HAL_HAZARD_RANGES;
    if (known > MAX_SEARCHED && !barrier) {
        filters_update(hazards);
    }
    for (uint32_t i = 0; !barrier && i < count; i++) {
        barrier = (known <= MAX_SEARCHED || filters_may_conflict(hazards, &ranges[i])) &&
                  ranges_conflict(hazards, &ranges[i]);
    }
    if (barrier) {
        hazards->first = hazards->filtered = start;
        hazards->forced = false;
    }
    hazards->end = start + count;
    return barrier;
}

void hal_hazards_move(hal_hazards *hazards)
{
    const uint32_t first = hazards->first;
    memmove(hazards->ranges, hazards->ranges + first,
            (hazards->end - first) * sizeof *hazards->ranges);
    hazards->first = 0;
    hazards->filtered -= first;
    hazards->end -= first;
}

void hal_hazards_force(hal_hazards *hazards)
{
    hazards->forced = true;
}

void hal_hazards_clear(hal_hazards *hazards)
{
    hazards->first = hazards->filtered = hazards->end = 0;
    hazards->forced = false;
}
