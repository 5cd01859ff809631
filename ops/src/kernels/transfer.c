/* Elements of tensors from and to the host. A tensor that is not contiguous takes a temporary one
 * and a copy on the device; strided memory of the host with gaps goes through a packed block, part
 * by part. */
#include "tensor/overlap.h"

#include <ops/index.h>

#include <stdlib.h>
#include <string.h>

/* The most bytes of a packed block, which stays in the processor's caches. */
#define BLOCK_BYTES (UINT64_C(4) << 20)

/* The host's memory of a call; without strides the elements are in row-major order. */
typedef struct host_memory {
    const char *function;
    const int64_t *strides; /* in elements, one per axis, or null */
    uint64_t bytes;
} host_memory;

/* Elements of the host's memory as a tensor without a buffer. */
static ops_tensor host_view(const host_memory *memory, const ops_tensor *tensor)
{
    ops_tensor view = {NULL, tensor->type, tensor->rank, 0, {0}, {0}};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        view.shape[i] = tensor->shape[i];
        view.stride[i] = memory->strides[i];
    }
    return view;
}

static hal_status check_strides(const host_memory *memory, const ops_tensor *tensor,
                                bool is_written)
{
    const int64_t *strides = memory->strides;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (strides[i] < 0) {
            return ops_invalid("%s: strides[%u]: expected at least 0, got %lld", memory->function,
                               i, (long long)strides[i]);
        }
    }
    const ops_tensor view = host_view(memory, tensor);
    const uint64_t size = hal_type_size(tensor->type);
    int64_t first, end, count;
    if (!ops_extent(&view, &first, &end, &count) || (uint64_t)end > memory->bytes / size) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("%s: bytes: expected what the strides reach in %s, got %llu",
                           memory->function, ops_describe(tensor, text),
                           (unsigned long long)memory->bytes);
    }
    if (is_written && ops_elements_overlap(&view)) {
        return ops_invalid("%s: strides: expected distinct addresses for all elements",
                           memory->function);
    }
    return HAL_OK;
}

static hal_status check_call(const ops_context *context, const host_memory *memory,
                             const ops_tensor *tensor, const void *elements, bool is_written)
{
    HAL_TRY(ops_check_tensor(context, memory->function, "tensor", tensor));
    const uint64_t count = (uint64_t)ops_tensor_get_element_count(tensor);
    const uint64_t needed = count * hal_type_size(tensor->type);
    if (!memory->strides && memory->bytes != needed) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("%s: bytes: expected %llu for the elements of %s, got %llu",
                           memory->function, (unsigned long long)needed, ops_describe(tensor, text),
                           (unsigned long long)memory->bytes);
    }
    if (!elements && needed) {
        return ops_invalid("%s: elements: expected a pointer, got null", memory->function);
    }
    return memory->strides && count ? check_strides(memory, tensor, is_written) : HAL_OK;
}

/* Copies between a packed block and strided elements, row by row. */
static void copy_rows(const ops_tensor *view, char *strided, char *packed, bool is_packing)
{
    const size_t size = hal_type_size(view->type);
    const uint32_t last = view->rank - 1;
    const size_t length = (size_t)view->shape[last], step = (size_t)view->stride[last] * size;
    int64_t at[OPS_MAX_RANK] = {0}, rows = 1;
    for (uint32_t i = 0; i < last; i++) {
        rows *= view->shape[i];
    }
    for (int64_t row = 0; row < rows; row++, packed += length * size) {
        char *place = strided;
        for (uint32_t i = 0; i < last; i++) {
            place += (size_t)(at[i] * view->stride[i]) * size;
        }
        const size_t run = step == size ? length * size : size;
        for (size_t i = 0; i < (step == size ? 1 : length); i++) {
            char *one = place + i * step, *other = packed + i * size;
            memcpy(is_packing ? other : one, is_packing ? one : other, run);
        }
        for (uint32_t i = last; i-- > 0 && ++at[i] == view->shape[i];) {
            at[i] = 0;
        }
    }
}

static uint64_t bytes_of(const ops_tensor *tensor)
{
    return (uint64_t)ops_tensor_get_element_count(tensor) * hal_type_size(tensor->type);
}

static hal_status write_packed(ops_context *context, const ops_tensor *tensor, const void *elements)
{
    const uint64_t bytes = bytes_of(tensor);
    if (ops_tensor_is_contiguous(tensor)) {
        uint64_t offset = (uint64_t)tensor->offset * hal_type_size(tensor->type);
        return hal_queue_write(context->queue, tensor->buffer, offset, elements, bytes);
    }
    ops_tensor copy;
    HAL_TRY(ops_tensor_create(context, tensor->type, tensor->rank, tensor->shape, &copy));
    hal_status status = hal_queue_write(context->queue, copy.buffer, 0, elements, bytes);
    if (status == HAL_OK) {
        status = ops_copy(context, &copy, tensor);
    }
    ops_tensor_release(&copy);
    return status;
}

static hal_status read_packed(ops_context *context, const ops_tensor *tensor, void *elements)
{
    const uint64_t bytes = bytes_of(tensor);
    if (ops_tensor_is_contiguous(tensor)) {
        uint64_t offset = (uint64_t)tensor->offset * hal_type_size(tensor->type);
        return hal_queue_read(context->queue, tensor->buffer, offset, bytes, elements);
    }
    ops_tensor copy;
    HAL_TRY(ops_tensor_create(context, tensor->type, tensor->rank, tensor->shape, &copy));
    hal_status status = ops_copy(context, tensor, &copy);
    if (status == HAL_OK) {
        status = hal_queue_read(context->queue, copy.buffer, 0, bytes, elements);
    }
    ops_tensor_release(&copy);
    return status;
}

hal_status ops_tensor_from_host(ops_context *context, hal_type type, uint32_t rank,
                                const int64_t *shape, const void *elements, ops_tensor *tensor)
{
    HAL_TRY(ops_tensor_create(context, type, rank, shape, tensor));
    hal_status status = ops_tensor_write(context, tensor, elements, bytes_of(tensor));
    if (status != HAL_OK) {
        ops_tensor_release(tensor);
    }
    return status;
}

hal_status ops_tensor_write(ops_context *context, const ops_tensor *tensor, const void *elements,
                            uint64_t bytes)
{
    const host_memory memory = {"ops_tensor_write", NULL, bytes};
    hal_status status = check_call(context, &memory, tensor, elements, 0);
    return status || bytes == 0 ? status : write_packed(context, tensor, elements);
}

hal_status ops_tensor_read(ops_context *context, const ops_tensor *tensor, uint64_t bytes,
                           void *elements)
{
    const host_memory memory = {"ops_tensor_read", NULL, bytes};
    hal_status status = check_call(context, &memory, tensor, elements, 1);
    return status || bytes == 0 ? status : read_packed(context, tensor, elements);
}

/* ---- Strided memory of the host ---- */

/* Parts of a contiguous tensor and their packed block. */
typedef struct strided_transfer {
    ops_context *context;
    char *block;
    uint64_t room; /* of the block */
    bool is_write;
} strided_transfer;

/* Whether the elements of strided memory are in row-major order without gaps. */
static bool is_packed(const ops_tensor *view)
{
    int64_t expected = 1;
    bool is_packed = true;
    for (uint32_t i = view->rank; i-- > 0;) {
        is_packed = is_packed && (view->shape[i] == 1 || view->stride[i] == expected);
        expected *= view->shape[i];
    }
    return is_packed;
}

static hal_status part_transfer(const strided_transfer *t, const ops_tensor *tensor,
                                const ops_tensor *view, char *elements)
{
    if (t->is_write) {
        copy_rows(view, elements, t->block, true);
        return write_packed(t->context, tensor, t->block);
    }
    HAL_TRY(read_packed(t->context, tensor, t->block));
    copy_rows(view, elements, t->block, false);
    return HAL_OK;
}

/* Indices from first on along an axis. */
static ops_tensor slice(const ops_tensor *tensor, uint32_t axis, int64_t first, int64_t count)
{
    ops_tensor part = *tensor;
    part.offset += first * tensor->stride[axis];
    part.shape[axis] = count;
    return part;
}

/* Transfers a tensor whose axes before `axis` have one element, by as many indices as have room. */
static hal_status parts_transfer(const strided_transfer *t, const ops_tensor *tensor,
                                 const ops_tensor *view, uint32_t axis, char *elements)
{
    const uint64_t bytes = bytes_of(tensor), size = hal_type_size(tensor->type);
    if (bytes <= t->room) {
        return part_transfer(t, tensor, view, elements);
    }
    const int64_t length = tensor->shape[axis];
    const int64_t fit = (int64_t)(t->room / (bytes / (uint64_t)length));
    const int64_t step = fit > 1 ? fit : 1;
    for (int64_t first = 0; first < length; first += step) {
        const int64_t count = first + step < length ? step : length - first;
        const ops_tensor part = slice(tensor, axis, first, count);
        ops_tensor place = slice(view, axis, first, count);
        HAL_TRY(parts_transfer(t, &part, &place, axis + 1,
                               elements + (uint64_t)(first * view->stride[axis]) * size));
    }
    return HAL_OK;
}

/* Between a contiguous tensor and memory with gaps. */
static hal_status contiguous_transfer(ops_context *context, const host_memory *memory,
                                      const ops_tensor *tensor, char *elements, bool is_write)
{
    const ops_tensor view = host_view(memory, tensor);
    const uint64_t bytes = bytes_of(tensor);
    strided_transfer t = {context, NULL, bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES, is_write};
    t.block = malloc(t.room);
    if (!t.block) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "%s: the host has no %llu bytes",
                              memory->function, (unsigned long long)t.room);
    }
    const hal_status status = parts_transfer(&t, tensor, &view, 0, elements);
    free(t.block);
    return status;
}

hal_status ops_tensor_write_strided(ops_context *context, const ops_tensor *tensor,
                                    const void *elements, const int64_t *strides, uint64_t bytes)
{
    const host_memory memory = {"ops_tensor_write_strided", strides, bytes};
    HAL_TRY(check_call(context, &memory, tensor, elements, 0));
    if (ops_tensor_get_element_count(tensor) == 0) {
        return HAL_OK;
    }
    const ops_tensor view = strides ? host_view(&memory, tensor) : *tensor;
    if (!strides || is_packed(&view)) {
        return write_packed(context, tensor, elements);
    }
    char *from = (char *)(uintptr_t)elements;
    if (ops_tensor_is_contiguous(tensor)) {
        return contiguous_transfer(context, &memory, tensor, from, true);
    }
    ops_tensor copy;
    HAL_TRY(ops_tensor_create(context, tensor->type, tensor->rank, tensor->shape, &copy));
    hal_status status = contiguous_transfer(context, &memory, &copy, from, true);
    if (status == HAL_OK) {
        status = ops_copy(context, &copy, tensor);
    }
    ops_tensor_release(&copy);
    return status;
}

hal_status ops_tensor_read_strided(ops_context *context, const ops_tensor *tensor,
                                   const int64_t *strides, uint64_t bytes, void *elements)
{
    const host_memory memory = {"ops_tensor_read_strided", strides, bytes};
    HAL_TRY(check_call(context, &memory, tensor, elements, 1));
    if (ops_tensor_get_element_count(tensor) == 0) {
        return HAL_OK;
    }
    const ops_tensor view = strides ? host_view(&memory, tensor) : *tensor;
    if (!strides || is_packed(&view)) {
        return read_packed(context, tensor, elements);
    }
    if (ops_tensor_is_contiguous(tensor)) {
        return contiguous_transfer(context, &memory, tensor, elements, false);
    }
    ops_tensor copy;
    HAL_TRY(ops_tensor_create(context, tensor->type, tensor->rank, tensor->shape, &copy));
    hal_status status = ops_copy(context, tensor, &copy);
    if (status == HAL_OK) {
        status = contiguous_transfer(context, &memory, &copy, elements, false);
    }
    ops_tensor_release(&copy);
    return status;
}
