/* Arrays: values that look eager and are computed late.
 *
 * An array is immutable and reference-counted. A call that makes one checks types and shapes,
 * defers the operation and returns at once; kernels are recorded when values are needed. By then
 * chains of operations have become one kernel, intermediates that nothing can read any more take no
 * memory, and results that nothing can read are never computed. docs/batching.md has the rules.
 *
 *     ops_scope_begin(context);
 *     ops_array *h = ops_tanh(ops_add(ops_matmul(x, w), b));
 *     ops_array_keep(h);                       // the caller's from now on
 *     ops_scope_end(context);                  // releases the product and the sum
 *     ops_array_read(h, sizeof numbers, numbers);
 *     ops_array_release(h);
 *
 * Ownership: each call that makes an array returns one reference. It belongs to the innermost open
 * scope of the context, which releases it at its end, or, without a scope, to the caller. So nested
 * calls need a scope: outside of one, their intermediates can never be released, and the context
 * reports them when it is destroyed (HAL_LOG=warn). Arrays end with their context, and graphs must
 * not be launched after it.
 *
 * Errors: a call that fails returns null; hal_status_message() has the reason, with the shapes. A
 * null operand gives null and leaves the message, so that a nested expression reports its first
 * failure.
 *
 * Threads: arrays, scopes and the context belong to one thread at a time, that of the queue: first
 * the one that makes the first array. Only ops_array_release may be called by any thread, so that
 * garbage collectors and other threads' containers can hold arrays. Another thread takes the
 * context by ops_context_set_thread.
 *
 * Results of elementwise calls, reductions and softmax have no gaps in memory. Their axes are in
 * the order of the operand of the most bytes; of operands with equally many bytes, one in row-major
 * order decides, then the first. All other results, and copies, are row-major. The strides are told
 * by ops_array_get_tensor; elements that the host reads are always in row-major order.
 *
 * Operands of elementwise calls have one type. Their shapes are broadcast as in NumPy: from the
 * last axis on, lengths of 1 and missing axes stretch. An axis below 0 counts from the end: -1 is
 * the last one. Results have the same bits with and without fusion, except for the sign of a NaN,
 * attention by its expression, and products of quantised weights.
 */
#ifndef OPS_ARRAY_H
#define OPS_ARRAY_H

#include <ops/gemm.h>
#include <ops/index.h>
#include <ops/quantised.h>
#include <ops/random.h>
#include <ops/reduce.h>
#include <ops/scan.h>
#include <ops/sort.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ops_array ops_array;

/* ---- Lifetime ---- */

/* Opens a scope, to which arrays made from now on belong; closes the innermost one and releases
 * its arrays. Scopes nest.
 * Threads: the queue's. Errors: OUT_OF_MEMORY; INVALID_STATE for an end without a begin. */
HAL_API hal_status ops_scope_begin(ops_context *context);
HAL_API hal_status ops_scope_end(ops_context *context);

/* Takes an array out of its scope: the caller has to release it. Returns the array; null gives
 * null.
 * Ownership: the scope's reference becomes the caller's; an array without a scope stays as it is.
 * Threads: the queue's. Errors: none. */
HAL_API ops_array *ops_array_keep(ops_array *array);

/* Adds a reference. Returns the array; null gives null.
 * Ownership: the caller's reference. Threads: the queue's. Errors: none. */
HAL_API ops_array *ops_array_retain(ops_array *array);

/* Removes a reference: the caller's or, if the caller has none, the scope's before its end. Null is
 * allowed. From a thread that is not the context's, the reference is removed by the next call on
 * the context that makes or computes arrays or ends a scope; the context must not be destroyed
 * meanwhile.
 * Threads: any. Errors: none. */
HAL_API void ops_array_release(ops_array *array);

/* Makes the calling thread the context's, as before a backward pass in a thread of its own. The
 * caller has to order the calls: the previous thread has returned from its last one, and its writes
 * are visible (a join, a mutex, a condition variable); it may still release arrays afterwards.
 * Threads: any, ordered as told. Errors: INVALID_ARGUMENT for null. */
HAL_API hal_status ops_context_set_thread(ops_context *context);

/* ---- Properties and values ---- */

/* Context, type, rank, length of an axis, and number of elements.
 * Ownership: the context is not retained for the caller. Threads: the queue's.
 * Errors: none; null gives null, HAL_TYPE_NONE, 0 or -1; an axis out of range gives -1. */
HAL_API ops_context *ops_array_get_context(const ops_array *array);
HAL_API hal_type ops_array_get_type(const ops_array *array);
HAL_API uint32_t ops_array_get_rank(const ops_array *array);
HAL_API int64_t ops_array_get_length(const ops_array *array, int32_t axis);
HAL_API int64_t ops_array_get_element_count(const ops_array *array);

/* Records what computes the arrays, together where that takes fewer kernels, and submits it. An
 * array that was computed before costs nothing. Many arrays of different shapes by the same
 * operations, such as the parameters that an optimizer has updated, take few kernels in one call;
 * they then share a buffer, which lives as long as one of them (docs/batching.md).
 * Threads: the queue's. Errors: INVALID_ARGUMENT, those of kernels and dispatches; operations that
 * were not recorded stay deferred. When a batch is dropped (hal_queue_flush), here or in any call
 * that flushes the queue, the arrays computed in it are lost, and those that are computed of them:
 * every use of them is INVALID_STATE from then on, with the message of the failure
 * (docs/errors.md). */
HAL_API hal_status ops_array_evaluate(ops_array *const *arrays, uint32_t count);

/* ops_array_evaluate without the submission: what is recorded is submitted with the queue's batch
 * when that is full, and by the next flush or wait (docs/batching.md). A program that evaluates
 * many times before it reads has fewer submissions so, and does not wait in each of them for
 * kernels that are still being compiled.
 * Threads, Errors: as ops_array_evaluate; those of a submission come from the call that submits. */
HAL_API hal_status ops_array_record(ops_array *const *arrays, uint32_t count);

/* Computes an array, waits, and copies its elements to the host in row-major order. `bytes` is the
 * size of the host's memory and must be that of the elements. A small array that this call computes
 * is written to memory that the host reads; another use of it costs one copy (docs/batching.md). An
 * array that is not row-major in memory is computed as it is, and then copied on the device.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, as ops_array_evaluate, DEVICE_LOST. */
HAL_API hal_status ops_array_read(ops_array *array, uint64_t bytes, HAL_OUT void *elements);

/* Computes an array and describes its memory, for functions that take tensors. The strides need not
 * be row-major; those of ops_array_copy are.
 * Ownership: the tensor is a view without a reference; keep the array while it is used, and do not
 * write to it. Threads: the queue's. Errors: as ops_array_evaluate. */
HAL_API hal_status ops_array_get_tensor(ops_array *array, HAL_OUT ops_tensor *tensor);

/* ---- Making arrays ---- */

/* An array of `elements` in row-major order, which may be freed after the call. An array in the
 * memory of a tensor, which must not be written as long as the array or a view of it lives.
 * Ownership: the scope's or the caller's; the array of a tensor holds a reference to its buffer.
 * Threads: the queue's. Errors: null, as ops_tensor_from_host. */
HAL_API ops_array *ops_array_from_host(ops_context *context, hal_type type, uint32_t rank,
                                       const int64_t *shape, const void *elements);
HAL_API ops_array *ops_array_from_tensor(ops_context *context, const ops_tensor *tensor);

/* An array whose elements all have one value, rounded to the type; it has the memory of one
 * element. A scalar has rank 0, which broadcasts to every shape; ops_array_binary_scalar needs
 * none.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, as ops_tensor_create.
 */
HAL_API ops_array *ops_array_full(ops_context *context, hal_type type, uint32_t rank,
                                  const int64_t *shape, double value);
HAL_API ops_array *ops_array_scalar(ops_context *context, hal_type type, double value);

/* As ops_array_full of the element of that type in the host's memory, such as an I64 that no double
 * has; rank 0 is a scalar.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, as
 * ops_tensor_from_host. */
HAL_API ops_array *ops_array_full_of(ops_context *context, hal_type type, uint32_t rank,
                                     const int64_t *shape, const void *element);

/* Random numbers, as ops_random_uniform and ops_random_normal make them.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, as those. */
HAL_API ops_array *ops_array_uniform(ops_context *context, hal_type type, uint32_t rank,
                                     const int64_t *shape, ops_random_key key, double low,
                                     double high);
HAL_API ops_array *ops_array_normal(ops_context *context, hal_type type, uint32_t rank,
                                    const int64_t *shape, ops_random_key key, double mean,
                                    double deviation);

/* The `count` numbers start, start + step, ... in rank 1, as ops_iota makes them.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, as ops_iota. */
HAL_API ops_array *ops_array_iota(ops_context *context, hal_type type, int64_t count, double start,
                                  double step);

/* ---- Views: no elements are copied ---- */

/* As the functions of tensors with these names. A reshape of an array that is not contiguous makes
 * a copy. A view of an array that is not computed yet is part of the kernel of what reads it.
 * Ownership: the scope's or the caller's; a view keeps the memory of its array alive. Threads: the
 * queue's. Errors: null, INVALID_ARGUMENT with the shapes in the message. */
HAL_API ops_array *ops_array_slice(ops_array *x, int32_t axis, int64_t start, int64_t count,
                                   int64_t step);
HAL_API ops_array *ops_array_permute(ops_array *x, const int32_t *axes);
HAL_API ops_array *ops_array_transpose(ops_array *x, int32_t axis1, int32_t axis2);
HAL_API ops_array *ops_array_reshape(ops_array *x, uint32_t rank, const int64_t *shape);
HAL_API ops_array *ops_array_broadcast(ops_array *x, uint32_t rank, const int64_t *shape);

/* The same of windows and diagonals, ops_tensor_windows and ops_tensor_diagonal.
 * Ownership, Threads, Errors: as ops_array_slice. */
HAL_API ops_array *ops_array_windows(ops_array *x, int32_t axis, int64_t size, int64_t step,
                                     int64_t dilation);
HAL_API ops_array *ops_array_diagonal(ops_array *x, int32_t axis1, int32_t axis2, int64_t offset);

/* ---- Operations ---- */

/* f(x); f(x, y); condition ? x : y; x in another type, as ops_cast.
 * Ownership: the scope's or the caller's. Threads: the queue's.
 * Errors: null, INVALID_ARGUMENT with the shapes and types, UNSUPPORTED, OUT_OF_MEMORY. A call may
 * record kernels of earlier operations, and then also reports their errors. */
HAL_API ops_array *ops_array_unary(ops_unary_function function, ops_array *x);
HAL_API ops_array *ops_array_binary(ops_binary_function function, ops_array *x, ops_array *y);
HAL_API ops_array *ops_array_where(ops_array *condition, ops_array *x, ops_array *y);
HAL_API ops_array *ops_array_cast(hal_type type, ops_array *x);

/* x in an integer type, wrapped: the whole number towards zero of each element modulo 2^n, as C and
 * PyTorch convert where they define it, and as they do in practice elsewhere. Floats beyond 63 bits
 * (to U64: 64) saturate first, and NaN gives 0. Other types: as ops_array_cast. From floats the
 * device needs I64.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_cast_wrapping(hal_type type, ops_array *x);

/* f(x, y) with a scalar of the other operand's type, which the caller does not have to release: the
 * scalar is rounded to that type.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_binary_scalar(ops_binary_function function, ops_array *x, double y);
HAL_API ops_array *ops_array_scalar_binary(ops_binary_function function, double x, ops_array *y);

/* The reduction of x along an axis, as ops_reduce. The axis has length 1 in the result when
 * `keep_axis` is set, and is removed otherwise. ARGMAX gives I32. Softmax and its logarithm along
 * an axis.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_reduce(ops_reduction reduction, int32_t axis, int keep_axis,
                                    ops_array *x);
HAL_API ops_array *ops_array_softmax(int32_t axis, ops_array *x);
HAL_API ops_array *ops_array_log_softmax(int32_t axis, ops_array *x);

/* The reduction along several axes, or along all when `axes` is null: one reduction per axis, from
 * the last axis to the first, each rounded to the type of x.
 * Ownership, Threads: as ops_array_unary. Errors: as ops_array_unary; INVALID_ARGUMENT for an axis
 * that is given twice, and for ARGMAX along more than one. */
HAL_API ops_array *ops_array_reduce_axes(ops_reduction reduction, const int32_t *axes,
                                         uint32_t axis_count, int keep_axes, ops_array *x);

/* The reduction (SUM, MAX, MIN) of |x| or x^2 (`function` ABS, SQUARE) of all elements of each
 * array: rank 1, `count` elements, of F32 for narrow floats. Few kernels whatever the shapes are,
 * where `count` calls of ops_array_reduce are as many; the order of additions is another than of
 * those, and depends on the lengths and the device only. Computes the arrays, of one float type.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, INVALID_ARGUMENT for
 * other types and functions and for no elements; UNSUPPORTED within the recording of a graph, and
 * for arrays of more than 256 MiB; those of ops_array_evaluate. */
HAL_API ops_array *ops_array_reduce_each(ops_reduction reduction, ops_unary_function function,
                                         ops_array *const *arrays, uint32_t count);

/* The matrix product of a [m, k] and b [k, n], of one type of floats or integers, each with an
 * optional batch axis in front, as ops_gemm. `precision` is a hal_gemm_precision, HAL_GEMM_EXACT of
 * F64 alone; elementwise work that follows such a product is a separate kernel. Integers that are
 * cast from 8 or 16 bits to 32 are multiplied as they were.
 * A `b` of ops_array_prepare is used with the sums of its blocks where that is faster. Where the
 * result is the `a` of another product by levels, perhaps after elementwise work, its kernel also
 * makes the sums that the other one reads (ops_gemm_options.c_sums).
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_matmul(ops_array *a, ops_array *b, uint32_t precision);

/* The product of groups of rows, as ops_gemm_grouped: a [rows, k], b [groups, k, n], of one type of
 * floats or integers, offsets [groups + 1] of I32 or I64 or null, host_offsets the same numbers on
 * the host or null, but not both. Elementwise work that follows becomes the epilogue where one
 * kernel computes the product. Without host_offsets nothing waits for the offsets. Rows without a
 * group have undefined elements. Integers have the type of their sums.
 * Ownership, Threads: as ops_array_unary; host_offsets are copied. Errors: null, INVALID_ARGUMENT
 * with the types and shapes, those of ops_gemm_grouped when it is computed. */
HAL_API ops_array *ops_array_matmul_grouped(ops_array *a, ops_array *b, ops_array *offsets,
                                            const int64_t *host_offsets, uint32_t precision);

/* Quantised weights as an array of F32, F16 or BF16, [n, k]: element (j, i) is (values[j, i] -
 * zeros[j, i / block] - zero) scales[j, i / block], see ops/quantised.h, where block is k / the
 * columns of `scales`. `values` is [n, k], of 4 bits [n, k / 2]; `scales` [n, blocks] or [1,
 * blocks], `zeros` of that shape or null.
 * A product by its transpose, ops_array_matmul(x, ops_array_transpose(w, 0, 1), precision), where
 * nothing else reads w, is ops_gemm_quantised: with few rows of x, except on processors, one kernel
 * reads the packed values, and w is in no memory. The same holds for expressions of bytes,
 * cast(q) * scales and (cast(q) - zeros) * scales, perhaps cast from F32, with scales of [n, 1] for
 * q of [n, k], or of [n, blocks, 1] for [n, blocks, block] and a reshape, transposed, or of [1, n]
 * for [k, n]. The bound is that of ops_gemm_quantised then.
 * Ownership: the scope's or the caller's. Threads: the queue's.
 * Errors: null, INVALID_ARGUMENT with the types and shapes. */
HAL_API ops_array *ops_array_dequantise(hal_type type, ops_quantised_format format,
                                        ops_array *values, ops_array *scales, ops_array *zeros,
                                        double zero);

/* As ops_array_matmul of the class HAL_GEMM_NORMWISE, by so many levels of Strassen's algorithm as
 * options.levels of ops_gemm asks for; 0: as many as the cost model expects to gain.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_matmul_by_levels(ops_array *a, ops_array *b, uint32_t levels);

/* softmax(q k^T / sqrt(d) + mask) v, as ops_attention: another scale is a factor of q. `causal`
 * leaves out what follows a row; a null mask is none. `precision` is a hal_gemm_precision. The
 * memory that it takes grows with the lengths, not with their product as that of the expression.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_attention(ops_array *q, ops_array *k, ops_array *v, ops_array *mask,
                                       int causal, uint32_t precision);

/* The same with another scale; 0: 1 / sqrt(d). The expression
 * softmax(q k^T scale + mask) v by ops_array_matmul and ops_array_softmax along the last axis is
 * evaluated as this call, with its bits, where nothing else reads what is between: the mask is
 * added, or selected by ops_array_where with -infinity; the scale is a factor or divisor that
 * ops_array_binary_scalar applies to the product. docs/attention.md has the rules.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_scaled_attention(ops_array *q, ops_array *k, ops_array *v,
                                              ops_array *mask, int causal, uint32_t precision,
                                              double scale);

/* The gradients of a loss by q, k and v from that by y, dy, where y is the result of
 * ops_array_scaled_attention with the same arguments, as ops_attention_gradients: recorded by this
 * call, after its operands. gradients: dq, dk and dv.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: as ops_attention_gradients,
 * and then gradients are null; INVALID_STATE while a graph is recorded. */
HAL_API hal_status ops_array_attention_gradients(ops_array *q, ops_array *k, ops_array *v,
                                                 ops_array *mask, ops_array *y, ops_array *dy,
                                                 int causal, uint32_t precision, double scale,
                                                 HAL_OUT ops_array *gradients[3]);

/* A copy of b [k, n], or with a batch axis in front, that products with it as their second operand
 * use as ops_gemm_prepare describes: computed now, once, for weights of many products. It is an
 * array like any other; views of it are not prepared, and a graph takes it as an input only if it
 * holds no sums. Null `options`: the defaults.
 * Ownership, Threads: as ops_array_unary. Errors: as ops_gemm_prepare; INVALID_STATE while a graph
 * is recorded. */
HAL_API ops_array *ops_array_prepare(ops_array *b, const ops_gemm_prepare_options *options);

/* ---- Moving elements ---- */

/* The elements of x along an axis at `indices` (rank 1, I32 or I64), as ops_gather: an index out of
 * range gives 0.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_gather(int32_t axis, ops_array *x, ops_array *indices);

/* x[i, ..., indices[i, j, ...], ...]: an index (I32 or I64) for each element along an axis, as
 * ops_take_along_axis. The indices have x's shape except for the length at the axis.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_take_along_axis(int32_t axis, ops_array *x, ops_array *indices);

/* x with the elements updated that indices pick along an axis, as ops_scatter. Updates have x's
 * type and the indices' shape, which is x's except for the length at the axis.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_scatter(ops_scatter_kind kind, int32_t axis, ops_array *x,
                                     ops_array *indices, ops_array *updates);

/* The sum, product, maximum or minimum of every beginning of an axis, as ops_scan.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_scan(ops_scan_kind kind, int32_t axis, ops_array *x);

/* The places (I32) on the axis of the first `count` elements in ascending order, or descending if
 * `descending` is set, as ops_sort; count -1: of all. The elements in this order.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_argsort(int32_t axis, int descending, int64_t count, ops_array *x);
HAL_API ops_array *ops_array_sort(int32_t axis, int descending, int64_t count, ops_array *x);

/* The parts, at least one, one after the other along an axis. They have one type, and one shape but
 * for that axis.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_concatenate(int32_t axis, ops_array *const *parts,
                                         uint32_t part_count);

/* An array with one axis of length `count` more than `indices` (I32 or I64), at the end: 1 at the
 * index, else 0, as ops_one_hot. An index out of range gives a row of zeros.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_one_hot(hal_type type, int64_t count, ops_array *indices);

/* A row-major copy with separate memory: of a view, so that it does not keep the larger array
 * alive.
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_copy(ops_array *x);

/* ---- Replacing a part ---- */

/* Describes the elements of an array as a tensor in row-major order, without memory: what
 * ops_tensor_slice and the other views of tensors make parts of, for ops_array_update.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for null. */
HAL_API hal_status ops_array_describe(const ops_array *array, HAL_OUT ops_tensor *tensor);

/* x with the elements of `view` replaced by `value`, which has x's type and is broadcast to the
 * view's shape. `view` is a part of ops_array_describe(x), whose elements do not overlap; its
 * buffer is ignored.
 *
 *     ops_tensor all, rows;                    // x[2:4] = value
 *     ops_array_describe(x, &all);
 *     ops_tensor_slice(&all, 0, 2, 2, 1, &rows);
 *     ops_array *updated = ops_array_update(x, &rows, value);
 *     ops_array_release(x);                    // before updated is computed: x's memory is used
 *     x = updated;
 *
 * The result takes the memory of x if, when it is computed, no caller or scope has a reference to
 * x, no other deferred operation reads x, and no other array, tensor or graph holds the memory; if
 * the value is what reads x, it is computed first. Otherwise x is copied. A value that nothing else
 * reads is computed straight into its place. If the view is all of x, x may be lost
 * (docs/errors.md).
 * Ownership, Threads, Errors: as ops_array_unary. */
HAL_API ops_array *ops_array_update(ops_array *x, const ops_tensor *view, ops_array *value);

/* Whether the array is in memory that nothing else holds: it has one reference, no deferred
 * operation reads it, and no other array, view, tensor or graph shares its buffer. An array that is
 * not computed yet gives 0.
 * Threads: the queue's. Errors: none; null gives 0. */
HAL_API int ops_array_is_sole_holder(const ops_array *array);

/* Computes the array and takes its memory: the tensor describes it, and the array is released. The
 * memory may be written from now on. An array that shares a buffer with others of the call that
 * computed it is copied first.
 * Ownership: the tensor holds the buffer's only reference until ops_tensor_release. Threads: the
 * queue's. Errors: as ops_array_evaluate; INVALID_STATE unless ops_array_is_sole_holder, and then
 * the array stays as it was, computed. */
HAL_API hal_status ops_array_take_buffer(ops_array *array, HAL_OUT ops_tensor *tensor);

/* ---- Settings and statistics ---- */

/* Turns fusion off (0) or on. Without it every call records its own kernel at once.
 * Threads: the queue's. Errors: none. */
HAL_API void ops_context_set_fusion(ops_context *context, int fusion);

/* A line of the program; file null: not known. */
typedef struct ops_site {
    const char *file;
    uint32_t line;
} ops_site;

/* The line of the program that calls now; the text is copied before the next call. */
typedef ops_site (*ops_site_function)(void *user);

/* The context's calls that follow come from line `line` of `file`, which is copied; null: not
 * known. Profiles and findings of HAL_SANITIZE name the line with the call; without them
 * (hal/profile.h) nothing happens. OPS_AT is a call at this line: y = OPS_AT(context, ops_exp(x)).
 * Threads: the queue's. Errors: none. */
HAL_API void ops_context_set_site(ops_context *context, const char *file, uint32_t line);
#define OPS_AT(context, call) (ops_context_set_site((context), __FILE__, __LINE__), (call))

/* Instead of that, asks `function` whenever a call makes an array, for languages that know their
 * own frames; null: no more.
 * Threads: the queue's. Errors: none. */
HAL_API void ops_context_set_site_function(ops_context *context, ops_site_function function,
                                           void *user);

/* Counters of a context's arrays since it was created. */
typedef struct ops_array_statistics {
    uint32_t size; /* sizeof(ops_array_statistics), set by the caller */
    uint32_t reserved;
    uint64_t recorded;  /* operations that were called, without views and constants */
    uint64_t evaluated; /* operations in recorded kernels; computed twice, one counts twice */
    uint64_t dropped;   /* operations that were never computed, because nothing could read them */
    uint64_t kernels;   /* kernels that were recorded for them */
    uint64_t compiled;  /* of these, how many were planned anew instead of replayed */
    uint64_t arrays;    /* arrays that exist now */
    uint64_t deferred;  /* of these, how many are not computed yet */
    uint64_t made;      /* kernels that the context was given: compiled, or of the compile cache */
    uint64_t native;    /* kernels of the plugin's own products, which `made` leaves out */
} ops_array_statistics;

/* Writes the counters of the context's arrays to *statistics, as many as its `size` has room for.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for null and for a size that was not set. */
HAL_API hal_status ops_context_get_statistics(const ops_context *context,
                                              HAL_OUT ops_array_statistics *statistics);

/* ---- Short names of common operations, such as ops_array *ops_neg(ops_array *x) and
 * ops_array *ops_add(ops_array *x, ops_array *y); contracts as ops_array_unary ---- */

#define OPS_SHORT_UNARY_(name, FUNCTION)              \
    static inline ops_array *ops_##name(ops_array *x) \
    {                                                 \
        return ops_array_unary(OPS_##FUNCTION, x);    \
    }
/* f(x). */
OPS_SHORT_UNARY_(neg, NEG)
OPS_SHORT_UNARY_(abs, ABS)
OPS_SHORT_UNARY_(square, SQUARE)
OPS_SHORT_UNARY_(relu, RELU) /* max(x, 0); NaN passes */
OPS_SHORT_UNARY_(sqrt, SQRT)
OPS_SHORT_UNARY_(rsqrt, RSQRT)           /* 1 / sqrt(x) */
OPS_SHORT_UNARY_(reciprocal, RECIPROCAL) /* 1 / x */
OPS_SHORT_UNARY_(exp, EXP)
OPS_SHORT_UNARY_(log, LOG) /* the natural logarithm */
OPS_SHORT_UNARY_(sin, SIN) /* of radians, as cos and tan */
OPS_SHORT_UNARY_(cos, COS)
OPS_SHORT_UNARY_(tan, TAN)
OPS_SHORT_UNARY_(tanh, TANH)
OPS_SHORT_UNARY_(erf, ERF)
OPS_SHORT_UNARY_(sigmoid, SIGMOID)   /* 1 / (1 + exp(-x)) */
OPS_SHORT_UNARY_(silu, SILU)         /* x * sigmoid(x) */
OPS_SHORT_UNARY_(gelu, GELU)         /* x (1 + erf(x / sqrt 2)) / 2 */
OPS_SHORT_UNARY_(softplus, SOFTPLUS) /* log(1 + exp(x)) */
OPS_SHORT_UNARY_(floor, FLOOR)
OPS_SHORT_UNARY_(ceil, CEIL)
OPS_SHORT_UNARY_(trunc, TRUNC)
OPS_SHORT_UNARY_(round, ROUND) /* to nearest even */
#undef OPS_SHORT_UNARY_

#define OPS_SHORT_BINARY_(name, FUNCTION)                           \
    static inline ops_array *ops_##name(ops_array *x, ops_array *y) \
    {                                                               \
        return ops_array_binary(OPS_##FUNCTION, x, y);              \
    }
/* f(x, y). */
OPS_SHORT_BINARY_(add, ADD)
OPS_SHORT_BINARY_(sub, SUB)
OPS_SHORT_BINARY_(mul, MUL)
OPS_SHORT_BINARY_(div, DIV)
OPS_SHORT_BINARY_(rem, REM)         /* remainder of x / y; has the sign of x (C fmod) */
OPS_SHORT_BINARY_(minimum, MINIMUM) /* NaN when either is NaN, as maximum */
OPS_SHORT_BINARY_(maximum, MAXIMUM)
OPS_SHORT_BINARY_(pow, POW) /* x to the power y */
OPS_SHORT_BINARY_(eq, EQ)   /* comparisons give BOOL */
OPS_SHORT_BINARY_(ne, NE)
OPS_SHORT_BINARY_(lt, LT)
OPS_SHORT_BINARY_(le, LE)
OPS_SHORT_BINARY_(gt, GT)
OPS_SHORT_BINARY_(ge, GE)
#undef OPS_SHORT_BINARY_

/* The same with a scalar of the type of x: ops_array *ops_add_scalar(ops_array *x, double y). */
#define OPS_SHORT_SCALAR_(name, FUNCTION)                                \
    static inline ops_array *ops_##name##_scalar(ops_array *x, double y) \
    {                                                                    \
        return ops_array_binary_scalar(OPS_##FUNCTION, x, y);            \
    }
/* f(x, scalar). */
OPS_SHORT_SCALAR_(add, ADD)
OPS_SHORT_SCALAR_(sub, SUB)
OPS_SHORT_SCALAR_(mul, MUL)
OPS_SHORT_SCALAR_(div, DIV)
OPS_SHORT_SCALAR_(pow, POW)
OPS_SHORT_SCALAR_(minimum, MINIMUM)
OPS_SHORT_SCALAR_(maximum, MAXIMUM)
#undef OPS_SHORT_SCALAR_

/* The matrix product in strict arithmetic. */
static inline ops_array *ops_matmul(ops_array *a, ops_array *b)
{
    return ops_array_matmul(a, b, HAL_GEMM_STRICT);
}

/* The reduction along an axis, which is removed: ops_array *ops_reduce_sum(ops_array *x, int32_t
 * axis). */
#define OPS_SHORT_REDUCE_(name, REDUCTION)                                 \
    static inline ops_array *ops_reduce_##name(ops_array *x, int32_t axis) \
    {                                                                      \
        return ops_array_reduce(OPS_REDUCE_##REDUCTION, axis, 0, x);       \
    }
/* Along an axis. */
OPS_SHORT_REDUCE_(sum, SUM)
OPS_SHORT_REDUCE_(mean, MEAN)
OPS_SHORT_REDUCE_(max, MAX)
OPS_SHORT_REDUCE_(min, MIN)
OPS_SHORT_REDUCE_(product, PRODUCT)
#undef OPS_SHORT_REDUCE_

#ifdef __cplusplus
}
#endif
#endif
