/* ops_case.h: what the cases of the op library share: operands with a layout in memory, canaries
 * around and between their elements, and their elements on the host in row-major order. */
#ifndef HAL_CONFORMANCE_OPS_CASE_H
#define HAL_CONFORMANCE_OPS_CASE_H

#include "case.h"
#include "number.h"
#include "random.h"
#include "redzone.h"
#include "reference.h"

typedef enum operand_layout {
    LAYOUT_PLAIN,     /* row-major, without gaps */
    LAYOUT_OFFSET,    /* the same, one element after an aligned address */
    LAYOUT_PERMUTED,  /* the first axis fastest */
    LAYOUT_STRIDED,   /* every second element */
    LAYOUT_REVERSED,  /* the last axis backwards */
    LAYOUT_BROADCAST, /* the first axis has length 1 and is stretched; inputs only */
    LAYOUT_COUNT
} operand_layout;

const char *layout_name(operand_layout layout);

typedef struct operand {
    hal_type type;
    red_zone zone;
    ops_tensor tensor;
    size_t count;      /* logical elements */
    uint8_t *elements; /* their bits, row-major */
} operand;

/* Makes an operand of zeros on the host; nothing is on the device yet. False after reporting. */
bool operand_create(case_run *run, operand *made, hal_type type, uint32_t rank,
                    const int64_t *shape, operand_layout layout);

/* Fills with random numbers in [low, high); of integer types with whole ones. */
void operand_fill(operand *filled, random_state *random, double low, double high);

/* Puts the elements on the device; or poison, for what is to be written. */
bool operand_upload(case_run *run, operand *uploaded);
bool operand_poison(case_run *run, operand *poisoned);

/* Reads the elements back to `elements` of the host; canaries around and in the gaps are
 * checked. */
bool operand_download(case_run *run, operand *downloaded, const char *what);

void operand_release(operand *released);

/* Value of a logical element. */
static inline double operand_get(const operand *o, size_t index)
{
    return number_get(o->type, o->elements, index);
}

/* Whether a value is one that the device may flush to zero, since it does not claim otherwise. */
bool ops_may_flush(const case_run *run, hal_type type, long double value);

/* Reports a comparison that failed. */
bool ops_report(case_run *run, const comparison *found, const char *what);

#endif
