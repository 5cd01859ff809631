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

/* Updates the elements of y that indices (I32 or I64) pick along `axis`: y[i, ..., indices[i, j,
 * ...], ...] = update or y o update for updates[i, j, ...]. Updates and indices have one shape,
 * which is y's except for the length at the axis; give indices of whole rows a stride of 0 along
 * the other axes. An index out of range updates nothing.
 *
 * The updates of an element are combined in their order, in the arithmetic of the type (F32 of
 * narrow floats), and rounded once. So the result is the same in every run, and on devices whose
 * arithmetic is exact. The indices are sorted first, in temporary memory as of ops_sort, many of
 * them by as many bits as the length of y's axis has; on processors one work-item for each line
 * goes through its updates instead, without such memory.
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
