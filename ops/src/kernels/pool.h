/* Pooling by windows in one kernel, in which coordinates beyond x are tested, and its gradient. */
#ifndef OPS_SRC_KERNELS_POOL_H
#define OPS_SRC_KERNELS_POOL_H

#include "pool_form.h"

#include "tensor/context.h"

/* y [N, C, places] = the maximum or average of each window of x [N, C, lengths], of one type, and
 * `places` (I64) where the maximum is in the spatial axes of x: the first one, or the last NaN.
 * Null: y or `places` is not computed; `places` are those of maxima. Elements are combined in the
 * order of the window, F32 for narrow floats, and rounded once. */
hal_status ops_pool_windows(ops_context *context, const ops_pool_form *form, const ops_tensor *x,
                            const ops_tensor *y, const ops_tensor *places);

/* dx [N, C, lengths] = for each element the sum over the windows that it is in, in their order, of
 * dy [N, C, places] over what the average was divided by, or with OPS_POOL_PLACES of those whose
 * maximum is at `places`, which is null otherwise. Sums are divided by what all windows count along
 * an axis, dy by what differs. F32 for narrow floats, rounded once. */
hal_status ops_pool_gradient(ops_context *context, const ops_pool_form *form, const ops_tensor *dy,
                             const ops_tensor *places, const ops_tensor *dx);

/* The windows that an element is in, at most: that of ops_pool_gradient is OPS_POOL_ELEMENTS. */
int64_t ops_pool_windows_of_element(const ops_pool_form *form);

#endif
