/* Ranges of integers of 32 bits: bounds that mostly are the same for all work-items of a group, so
 * that a check of both is cheaper than one of each work-item. For the pass math. */
#ifndef HAL_SRC_IR_INSTRUMENT_RANGE_H
#define HAL_SRC_IR_INSTRUMENT_RANGE_H

#include "instrument.h"

/* Facts of a pass for each record: where its range is. */
enum {
    HAL_IR_RANGE_LOW,
    HAL_IR_RANGE_HIGH,
    HAL_IR_RANGE_HOLDS,
    HAL_IR_RANGE_SIZE,
    HAL_IR_RANGE_FACTS
};

/* Bounds of a value in whole numbers: that of a sum, difference or product is not wrapped, and the
 * 32 bits of others are read as a signed number. */
typedef struct hal_ir_range {
    hal_ir_value low, high; /* I64, both included; equal for one number; NONE: not known */
    hal_ir_value holds;     /* the bounds count where it is true; NONE: always */
    uint32_t bits;          /* no bound's size is above 2^bits, at most 62 */
    bool is_natural;        /* the bounds are known to be 0 or more */
} hal_ir_range;

/* Notes the range of the present record: before it is appended, and after it for records that are
 * made from nothing. `facts`: of the pass, HAL_IR_FACTS for each record, the range's first. */
void hal_ir_range_note(hal_ir_instrumentation *s, hal_ir_value *facts);
void hal_ir_range_note_leaf(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value);

/* Whether all numbers of a record's range are numbers of its type, as a BOOL; NONE: not known. */
hal_ir_value hal_ir_range_fits(hal_ir_instrumentation *s, const hal_ir_value *facts,
                               hal_ir_value old);

#endif
