/* Moving elements by index: gather, concatenate, copy, and tensors made of indices. Outputs must
 * not overlap inputs. */
#ifndef OPS_INDEX_H
#define OPS_INDEX_H

#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = the elements of x along `axis` at `indices` (rank 1, I32 or I64): y has x's type, and x's
 * shape with the indices' length at the axis. An index out of range gives 0.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, those of dispatches. */
HAL_API hal_status ops_gather(ops_context *context, int32_t axis, const ops_tensor *x,
                              const ops_tensor *indices, HAL_OUT const ops_tensor *y);

/* y[i, j, ...] = x[i, ..., indices[i, j, ...], ...]: each element is picked along `axis` by the
 * index (I32 or I64) at its own place. y and the indices have one shape, which is x's except for
 * the length at the axis; views with strides of 0 broadcast. An index out of range gives 0.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, those of dispatches. */
HAL_API hal_status ops_take_along_axis(ops_context *context, int32_t axis, const ops_tensor *x,
                                       const ops_tensor *indices, HAL_OUT const ops_tensor *y);

typedef enum ops_scatter_kind {
    OPS_SCATTER_ASSIGN, /* the last update of an element stays */
    OPS_SCATTER_ADD,
    OPS_SCATTER_MULTIPLY,
    OPS_SCATTER_MAX, /* NaN if any is NaN, as MIN */
    OPS_SCATTER_MIN,
    OPS_SCATTER_KIND_COUNT
} ops_scatter_kind;

/* In which order ops_scatter and ops_array_scatter combine the updates of an element, which sums of
 * F32, F16, BF16 and F8_E4M3 depend on. Other kinds and types have the same bits with ORDERED and
 * UNORDERED, except for the bits of a NaN. */
typedef enum ops_scatter_order {
    OPS_SCATTER_ORDERED, /* sums are those of additions in the order of the updates */
    /* Sums of F32 and narrower floats do not depend on the order: integers are added by atomic
     * operations where that takes less time than ORDERED on the device. */
    OPS_SCATTER_UNORDERED,
    OPS_SCATTER_ATOMIC, /* atomic operations for all that they can compute, on any device */
    OPS_SCATTER_ORDER_COUNT
} ops_scatter_order;

/* The most bytes of temporary memory for the elements of y with ORDERED and UNORDERED, where y has
 * more than 4 elements for an update: calls that would take more are sorted. */
#define OPS_SCATTER_BYTES (UINT64_C(64) << 20)

/* Sets the order for calls from now on; at first that of the variable HAL_SCATTER ("ordered",
 * "unordered" or "atomic"), else ORDERED.
 * Threads: the queue's. Errors: none; other values count as ORDERED. */
HAL_API void ops_context_set_scatter(ops_context *context, ops_scatter_order order);

/* Updates the elements of y that indices (I32 or I64) pick along `axis`: y[i, ..., indices[i, j,
 * ...], ...] = update or y o update for updates[i, j, ...]. Updates and indices have one shape,
 * which is y's except for the length at the axis; give indices of whole rows a stride of 0 along
 * the other axes. An index out of range updates nothing.
 *
 * The updates of an element are combined in their order, in the arithmetic of the type (F32 of
 * narrow floats), and rounded once. So the result is the same in every run, and on devices whose
 * arithmetic is exact. The indices are sorted first, in temporary memory as of ops_sort, many of
 * them by as many bits as the length of y's axis has; on processors one work-item for each line
 * goes through its updates instead, without such memory but 4 bytes for each element of y of narrow
 * floats that are added or multiplied, unless OPS_SCATTER_BYTES has them sorted. GPUs do not sort
 * few updates: each element of y looks at all of them, without temporary memory.
 *
 * GPUs do not sort for ASSIGN, for sums of I32 to U64, and for MAX and MIN of all but F64, unless
 * OPS_SCATTER_BYTES has them sorted: atomic operations give the same bits, except for those of a
 * NaN. Temporary memory: 4 bytes for each element of y, of whole rows that are assigned for each
 * row, and none for sums, MAX and MIN of I32 to U64.
 *
 * With ops_context_set_scatter also sums of F32 and narrower floats: y and its updates are rounded
 * to whole multiples of one unit, which depends on the greatest of them, M; these are added without
 * error, and the sum is rounded once. So the result has the same bits in any order, in every run
 * and on every device. Its error is at most half a unit in the last place of the result plus 2^-61
 * (n + 1)^2 M, with n the updates along the axis. A sum is infinite if it is beyond the range, not
 * if a part of it is. Temporary memory: 12 bytes for each element of y, or 260 where y has at most
 * 8,192 elements and it has 256 updates or more for each element along the axis.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, those of ops_sort. */
HAL_API hal_status ops_scatter(ops_context *context, ops_scatter_kind kind, int32_t axis,
                               const ops_tensor *indices, const ops_tensor *updates,
                               HAL_OUT const ops_tensor *y);

/* y = the tensors of `parts` one after the other along `axis`; one type, equal other axes.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, those of dispatches. */
HAL_API hal_status ops_concatenate(ops_context *context, int32_t axis, const ops_tensor *parts,
                                   uint32_t part_count, HAL_OUT const ops_tensor *y);

/* y[i] = start + i * step for a tensor of rank 1 of any type but BOOL, rounded once in F32 and F64
 * (of F32, up to 2^48 elements; narrow floats are rounded from F32); of integers, start and step
 * are whole numbers.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, those of dispatches. */
HAL_API hal_status ops_iota(ops_context *context, double start, double step,
                            HAL_OUT const ops_tensor *y);

/* y[i][j] = 1 where j = indices[i], else 0; the indices are I32 or I64 of any shape, y is of any
 * type and has that shape and one axis more at the end. An index out of range gives a row of zeros.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, those of dispatches. */
HAL_API hal_status ops_one_hot(ops_context *context, const ops_tensor *indices,
                               HAL_OUT const ops_tensor *y);

/* y = x, element by element, of the same shape and type, any strides.
 * Threads: the queue's. Errors: INVALID_ARGUMENT with the shapes, those of dispatches. */
HAL_API hal_status ops_copy(ops_context *context, const ops_tensor *x, HAL_OUT const ops_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
