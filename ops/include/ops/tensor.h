/* Contexts and tensors: where operations are recorded, and what they work on.
 *
 * A context is a queue with a cache of kernels. A tensor is a typed, strided view of a buffer,
 * passed by pointer and copied freely; it holds no reference. Functions record work on the
 * context's queue and return at once; a buffer may be released as soon as the call that names it
 * has returned.
 *
 * HAL_OUT marks what a call writes: the pointee, or the elements of a const ops_tensor. */
#ifndef OPS_TENSOR_H
#define OPS_TENSOR_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Axes of a tensor at most. */
#define OPS_MAX_RANK 16u

typedef struct ops_context ops_context;

/* Element (i0, i1, ...) is at offset + i0 * stride[0] + i1 * stride[1] + ... elements. A stride
 * may be 0 (broadcast, inputs only) or negative. Rank 0 is one element. */
typedef struct ops_tensor {
    hal_buffer *buffer;
    hal_type type;
    uint32_t rank;
    int64_t offset;
    int64_t shape[OPS_MAX_RANK];
    int64_t stride[OPS_MAX_RANK];
} ops_tensor;

/* Creates a context that records on `queue`, which must outlive it.
 * Ownership: the caller's, until ops_context_destroy. Threads: the queue's.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
HAL_API hal_status ops_context_create(hal_queue *queue, HAL_OUT ops_context **context);

/* Which kernels a context compiles for a shape that it has not met. Results have the same bits. */
typedef enum ops_kernel_choice {
    OPS_KERNELS_AUTO,    /* general ones for new shapes, until their calls have cost as much more as
                            one compilation: docs/kernel-classes.md */
    OPS_KERNELS_GENERAL, /* those of the shape's class, which other shapes share */
    OPS_KERNELS_SPECIAL  /* those of the shape, which take less time */
} ops_kernel_choice;

/* Sets the choice for calls from now on; AUTO at first. ops_prepare and graphs have special
 * kernels, unless the choice is GENERAL.
 * Threads: the queue's. Errors: none; other values count as AUTO. */
HAL_API void ops_context_set_kernels(ops_context *context, ops_kernel_choice choice);

/* Frees a context; what it recorded still runs. Null is allowed.
 * Threads: the queue's. Errors: none. */
HAL_API void ops_context_destroy(ops_context *context);

/* The queue and the device of a context.
 * Ownership: not retained for the caller. Threads: any. Errors: none; null gives null. */
HAL_API hal_queue *ops_context_get_queue(const ops_context *context);
HAL_API hal_device *ops_context_get_device(const ops_context *context);

/* Allocates a buffer and describes it as a contiguous, row-major tensor. The elements are not
 * defined.
 * Ownership: the tensor holds the buffer's only reference until ops_tensor_release.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for an invalid rank, type or shape, UNSUPPORTED
 * for a type that the device cannot store, but for F64, which devices without it hold for products
 * of the class HAL_GEMM_EXACT and refuse where they compute it; those of hal_buffer_create. */
HAL_API hal_status ops_tensor_create(ops_context *context, hal_type type, uint32_t rank,
                                     const int64_t *shape, HAL_OUT ops_tensor *tensor);

/* Creates a tensor from `elements` of its type in row-major order.
 * Ownership, Threads, Errors: as ops_tensor_create; `elements` may be freed after the call. */
HAL_API hal_status ops_tensor_from_host(ops_context *context, hal_type type, uint32_t rank,
                                        const int64_t *shape, const void *elements,
                                        HAL_OUT ops_tensor *tensor);

/* Releases the buffer's reference and clears the tensor; views of it become invalid. A cleared
 * tensor and null are allowed.
 * Threads: any. Errors: none. */
HAL_API void ops_tensor_release(ops_tensor *tensor);

/* Writes row-major elements of the tensor's type from the host to a tensor; waits for the work that
 * computes a tensor and reads it to the host in row-major order. `bytes` is the size of the host's
 * memory and must be that of the elements. A tensor that is not contiguous takes a temporary copy.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, those of hal_queue_write and hal_queue_read. */
HAL_API hal_status ops_tensor_write(ops_context *context, const ops_tensor *tensor,
                                    const void *elements, uint64_t bytes);
HAL_API hal_status ops_tensor_read(ops_context *context, const ops_tensor *tensor, uint64_t bytes,
                                   HAL_OUT void *elements);

/* The same with memory of the host whose element (i0, i1, ...) is at i0 * strides[0] + i1 *
 * strides[1] + ... elements from `elements`: {leading dimension, 1} for a part of a larger matrix.
 * Strides are not negative; null means row-major order. `bytes` is the size of the host's memory,
 * which the strides must not exceed. Elements between those of the tensor are not written; after an
 * error some of the tensor's may have been read.
 * Threads, Errors: as ops_tensor_write. */
HAL_API hal_status ops_tensor_write_strided(ops_context *context, const ops_tensor *tensor,
                                            const void *elements, const int64_t *strides,
                                            uint64_t bytes);
HAL_API hal_status ops_tensor_read_strided(ops_context *context, const ops_tensor *tensor,
                                           const int64_t *strides, uint64_t bytes,
                                           HAL_OUT void *elements);

/* The number of elements; 0 for null. Whether they are contiguous in row-major order.
 * Threads: any. Errors: none. */
HAL_API int64_t ops_tensor_get_element_count(const ops_tensor *tensor);
HAL_API int ops_tensor_is_contiguous(const ops_tensor *tensor);

/* Views, without copies: `count` elements start, start + step, ... along an axis; the axes in
 * another order; two axes exchanged; another shape of a contiguous tensor (one length may be -1:
 * computed); axes of length 1, or missing leading axes, stretched to `shape`. An axis below 0
 * counts from the end, here and in every function of tensors: -1 is the last one.
 * Ownership: the view shares the buffer and holds no reference. Threads: any.
 * Errors: INVALID_ARGUMENT with the shapes in the message. */
HAL_API hal_status ops_tensor_slice(const ops_tensor *tensor, int32_t axis, int64_t start,
                                    int64_t count, int64_t step, HAL_OUT ops_tensor *view);
HAL_API hal_status ops_tensor_permute(const ops_tensor *tensor, const int32_t *axes,
                                      HAL_OUT ops_tensor *view);
HAL_API hal_status ops_tensor_transpose(const ops_tensor *tensor, int32_t axis1, int32_t axis2,
                                        HAL_OUT ops_tensor *view);
HAL_API hal_status ops_tensor_reshape(const ops_tensor *tensor, uint32_t rank, const int64_t *shape,
                                      HAL_OUT ops_tensor *view);
HAL_API hal_status ops_tensor_broadcast(const ops_tensor *tensor, uint32_t rank,
                                        const int64_t *shape, HAL_OUT ops_tensor *view);

/* Views whose elements may share memory, to be read only. Windows of an axis: it gets the number
 * of places where a window of `size` elements, `dilation` apart, fits, `step` apart; a new last
 * axis has the elements of a window. A diagonal: elements (i, i + offset) of two axes, which are
 * removed, as a new last axis.
 * Ownership, Threads: as ops_tensor_slice. Errors: INVALID_ARGUMENT with the shapes; a window that
 * is longer than the axis, and numbers below 1, are errors. */
HAL_API hal_status ops_tensor_windows(const ops_tensor *tensor, int32_t axis, int64_t size,
                                      int64_t step, int64_t dilation, HAL_OUT ops_tensor *view);
HAL_API hal_status ops_tensor_diagonal(const ops_tensor *tensor, int32_t axis1, int32_t axis2,
                                       int64_t offset, HAL_OUT ops_tensor *view);

#ifdef __cplusplus
}
#endif
#endif
