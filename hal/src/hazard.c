/* Hazards between the commands of a batch. Called by queue.c for each command. */
#include "hazard.h"

#include <string.h>

static uint32_t filter_bit(const hal_memory *memory);
static int conflicts(const hal_hazards *hazards, const hal_hazard_range *range);
static void note(hal_hazards *hazards, const hal_hazard_range *range);

int hal_hazards_note(hal_hazards *hazards, const hal_hazard_range *ranges, uint32_t count)
{
    int after = hazards->count + count > HAL_HAZARD_RANGES;
    for (uint32_t i = 0; !after && i < count; i++) {
        after = conflicts(hazards, &ranges[i]);
    }
    if (after) {
        hal_hazards_clear(hazards);
    }
    for (uint32_t i = 0; i < count; i++) {
        note(hazards, &ranges[i]);
    }
    return after;
}

void hal_hazards_force(hal_hazards *hazards)
{
    for (uint32_t i = hazards->count; i < HAL_HAZARD_RANGES; i++) {
        hazards->ranges[i] = (hal_hazard_range){0};
    }
    hazards->count = HAL_HAZARD_RANGES;
}

void hal_hazards_clear(hal_hazards *hazards)
{
    memset(hazards->reads, 0, sizeof hazards->reads);
    memset(hazards->writes, 0, sizeof hazards->writes);
    hazards->count = 0;
}

/* One of 256 bits. */
static uint32_t filter_bit(const hal_memory *memory)
{
    return (uint32_t)(((uint64_t)(uintptr_t)memory >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static int conflicts(const hal_hazards *hazards, const hal_hazard_range *range)
{
    const uint32_t bit = filter_bit(range->memory);
    const uint64_t mask = UINT64_C(1) << (bit & 63);
    const int writes = (range->access & HAL_ACCESS_WRITE) != 0;
    const uint64_t met = hazards->writes[bit >> 6] | (writes ? hazards->reads[bit >> 6] : 0);
    if (!(met & mask)) {
        return 0;
    }
    for (uint32_t i = 0; i < hazards->count; i++) {
        const hal_hazard_range *other = &hazards->ranges[i];
        if (other->memory == range->memory && other->begin < range->end &&
            range->begin < other->end && (writes || (other->access & HAL_ACCESS_WRITE))) {
            return 1;
        }
    }
    return 0;
}

static void note(hal_hazards *hazards, const hal_hazard_range *range)
{
    const uint32_t bit = filter_bit(range->memory);
    const uint64_t mask = UINT64_C(1) << (bit & 63);
    if (range->access & HAL_ACCESS_WRITE) {
        hazards->writes[bit >> 6] |= mask;
    }
    if (range->access & HAL_ACCESS_READ) {
        hazards->reads[bit >> 6] |= mask;
    }
    hazards->ranges[hazards->count++] = *range;
}
