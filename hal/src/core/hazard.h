/* Hazard tracking: which commands of a batch need a barrier before them, by ranges of memory. */
#ifndef HAL_SRC_CORE_HAZARD_H
#define HAL_SRC_CORE_HAZARD_H

#include <hal/ir.h>
#include <stdbool.h>
#include <stdint.h>

#define HAL_HAZARD_RANGES 64    /* tracked since a barrier; more force a new barrier */
#define HAL_HAZARD_WORDS 4      /* 64-bit words of a filter */
#define HAL_HAZARD_CAPACITY 128 /* entries of the array */

/* Bytes `begin` to `end` of memory. */
typedef struct hal_hazard_range {
    const void *memory; /* identifies the plugin's memory, which several blocks are parts of */
    uint64_t begin;
    uint64_t end;
    uint32_t access; /* HAL_ACCESS_* */
} hal_hazard_range;

/* Ranges `first` to `end` were used since the last barrier. With many of them, two Bloom filters
 * over the ranges up to `filtered` spare independent commands a search. Starts as {0}. */
typedef struct hal_hazards {
    uint64_t reads[HAL_HAZARD_WORDS];
    uint64_t writes[HAL_HAZARD_WORDS];
    uint32_t first, filtered, end;
    bool forced; /* the next command with ranges needs a barrier */
    hal_hazard_range ranges[HAL_HAZARD_CAPACITY];
} hal_hazards;

/* Moves the tracked ranges to the front of the array. */
void hal_hazards_move(hal_hazards *hazards);

/* Room for the ranges of the next command, HAL_IR_MAX_BINDINGS entries. */
static inline hal_hazard_range *hal_hazards_next(hal_hazards *hazards)
{
    if (hazards->end + HAL_IR_MAX_BINDINGS > HAL_HAZARD_CAPACITY) {
        hal_hazards_move(hazards);
    }
    return hazards->ranges + hazards->end;
}

/* hal_hazards_note of at least one range. */
bool hal_hazards_note_ranges(hal_hazards *hazards, uint32_t count);

/* Tracks the `count` ranges that were written to hal_hazards_next. Returns true when their command
 * needs a barrier: one of them conflicts with a tracked range, or there are too many to track. A
 * barrier forgets all earlier ranges. */
static inline bool hal_hazards_note(hal_hazards *hazards, uint32_t count)
{
    return count > 0 && hal_hazards_note_ranges(hazards, count);
}

/* Puts a barrier before the next command with ranges: the tracked ranges are no longer exact. */
void hal_hazards_force(hal_hazards *hazards);

/* Forgets all ranges: a batch starts. */
void hal_hazards_clear(hal_hazards *hazards);

#endif
