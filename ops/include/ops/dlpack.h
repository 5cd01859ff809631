/* Exchange of tensors with other libraries in one process, by the structures of DLPack 1.3.
 *
 * The structures have the layout of DLManagedTensorVersioned and its parts: a pointer to one is a
 * pointer to the other.
 *
 * Source: the DLPack specification, https://dmlc.github.io/dlpack/latest/c_api.html. */
#ifndef OPS_DLPACK_H
#define OPS_DLPACK_H

#include <hal/external.h>
#include <ops/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_DLPACK_MAJOR 1u
#define OPS_DLPACK_MINOR 3u

/* Kinds of devices whose memory this version reads or exports. */
#define OPS_DLPACK_HOST 1   /* kDLCPU */
#define OPS_DLPACK_GPU 2    /* addresses of a GPU's driver that has streams, once kDLGPU */
#define OPS_DLPACK_PINNED 3 /* memory of the host that a GPU's driver has pinned */

/* Bits of ops_dlpack_managed.flags. */
#define OPS_DLPACK_READ_ONLY UINT64_C(1)
#define OPS_DLPACK_COPIED UINT64_C(2)

/* The code of complex numbers in ops_dlpack_type. */
#define OPS_DLPACK_COMPLEX 5

typedef struct ops_dlpack_device { /* DLDevice */
    int32_t kind;
    int32_t index;
} ops_dlpack_device;

typedef struct ops_dlpack_type { /* DLDataType */
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} ops_dlpack_type;

typedef struct ops_dlpack_tensor { /* DLTensor */
    void *data;
    ops_dlpack_device device;
    int32_t rank;
    ops_dlpack_type type;
    int64_t *shape;
    int64_t *strides; /* in elements; null: row-major */
    uint64_t byte_offset;
} ops_dlpack_tensor;

typedef struct ops_dlpack_managed { /* DLManagedTensorVersioned */
    uint32_t major, minor;
    void *owner;
    void (*destroy)(struct ops_dlpack_managed *managed); /* may be called by any thread */
    uint64_t flags;
    ops_dlpack_tensor tensor;
} ops_dlpack_managed;

/* The element type in DLPack's terms, and the reverse: HAL_TYPE_NONE for a type without one here,
 * such as vectors, 4-bit types and complex numbers, which are arrays with one axis more here.
 * Threads: any. Errors: none. */
HAL_API ops_dlpack_type ops_dlpack_type_of(hal_type type);
HAL_API hal_type ops_dlpack_get_type(ops_dlpack_type type);

/* Streams in DLPack's numbers: these, or a handle of the driver. */
#define OPS_DLPACK_NO_STREAM (-1)   /* the caller orders the work itself */
#define OPS_DLPACK_DEFAULT_STREAM 1 /* the driver's default stream */

/* The device in DLPack's terms whose memory an export without copy has; kind 0 where consumers
 * cannot address it. Threads: the queue's. Errors: none. */
HAL_API ops_dlpack_device ops_dlpack_device_of(const ops_context *context);

/* The stream on which the context's work runs, for a producer that makes it wait for its own:
 * what is recorded later comes after that. OPS_DLPACK_NO_STREAM on processors.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, those of hal_queue_get_native. */
HAL_API hal_status ops_dlpack_get_stream(ops_context *context, HAL_OUT int64_t *stream);

/* Exports a tensor after a wait for the queue's work. With `copy` 0 the memory is the tensor's,
 * with its strides: possible on a processor, whose kernels use the memory of the process, and where
 * the device's native handles are addresses for DLPack. With `copy` 1 it is a row-major copy in
 * memory of the host, from any device. The flags are READ_ONLY or COPIED.
 * Ownership: the caller's, until managed->destroy(managed). An export without copy holds a
 * reference to the buffer; nothing may be recorded that writes to the tensor until the export is
 * destroyed.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED without `copy` for memory of another device;
 * OUT_OF_MEMORY, those of hal_queue_read. */
HAL_API hal_status ops_tensor_to_dlpack(ops_context *context, const ops_tensor *tensor, int copy,
                                        HAL_OUT ops_dlpack_managed **managed);

/* Exports a tensor without a copy to a consumer whose work is on `stream` of the same device: work
 * that the stream gets after the call comes after the recorded work, without a wait of the host.
 * When the consumer destroys the export, the memory is used again after what the stream has then,
 * so the stream stays valid until that. On a processor as ops_tensor_to_dlpack.
 *   stream  in DLPack's numbers
 * Ownership: as ops_tensor_to_dlpack. Threads: the queue's.
 * Errors: as ops_tensor_to_dlpack and hal_queue_block_native. */
HAL_API hal_status ops_tensor_to_dlpack_stream(ops_context *context, const ops_tensor *tensor,
                                               int64_t stream,
                                               HAL_OUT ops_dlpack_managed **managed);

/* Makes an export of a complex array (ops/complex.h) one of complex numbers (kDLComplex), without
 * the axis of the parts.
 * Ownership: the export stays the caller's. Threads: any, when no other thread uses it.
 * Errors: INVALID_ARGUMENT for null and for a tensor that is not complex; UNSUPPORTED for strides
 * that are not those of pairs, and then the export is as before: export a copy. */
HAL_API hal_status ops_dlpack_join_parts(ops_dlpack_managed *managed);

/* Creates a tensor with the elements of `source`, which is memory of the host with any strides. Of
 * complex numbers it is a complex array (ops/complex.h), with one axis more, here and in
 * ops_tensor_share_dlpack.
 * The elements are copied: the source may be destroyed after the call.
 * Ownership: as ops_tensor_create.
 * Threads: the queue's.
 * Errors: INVALID_ARGUMENT for null, a rank above OPS_MAX_RANK and negative lengths; UNSUPPORTED
 * for memory of another device and for types that hal does not have; as ops_tensor_from_host. */
HAL_API hal_status ops_tensor_from_dlpack(ops_context *context, const ops_dlpack_tensor *source,
                                          HAL_OUT ops_tensor *tensor);

/* Creates a tensor in the memory of `source`, with its strides and without a copy, where the
 * device imports this memory (hal_device_get_external: processors do at any address of elements,
 * GPUs where their native handles are addresses). Work sees what others write to the memory
 * before it is submitted; writes of a GPU come before on the stream of ops_dlpack_get_stream.
 *   flags    OPS_DLPACK_READ_ONLY: calls that would write to the tensor fail
 *   release  called once with `user` when all references to the tensor's buffer were released and
 *            the last batch that names it has ended, as hal_buffer_import says; may be null
 * Ownership: as ops_tensor_create; `source` itself is not used after the call, its memory stays
 * until `release`. After an error `release` is not called. Threads: the queue's.
 * Errors: as ops_tensor_from_dlpack; UNSUPPORTED where the device does not use this memory in
 * place: ops_tensor_from_dlpack copies it. */
HAL_API hal_status ops_tensor_share_dlpack(ops_context *context, const ops_dlpack_tensor *source,
                                           uint64_t flags, hal_release_callback release, void *user,
                                           HAL_OUT ops_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
