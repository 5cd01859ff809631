/* Hazards: which commands of a batch must come after those before them, by ranges of memory. */
#ifndef HAL_SRC_HAZARD_H
#define HAL_SRC_HAZARD_H

#include "pool.h"

#define HAL_HAZARD_RANGES 64
#define HAL_HAZARD_WORDS 4 /* of 64 bits, of a filter */

/* Bytes `begin` to `end` of a block of memory. */
typedef struct hal_hazard_range {
    const hal_memory *memory;
    uint64_t begin;
    uint64_t end;
    uint32_t access; /* HAL_ACCESS_* */
} hal_hazard_range;

/* What was touched since the last barrier; begins as {0}. The filters say which blocks may be
 * among the ranges, so that independent commands need no search. */
typedef struct hal_hazards {
    uint64_t reads[HAL_HAZARD_WORDS];
    uint64_t writes[HAL_HAZARD_WORDS];
    uint32_t count;
    hal_hazard_range ranges[HAL_HAZARD_RANGES];
} hal_hazards;

/* Notes what a command touches. Gives 1 when it has to come after all commands before it: one of
 * the ranges was written since the last barrier, or is written now and was touched, or there are
 * too many to know. Then only its own ranges are noted. At most HAL_IR_MAX_BINDINGS ranges. */
int hal_hazards_note(hal_hazards *hazards, const hal_hazard_range *ranges, uint32_t count);

/* Makes the next command that touches anything come after all before it: what was noted of them is
 * no longer exact. */
void hal_hazards_force(hal_hazards *hazards);

/* A barrier lies here. */
void hal_hazards_clear(hal_hazards *hazards);

#endif
