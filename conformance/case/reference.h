/* reference.h: comparing what a device computed with a reference, element by element, and saying
 * what was worst. Bounds come from the callers, who take them from the op's or opcode's
 * contract. */
#ifndef CONFORMANCE_CASE_REFERENCE_H
#define CONFORMANCE_CASE_REFERENCE_H

#include <hal/ir.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Result of a comparison. `worst` is in its unit: ULP, or a fraction of the bound. */
typedef struct comparison {
    hal_type type;
    const char *unit;
    double bound;
    size_t count;
    size_t wrong;
    size_t worst_index;
    double worst;
    uint64_t actual; /* bits, at the worst index */
    long double expected;
} comparison;

/* Distance in units in the last place of `type` at the reference, with its fraction; for integers
 * and BOOL 0 or infinity. Rules for infinities, NaN and zeros: ulp.h. */
double reference_ulps(hal_type type, uint64_t actual, long double expected);

/* Every element within `bound` ULP of its reference. */
bool compare_ulps(hal_type type, const void *actual, const long double *expected, size_t count,
                  double bound, comparison *found);

/* |actual - expected| <= bounds[i] for every element; a NaN or infinity has to be the expected one.
 * The worst is given in parts of its bound. */
bool compare_bounds(hal_type type, const void *actual, const long double *expected,
                    const double *bounds, size_t count, comparison *found);

/* The same bits; with `any_nan` every NaN of a float type is as good as another. */
bool compare_bits(hal_type type, const void *actual, const void *expected, size_t count,
                  bool any_nan, comparison *found);

/* "3 of 1000 are wrong; worst at index 17: 1.5 (0x3fc00000) instead of 2 (...)". */
void comparison_text(const comparison *found, char *text, size_t bytes);

#endif
