/* Compares results of a replay with recorded ones. */
#ifndef HAL_TOOLS_REPLAY_COMPARE_H
#define HAL_TOOLS_REPLAY_COMPARE_H

#include <hal/ir.h>

/* The bound of differences of floats; either one suffices. Other types are equal. */
typedef struct replay_bound {
    double tolerance; /* relative to the largest magnitude in the range; negative: by type */
    uint64_t ulps;    /* steps between adjacent numbers; UINT64_MAX: no bound */
} replay_bound;

/* The comparison of a range; distances are the largest of all elements. */
typedef struct replay_comparison {
    uint64_t elements;
    uint64_t unequal; /* in bits, unless both are NaN */
    uint64_t beyond;  /* outside of the bound */
    uint64_t index;   /* of the element with the largest distance */
    double here, recorded;
    double absolute, relative;
    uint64_t ulps;
} replay_comparison;

/* Compares elements of `type`, or bytes for NONE. Bytes after the last whole element are compared
 * as bytes. */
void replay_compare(hal_type type, const uint8_t *here, const uint8_t *recorded, uint64_t bytes,
                    const replay_bound *bound, replay_comparison *result);

#endif
