/* Exchange of tensors by DLPack's structures. */
#include <ops/dlpack.h>

#include "tensor/context.h"
#include "tensor/returns.h"

#include <hal/native.h>
#include <stdlib.h>
#include <string.h>

/* Codes of DLDataTypeCode. */
enum {
    CODE_INT = 0,
    CODE_UINT = 1,
    CODE_FLOAT = 2,
    CODE_BFLOAT = 4,
    CODE_BOOL = 6,
    CODE_E4M3FN = 10
};

static const ops_dlpack_type types[HAL_TYPE_COUNT] = {
    [HAL_TYPE_BOOL] = {CODE_BOOL, 8, 1},    [HAL_TYPE_I8] = {CODE_INT, 8, 1},
    [HAL_TYPE_U8] = {CODE_UINT, 8, 1},      [HAL_TYPE_I16] = {CODE_INT, 16, 1},
    [HAL_TYPE_U16] = {CODE_UINT, 16, 1},    [HAL_TYPE_I32] = {CODE_INT, 32, 1},
    [HAL_TYPE_U32] = {CODE_UINT, 32, 1},    [HAL_TYPE_I64] = {CODE_INT, 64, 1},
    [HAL_TYPE_U64] = {CODE_UINT, 64, 1},    [HAL_TYPE_F16] = {CODE_FLOAT, 16, 1},
    [HAL_TYPE_BF16] = {CODE_BFLOAT, 16, 1}, [HAL_TYPE_F32] = {CODE_FLOAT, 32, 1},
    [HAL_TYPE_F64] = {CODE_FLOAT, 64, 1},   [HAL_TYPE_F8_E4M3] = {CODE_E4M3FN, 8, 1},
};

ops_dlpack_type ops_dlpack_type_of(hal_type type)
{
    return types[type < HAL_TYPE_COUNT ? type : HAL_TYPE_NONE];
}

hal_type ops_dlpack_get_type(ops_dlpack_type type)
{
    for (hal_type i = 1; i < HAL_TYPE_COUNT; i++) {
        if (types[i].code == type.code && types[i].bits == type.bits &&
            types[i].lanes == type.lanes) {
            return i;
        }
    }
    return HAL_TYPE_NONE;
}

/* ---- Devices ---- */

/* Addresses of native handles are imported at multiples of this; the type of DLPack's streams. */
#define NATIVE_ALIGNMENT UINT64_C(16)
#define STREAM_TYPE "CUstream"

ops_dlpack_device ops_dlpack_device_of(const ops_context *context)
{
    const uint32_t needed = HAL_FEATURE_MAP_DEVICE | HAL_FEATURE_ZERO_COPY;
    hal_external_info external;
    if (!context) {
        return (ops_dlpack_device){0, 0};
    }
    if (context->info->kind == HAL_DEVICE_CPU && (context->info->features & needed) == needed) {
        return (ops_dlpack_device){OPS_DLPACK_HOST, 0};
    }
    if (hal_device_get_external(context->device, &external) != HAL_OK) {
        return (ops_dlpack_device){0, 0};
    }
    return (ops_dlpack_device){(int32_t)external.dlpack_kind,
                               (int32_t)hal_device_get_index(context->device)};
}

hal_status ops_dlpack_get_stream(ops_context *context, int64_t *stream)
{
    uint64_t handle = 0;
    if (!context || !stream) {
        return ops_invalid("ops_dlpack_get_stream: %s: expected a pointer, got null",
                           context ? "stream" : "context");
    }
    *stream = OPS_DLPACK_NO_STREAM;
    if (ops_dlpack_device_of(context).kind == OPS_DLPACK_GPU) {
        HAL_TRY(hal_queue_get_native(context->queue, STREAM_TYPE, &handle));
        *stream = (int64_t)handle;
    }
    return HAL_OK;
}

/* ---- Export ---- */

/* An export: what the consumer sees, and what keeps the elements alive. */
typedef struct dlpack_export {
    ops_dlpack_managed managed; /* the first member: destroy gets its address */
    int64_t shape[OPS_MAX_RANK];
    int64_t strides[OPS_MAX_RANK];
    hal_buffer *buffer;   /* a reference; null for a copy */
    void *elements;       /* of a copy */
    ops_returns *returns; /* null: the buffer is released without a wait */
    uint64_t stream;      /* of the consumer, with `returns` */
} dlpack_export;

static void dlpack_export_destroy(ops_dlpack_managed *managed)
{
    if (managed) {
        dlpack_export *export = (dlpack_export *)managed;
        if (export->returns && export->buffer) {
            ops_returns_give(export->returns, export->buffer, STREAM_TYPE, export->stream);
        } else {
            hal_buffer_release(export->buffer);
        }
        ops_returns_unref(export->returns);
        free(export->elements);
        free(export);
    }
}

/* The address of a buffer for consumers of the context's kind of device. On a processor it stays
 * valid as long as the buffer (hal/buffer.h). */
static hal_status buffer_address(ops_context *context, hal_buffer *buffer, int32_t kind,
                                 void **address)
{
    if (kind == OPS_DLPACK_GPU) {
        hal_memory_handle handle = {.size = sizeof handle};
        HAL_TRY(hal_buffer_export(buffer, HAL_HANDLE_NATIVE, &handle));
        *address = (void *)(uintptr_t)(handle.handle + handle.offset);
        return HAL_OK;
    }
    if (kind != OPS_DLPACK_HOST) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_tensor_to_dlpack: copy: expected 1, as the memory of %s has no "
                              "address that others can use, got 0",
                              context->info->name);
    }
    HAL_TRY(hal_buffer_map_begin(buffer, address));
    return hal_buffer_map_end(buffer);
}

static hal_status export_copy(dlpack_export *export, ops_context *context, const ops_tensor *tensor)
{
    const uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(tensor) * (types[tensor->type].bits / 8u);
    export->elements = malloc(bytes ? bytes : 1);
    if (!export->elements) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_tensor_to_dlpack: %llu bytes of host memory",
                              (unsigned long long)bytes);
    }
    HAL_TRY(ops_tensor_read(context, tensor, bytes, export->elements));
    export->managed.tensor.data = export->elements;
    export->managed.tensor.device.kind = OPS_DLPACK_HOST;
    export->managed.flags = OPS_DLPACK_COPIED;
    return HAL_OK;
}

/* With a stream the consumer's work and hal's get an order, else the host waits. */
static hal_status export_share(dlpack_export *export, ops_context *context,
                               const ops_tensor *tensor, const int64_t *stream)
{
    ops_dlpack_tensor *shared = &export->managed.tensor;
    shared->device = ops_dlpack_device_of(context);
    const bool has_stream = stream && shared->device.kind == OPS_DLPACK_GPU;
    if (!has_stream) {
        HAL_TRY(hal_queue_wait(context->queue, HAL_WAIT_FOREVER));
    }
    HAL_TRY(buffer_address(context, tensor->buffer, shared->device.kind, &shared->data));
    if (has_stream && *stream != OPS_DLPACK_NO_STREAM) {
        if (!context->returns && !(context->returns = ops_returns_create(context->device))) {
            return HAL_ERROR_OUT_OF_MEMORY;
        }
        export->stream = (uint64_t)*stream;
        HAL_TRY(hal_queue_block_native(context->queue, STREAM_TYPE, export->stream));
        export->returns = ops_returns_ref(context->returns);
    }
    export->buffer = hal_buffer_retain(tensor->buffer);
    shared->byte_offset = (uint64_t)tensor->offset * (types[tensor->type].bits / 8u);
    export->managed.flags = OPS_DLPACK_READ_ONLY;
    return HAL_OK;
}

static hal_status export_make(const char *function, ops_context *context, const ops_tensor *tensor,
                              int copy, const int64_t *stream, ops_dlpack_managed **managed)
{
    if (!context || !managed) {
        return ops_invalid("%s: %s: expected a pointer, got null", function,
                           context ? "managed" : "context");
    }
    *managed = NULL;
    HAL_TRY(ops_check_tensor(context, function, "tensor", tensor));
    dlpack_export *export = calloc(1, sizeof *export);
    if (!export) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "%s: an export", function);
    }
    export->managed = (ops_dlpack_managed){
        .major = OPS_DLPACK_MAJOR,
        .minor = OPS_DLPACK_MINOR,
        .destroy = dlpack_export_destroy,
        .tensor = {.rank = (int32_t)tensor->rank,
                   .type = types[tensor->type],
                   .shape = export->shape,
                   .strides = export->strides},
    };
    const ops_tensor layout = copy ? ops_row_major(tensor) : *tensor;
    memcpy(export->shape, layout.shape, sizeof export->shape);
    memcpy(export->strides, layout.stride, sizeof export->strides);
    const hal_status status =
        copy ? export_copy(export, context, tensor) : export_share(export, context, tensor, stream);
    if (status != HAL_OK) {
        dlpack_export_destroy(&export->managed);
        return status;
    }
    *managed = &export->managed;
    return HAL_OK;
}

hal_status ops_tensor_to_dlpack(ops_context *context, const ops_tensor *tensor, int copy,
                                ops_dlpack_managed **managed)
{
    return export_make("ops_tensor_to_dlpack", context, tensor, copy, NULL, managed);
}

hal_status ops_tensor_to_dlpack_stream(ops_context *context, const ops_tensor *tensor,
                                       int64_t stream, ops_dlpack_managed **managed)
{
    return export_make("ops_tensor_to_dlpack_stream", context, tensor, 0, &stream, managed);
}

hal_status ops_dlpack_join_parts(ops_dlpack_managed *managed)
{
    ops_dlpack_tensor *tensor = managed ? &managed->tensor : NULL;
    const int32_t last = tensor ? tensor->rank - 1 : -1;
    if (last < 0 || tensor->type.code != CODE_FLOAT || tensor->type.bits < 32 ||
        tensor->shape[last] != 2) {
        return ops_invalid("ops_dlpack_join_parts: managed: expected an export of f32 or f64 with "
                           "a last axis of length 2, got %s",
                           managed ? "another one" : "null");
    }
    bool fits = tensor->strides[last] == 1;
    for (int32_t i = 0; i < last; i++) {
        fits = fits && (tensor->strides[i] % 2 == 0 || tensor->shape[i] == 1);
    }
    if (!fits) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_dlpack_join_parts: managed: expected the parts of a number next "
                              "to each other, got other strides; export a copy");
    }
    for (int32_t i = 0; i < last; i++) {
        tensor->strides[i] /= 2;
    }
    tensor->rank = last;
    tensor->type.code = OPS_DLPACK_COMPLEX;
    tensor->type.bits = (uint8_t)(2 * tensor->type.bits);
    return HAL_OK;
}

/* ---- Import ---- */

/* A tensor of complex numbers as one of their parts. */
typedef struct dlpack_parts {
    ops_dlpack_tensor tensor;
    int64_t shape[OPS_MAX_RANK], strides[OPS_MAX_RANK];
} dlpack_parts;

/* The source, or in its place the parts of its complex numbers. A tensor that is refused later,
 * such as one of too many axes, stays as it is. */
static const ops_dlpack_tensor *source_parts(const ops_dlpack_tensor *source, dlpack_parts *parts)
{
    if (!source || source->type.code != OPS_DLPACK_COMPLEX || source->type.lanes != 1 ||
        source->type.bits < 64 || source->rank < 0 || source->rank >= (int32_t)OPS_MAX_RANK ||
        (source->rank > 0 && !source->shape)) {
        return source;
    }
    parts->tensor = *source;
    parts->tensor.type = (ops_dlpack_type){CODE_FLOAT, (uint8_t)(source->type.bits / 2), 1};
    parts->tensor.rank = source->rank + 1;
    parts->tensor.shape = parts->shape;
    parts->tensor.strides = source->strides ? parts->strides : NULL;
    for (int32_t i = 0; i < source->rank; i++) {
        parts->shape[i] = source->shape[i];
        parts->strides[i] = source->strides ? 2 * source->strides[i] : 0;
    }
    parts->shape[source->rank] = 2;
    parts->strides[source->rank] = 1;
    return &parts->tensor;
}

/* Copies the elements along the axes from `axis` on, from strided memory to row-major memory.
 * Returns the address after the last one. */
static char *elements_pack(const ops_dlpack_tensor *source, const int64_t *strides, int32_t axis,
                           const char *from, char *to, size_t size)
{
    if (axis == source->rank) {
        memcpy(to, from, size);
        return to + size;
    }
    const int64_t length = source->shape[axis], stride = strides[axis] * (int64_t)size;
    if (axis + 1 == source->rank && strides[axis] == 1) {
        memcpy(to, from, (size_t)length * size);
        return to + (size_t)length * size;
    }
    for (int64_t i = 0; i < length; i++) {
        to = elements_pack(source, strides, axis + 1, from + i * stride, to, size);
    }
    return to;
}

/* `own`: null, or a device whose memory is allowed next to that of the host. */
static hal_status dlpack_check(const char *function, const ops_dlpack_tensor *source,
                               const ops_dlpack_device *own, hal_type *type, uint64_t *bytes)
{
    if (!source || source->rank < 0 || source->rank > (int32_t)OPS_MAX_RANK ||
        (source->rank > 0 && !source->shape)) {
        return ops_invalid("%s: source: expected a tensor of rank 0 to %u, got %s", function,
                           OPS_MAX_RANK, source ? "another rank, or no shape" : "null");
    }
    const bool is_own = own && own->kind == OPS_DLPACK_GPU && source->device.kind == own->kind &&
                        source->device.index == own->index;
    if (source->device.kind != OPS_DLPACK_HOST && source->device.kind != OPS_DLPACK_PINNED &&
        !is_own) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: source: expected memory of the host%s, got DLPack's device kind "
                              "%d with index %d; export a copy for the host",
                              function, own ? " or of the context's device" : "",
                              (int)source->device.kind, (int)source->device.index);
    }
    *type = ops_dlpack_get_type(source->type);
    if (*type == HAL_TYPE_NONE) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: source: expected an element type of hal, got DLPack's code %u "
                              "with %u bits and %u lanes",
                              function, source->type.code, source->type.bits, source->type.lanes);
    }
    return ops_check_shape(function, *type, (uint32_t)source->rank, source->shape, bytes);
}

hal_status ops_tensor_from_dlpack(ops_context *context, const ops_dlpack_tensor *given,
                                  ops_tensor *tensor)
{
    dlpack_parts parts;
    const ops_dlpack_tensor *source = source_parts(given, &parts);
    if (!context || !tensor) {
        return ops_invalid("ops_tensor_from_dlpack: %s: expected a pointer, got null",
                           context ? "tensor" : "context");
    }
    hal_type type = HAL_TYPE_NONE;
    uint64_t bytes = 0;
    HAL_TRY(dlpack_check("ops_tensor_from_dlpack", source, NULL, &type, &bytes));
    int64_t strides[OPS_MAX_RANK], next = 1;
    bool is_row_major = true;
    for (int32_t i = source->rank; i-- > 0;) {
        strides[i] = source->strides ? source->strides[i] : next;
        is_row_major = is_row_major && (strides[i] == next || source->shape[i] == 1);
        next *= source->shape[i];
    }
    const char *data = (const char *)source->data + source->byte_offset;
    const uint32_t rank = (uint32_t)source->rank;
    if (is_row_major || bytes == 0) {
        return ops_tensor_from_host(context, type, rank, source->shape, bytes ? data : "", tensor);
    }
    char *packed = malloc(bytes);
    if (!packed) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_tensor_from_dlpack: %llu bytes of host memory",
                              (unsigned long long)bytes);
    }
    elements_pack(source, strides, 0, data, packed, types[type].bits / 8u);
    const hal_status status =
        ops_tensor_from_host(context, type, rank, source->shape, packed, tensor);
    free(packed);
    return status;
}

/* The tensor of the source's elements, and the range of its memory that has them. */
static hal_status source_range(const ops_dlpack_tensor *source, hal_type type, ops_tensor *view,
                               hal_memory_handle *handle)
{
    const uint64_t size = hal_type_size(type);
    int64_t first = 0, end = 0, count = 1, next = 1;
    *view = (ops_tensor){.type = type, .rank = (uint32_t)source->rank};
    for (int32_t i = source->rank; i-- > 0;) {
        const bool is_given = source->strides && source->shape[i] != 1;
        view->shape[i] = source->shape[i];
        view->stride[i] = is_given ? source->strides[i] : next;
        next *= source->shape[i];
    }
    int64_t bytes = 0;
    if (!ops_extent(view, &first, &end, &count) ||
        __builtin_mul_overflow(end - first, (int64_t)size, &bytes)) {
        return ops_invalid("ops_tensor_share_dlpack: source: expected strides within the address "
                           "space");
    }
    view->offset = -first;
    handle->handle =
        (uint64_t)(uintptr_t)source->data + source->byte_offset + (uint64_t)first * size;
    handle->bytes = (uint64_t)bytes;
    return handle->handle % size == 0
               ? HAL_OK
               : hal_status_set(HAL_ERROR_UNSUPPORTED,
                                "ops_tensor_share_dlpack: source: expected aligned elements, got "
                                "%llu bytes at 0x%llx",
                                (unsigned long long)size, (unsigned long long)handle->handle);
}

hal_status ops_tensor_share_dlpack(ops_context *context, const ops_dlpack_tensor *given,
                                   uint64_t flags, hal_release_callback release, void *user,
                                   ops_tensor *tensor)
{
    dlpack_parts parts;
    const ops_dlpack_tensor *source = source_parts(given, &parts);
    if (!context || !tensor) {
        return ops_invalid("ops_tensor_share_dlpack: %s: expected a pointer, got null",
                           context ? "tensor" : "context");
    }
    hal_type type = HAL_TYPE_NONE;
    uint64_t bytes = 0;
    const ops_dlpack_device own = ops_dlpack_device_of(context);
    HAL_TRY(dlpack_check("ops_tensor_share_dlpack", source, &own, &type, &bytes));
    if (bytes == 0) { /* an empty range has no address */
        HAL_TRY(ops_tensor_create(context, type, (uint32_t)source->rank, source->shape, tensor));
        if (release) {
            release(user);
        }
        return HAL_OK;
    }
    ops_tensor view;
    hal_memory_handle handle = {.size = sizeof handle,
                                .kind = HAL_HANDLE_HOST,
                                .access = flags & OPS_DLPACK_READ_ONLY ? HAL_ACCESS_READ
                                                                       : HAL_ACCESS_READ_WRITE};
    HAL_TRY(source_range(source, type, &view, &handle));
    if (source->device.kind == OPS_DLPACK_GPU) { /* allocations begin at multiples of 256 */
        const uint64_t before = handle.handle % NATIVE_ALIGNMENT;
        handle.kind = HAL_HANDLE_NATIVE;
        handle.handle -= before;
        handle.bytes += before;
        view.offset += (int64_t)(before / hal_type_size(type));
    }
    const hal_status status =
        hal_buffer_import(context->device, &handle, release, user, &view.buffer);
    if (status == HAL_ERROR_INVALID_ARGUMENT) { /* a misaligned address or size */
        return hal_status_set(HAL_ERROR_UNSUPPORTED, "ops_tensor_share_dlpack: source: %s",
                              hal_status_message());
    }
    HAL_TRY(status);
    *tensor = view;
    return HAL_OK;
}
