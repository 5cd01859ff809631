/* Copies of kernels: one allocation holds the structure and all of its arrays. */
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

/* Copies an array to *at and moves *at after it. */
static void *array_copy(char **at, const void *source, uint32_t count, size_t size)
{
    void *target = *at;
    if (count > 0) {
        memcpy(target, source, count * size);
    }
    *at += array_bytes(count, size);
    return target;
}

hal_status hal_ir_kernel_copy(const hal_ir_kernel *kernel, hal_ir_kernel **copy)
{
    if (copy == NULL || kernel == NULL) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_ir_kernel_copy: %s: expected a valid pointer, got null",
                        copy == NULL ? "copy" : "kernel");
    }
    *copy = NULL;
    hal_ir_kernel own;
    if (!hal_sized_take(&own, sizeof own, kernel, HAL_IR_KERNEL_LEAST_BYTES)) {
        return hal_fail(HAL_ERROR_INVALID_IR,
                        "hal_ir_kernel_copy: kernel.size: expected sizeof(hal_ir_kernel), got %u",
                        kernel->size);
    }
    const size_t bytes = array_bytes(1, sizeof *kernel) +
                         array_bytes(kernel->record_count, sizeof *kernel->records) +
                         array_bytes(kernel->memory_count, sizeof *kernel->memories) +
                         array_bytes(kernel->scalar_count, sizeof *kernel->scalars) +
                         array_bytes(kernel->constant_count, sizeof *kernel->constants) +
                         array_bytes(kernel->name_bytes, 1);
    char *at = malloc(bytes);
    if (at == NULL) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_ir_kernel_copy: no host memory for %zu bytes",
                        bytes);
    }
    hal_ir_kernel *made = array_copy(&at, &own, 1, sizeof own);
    made->records = array_copy(&at, kernel->records, kernel->record_count, sizeof *kernel->records);
    made->memories =
        array_copy(&at, kernel->memories, kernel->memory_count, sizeof *kernel->memories);
    made->scalars = array_copy(&at, kernel->scalars, kernel->scalar_count, sizeof *kernel->scalars);
    made->constants =
        array_copy(&at, kernel->constants, kernel->constant_count, sizeof *kernel->constants);
    made->names = array_copy(&at, kernel->names, kernel->name_bytes, 1);
    *copy = made;
    return HAL_OK;
}

void hal_ir_kernel_destroy(hal_ir_kernel *kernel)
{
    free(kernel);
}
