/* What the families of this folder share. They are made of calls on arrays: each opens a scope for
 * what lies between, and passes its result to the scope around it. */
#ifndef OPS_SRC_COMPOSED_COMPOSE_H
#define OPS_SRC_COMPOSED_COMPOSE_H

#include "array/deferred.h"

#include <ops/array.h>

/* Checks operands, as ops_check_operands, and opens a scope. Null, and an error, where either
 * fails. */
ops_arrays *ops_compose_begin(const char *function, ops_array *const *operands, uint32_t count);

/* Closes the scope. The result, null after a failure, belongs to the scope around it, or to the
 * caller; an operand becomes a view of itself. */
ops_array *ops_compose_end(ops_arrays *arrays, ops_array *result);

/* A view of the same elements. */
ops_array *ops_compose_view(ops_array *x);

/* A scalar of an array's type. */
ops_array *ops_compose_scalar(const ops_array *x, double value);

/* Copies the lengths; returns the rank. */
uint32_t ops_compose_shape(const ops_array *x, int64_t shape[OPS_MAX_RANK]);

/* F32 for narrow floats, else the type itself: of sums that are rounded once, at the end. */
hal_type ops_compose_sum_type(hal_type type);

/* x in another type; x itself where it has it. */
ops_array *ops_compose_cast(hal_type type, ops_array *x);

/* Slices an axis that it leaves as it is where the part is all of it. */
ops_array *ops_compose_slice(ops_array *x, uint32_t axis, int64_t start, int64_t count,
                             int64_t step);

/* The least value of a type, -infinity of floats that have it. */
double ops_compose_least(hal_type type);

#endif
