/* What the families of this folder share. They are made of calls on arrays: each opens a scope for
 * what lies between, and passes its result to the scope around it. */
#ifndef OPS_SRC_COMPOSED_COMPOSE_H
#define OPS_SRC_COMPOSED_COMPOSE_H

#include "array/deferred.h"

#include <ops/array.h>
#include <ops/windows.h>

/* Checks operands, as ops_check_operands, and opens a scope. Null, and an error, where either
 * fails. */
ops_arrays *ops_compose_begin(const char *function, ops_array *const *operands, uint32_t count);

/* Opens a scope within that of a call, which ops_compose_end closes: what a piece of the call makes
 * is then not held until all have been made. Null, and an error, on failure. */
ops_arrays *ops_compose_nest(const ops_array *x);

/* Closes the scope. The result, null after a failure, belongs to the scope around it, or to the
 * caller; an operand becomes a view of itself. */
ops_array *ops_compose_end(ops_arrays *arrays, ops_array *result);

/* The same for several results, of which some may be null; the list is changed. No array is in it
 * twice. */
void ops_compose_end_all(ops_arrays *arrays, ops_array **results, uint32_t count);

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

/* Places of a tensor's own elements. */
void ops_compose_places(uint32_t rank, ops_unfold_places *places);

/* x's elements at their places, with `outside`, a scalar of its type, where there is none. */
ops_array *ops_compose_unfold(const ops_unfold_places *places, ops_array *x, ops_array *outside,
                              uint32_t rank, const int64_t *shape);

/* x in an array of this shape, from the element `before` on, and the value elsewhere: by one
 * kernel, or on processors by a fill and a copy. */
ops_array *ops_compose_pad(const int64_t *before, const int64_t *shape, double value, ops_array *x);

/* The depthwise convolution; `places` of the result, whose channels are last with channels_last.
 * A null bias is none. */
ops_array *ops_compose_depthwise(const ops_depthwise_options *options, bool channels_last,
                                 ops_array *x, ops_array *w, ops_array *bias,
                                 const int64_t *places);

/* bytes times all lengths, or UINT64_MAX where that is more. */
uint64_t ops_compose_bytes(uint64_t bytes, const int64_t *lengths, uint32_t count);

/* The numbers start, start + step, ... of type I64 along an axis of an array of that rank. */
ops_array *ops_compose_count(ops_context *context, uint32_t rank, uint32_t axis, int64_t count,
                             int64_t start, int64_t step);

/* The least value of a type, -infinity of floats that have it. */
double ops_compose_least(hal_type type);

#endif
