/* Copies of kernels: one block of memory holds the structure and all of its arrays. */
#include "internal.h"
#include "base/sized.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of an array, rounded up to the alignment of the next one. */
static size_t array_bytes(uint32_t count, size_t size)
{
    return (count * size + 7) / 8 * 8;
}

/* Sets the pointers of a kernel to arrays that follow it in one block of memory. */
static void arrays_place(hal_ir_kernel *kernel)
{
    char *at = (char *)kernel + array_bytes(1, sizeof *kernel);
    kernel->records = (const hal_ir_record *)(void *)at;
    at += array_bytes(kernel->record_count, sizeof *kernel->records);
    kernel->memories = (const hal_ir_memory *)(void *)at;
    at += array_bytes(kernel->memory_count, sizeof *kernel->memories);
    kernel->scalars = (const hal_ir_scalar *)(void *)at;
    at += array_bytes(kernel->scalar_count, sizeof *kernel->scalars);
    kernel->constants = (const uint64_t *)(void *)at;
    at += array_bytes(kernel->constant_count, sizeof *kernel->constants);
    kernel->names = at;
}

static void array_copy(const void *target, const void *source, uint32_t count, size_t size)
{
    if (count > 0) {
        memcpy((void *)(uintptr_t)target, source, count * size);
    }
}

size_t hal_ir_kernel_packed_bytes(const hal_ir_kernel *kernel)
{
    return array_bytes(1, sizeof *kernel) +
           array_bytes(kernel->record_count, sizeof *kernel->records) +
           array_bytes(kernel->memory_count, sizeof *kernel->memories) +
           array_bytes(kernel->scalar_count, sizeof *kernel->scalars) +
           array_bytes(kernel->constant_count, sizeof *kernel->constants) +
           array_bytes(kernel->name_bytes, 1);
}

hal_ir_kernel *hal_ir_kernel_pack(const hal_ir_kernel *kernel, void *block)
{
    hal_ir_kernel *made = block;
    memset(block, 0, hal_ir_kernel_packed_bytes(kernel));
    *made = *kernel;
    arrays_place(made);
    array_copy(made->records, kernel->records, kernel->record_count, sizeof *kernel->records);
    array_copy(made->memories, kernel->memories, kernel->memory_count, sizeof *kernel->memories);
    array_copy(made->scalars, kernel->scalars, kernel->scalar_count, sizeof *kernel->scalars);
    array_copy(made->constants, kernel->constants, kernel->constant_count,
               sizeof *kernel->constants);
    array_copy(made->names, kernel->names, kernel->name_bytes, 1);
    return made;
}

const hal_ir_kernel *hal_ir_kernel_unpack(void *block, size_t bytes)
{
    hal_ir_kernel *kernel = block;
    if (bytes < sizeof *kernel || kernel->size != sizeof *kernel ||
        kernel->version != HAL_IR_VERSION || hal_ir_kernel_packed_bytes(kernel) != bytes) {
        return NULL;
    }
    arrays_place(kernel);
    return kernel;
}

hal_status hal_ir_kernel_copy(const hal_ir_kernel *kernel, hal_ir_kernel **copy)
{
    if (!copy || !kernel) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_kernel_copy: %s: expected a valid pointer, got null",
                        !copy ? "copy" : "kernel");
    }
    *copy = NULL;
    hal_ir_kernel own;
    if (!hal_sized_take(&own, sizeof own, kernel, HAL_IR_KERNEL_LEAST_BYTES)) {
        return hal_fail(HAL_ERROR_INVALID_IR,
                        "hal_ir_kernel_copy: kernel.size: expected sizeof(hal_ir_kernel), got %u",
                        kernel->size);
    }
    const size_t bytes = hal_ir_kernel_packed_bytes(&own);
    hal_ir_kernel *made = malloc(bytes);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_ir_kernel_copy: no host memory for %zu bytes",
                        bytes);
    }
    hal_ir_kernel_pack(&own, made);
    *copy = made;
    return HAL_OK;
}

void hal_ir_kernel_destroy(hal_ir_kernel *kernel)
{
    free(kernel);
}
