/* Hazards: which commands of a batch must come after those before them, by ranges of memory. */
#ifndef HAL_SRC_CORE_HAZARD_H
#define HAL_SRC_CORE_HAZARD_H

#include "pool.h"

#define HAL_HAZARD_RANGES 64 /* that are known since a barrier */
#define HAL_HAZARD_WORDS 4   /* of 64 bits, of a filter */
#define HAL_HAZARD_ROOM 128

/* Bytes `begin` to `end` of a block of memory. */
typedef struct hal_hazard_range {
    const hal_memory *memory;
    uint64_t begin;
    uint64_t end;
    uint32_t access; /* HAL_ACCESS_* */
} hal_hazard_range;

/* What was touched since the last barrier: ranges `first` to `end`; begins as {0}. Where there are
 * many, the filters say which blocks may be among those up to `filtered`, so that independent
 * commands need no search. */
typedef struct hal_hazards {
    uint64_t reads[HAL_HAZARD_WORDS];
    uint64_t writes[HAL_HAZARD_WORDS];
    uint32_t first, filtered, end;
    int forced; /* what is next comes after all before */
    hal_hazard_range ranges[HAL_HAZARD_ROOM];
} hal_hazards;

/* Moves what is known to the front. */
void hal_hazards_move(hal_hazards *hazards);

/* Where the next command's ranges are to be written, up to HAL_IR_MAX_BINDINGS. */
static inline hal_hazard_range *hal_hazards_next(hal_hazards *hazards)
{
    if (hazards->end + HAL_IR_MAX_BINDINGS > HAL_HAZARD_ROOM) {
        hal_hazards_move(hazards);
    }
    return hazards->ranges + hazards->end;
}

/* Notes the `count` ranges that were written to hal_hazards_next. Gives 1 when their command has to
 * come after all commands before it: one of the ranges was written since the last barrier, or is
 * written now and was touched, or there are too many to know. Then only these are noted. */
int hal_hazards_note(hal_hazards *hazards, uint32_t count);

/* Makes the next command that touches anything come after all before it: what was noted of them is
 * no longer exact. */
void hal_hazards_force(hal_hazards *hazards);

/* A barrier lies here. */
void hal_hazards_clear(hal_hazards *hazards);

#endif
