/* Complex arrays as pairs of real ones, for the files of the family. */
#ifndef OPS_SRC_COMPOSED_COMPLEX_PARTS_H
#define OPS_SRC_COMPOSED_COMPLEX_PARTS_H

#include "compose.h"

#include <ops/complex.h>

/* Real arrays of one shape, whose last axis has length 1; null after a failure. */
typedef struct ops_complex_parts {
    ops_array *re, *im;
} ops_complex_parts;

/* Checks that x is complex. */
hal_status ops_complex_check(const char *function, const char *argument, const ops_array *x);

/* The parts of x: views, or what x will be joined of. */
ops_complex_parts ops_complex_split(ops_array *x);

/* The array of parts. */
ops_array *ops_complex_join_parts(ops_complex_parts parts);

ops_complex_parts ops_complex_multiply_parts(ops_complex_parts x, ops_complex_parts y);

#endif
