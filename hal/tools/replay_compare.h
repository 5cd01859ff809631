/* Comparing what a replay gave with what was recorded. Called by replay_run.c. */
#ifndef HAL_TOOLS_REPLAY_COMPARE_H
#define HAL_TOOLS_REPLAY_COMPARE_H

#include <hal/ir.h>

/* How far floats may be apart: by either of them. Integers, bytes and truth values are equal. */
typedef struct replay_bound {
    double tolerance; /* of the largest magnitude in the range; below 0: what suits the type */
    uint64_t ulps;    /* steps between neighbouring numbers; UINT64_MAX: not asked for */
} replay_bound;

/* A range of elements. The worst are each the largest of all elements. */
typedef struct replay_comparison {
    uint64_t elements;
    uint64_t unequal; /* in bits, where not both are NaN */
    uint64_t beyond;  /* the bound */
    uint64_t index;   /* of the element that is furthest off */
    double here, recorded;
    double absolute, relative;
    uint64_t ulps;
} replay_comparison;

/* Elements of `type` from two places; NONE stands for bytes. Bytes after the last whole element
 * are compared as bytes. */
void replay_compare(hal_type type, const uint8_t *here, const uint8_t *recorded, uint64_t bytes,
                    const replay_bound *bound, replay_comparison *result);

/* The tolerance that suits a type: what sums in another order may differ by. */
double replay_tolerance(hal_type type);

#endif
