/* Kernels. Entries of the plugin's table. */
#include "check.h"
#include "jit/code_memory.h"
#include "cpu_plugin.h"

#include <stdatomic.h>
#include <stdlib.h>

static void kernel_release(cpu_kernel *kernel)
{
    if (kernel->native_release) {
        kernel->native_release(kernel->native_state);
    }
    cpu_check_destroy(kernel->check);
    cpu_stream_destroy(kernel);
    cpu_code_destroy(kernel->code, kernel->code_bytes);
    free(kernel->dispatch);
    free(kernel->group);
    free(kernel->accesses);
    free(kernel->lane_ids);
    free(kernel->image);
    free(kernel->slot_offset);
    free(kernel->shared_offset);
    free(kernel);
}

static void raise_size(_Atomic size_t *most, size_t wanted)
{
    size_t now = atomic_load(most);
    while (now < wanted && !atomic_compare_exchange_weak(most, &now, wanted)) {
    }
}

static void raise_count(_Atomic uint32_t *most, uint32_t wanted)
{
    uint32_t now = atomic_load(most);
    while (now < wanted && !atomic_compare_exchange_weak(most, &now, wanted)) {
    }
}

hal_status cpu_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                             hal_plugin_kernel **kernel)
{
    const char *name = ir->names ? ir->names + ir->name : "";
    cpu_kernel *made = calloc(1, sizeof(*made));
    *kernel = NULL;
    if (!made) {
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", name);
    }
    hal_status status = HAL_OK;
    if (cpu_check_wanted() && !(made->check = cpu_check_create(ir))) {
        status = HAL_ERROR_OUT_OF_MEMORY;
    }
    if (status == HAL_OK) {
        made->compile = device->compiles && !made->check;
        made->stream.least_bytes = device->stream_bytes;
        status = cpu_lower_kernel(made, ir, device->lanes);
    }
    if (status != HAL_OK) {
        kernel_release(made);
        return status == HAL_ERROR_OUT_OF_MEMORY
                   ? cpu_fail(status, "kernel %s of %u records: no host memory to lower it", name,
                              ir->record_count)
                   : status;
    }
    made->number = cpu_kernel_number();
    raise_size(&device->arena_bytes, made->arena_bytes);
    raise_count(&device->slot_count, made->slot_count);
    raise_count(&device->memory_count, made->memory_count);
    *kernel = made;
    return HAL_OK;
}

void cpu_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    if (kernel) {
        kernel_release(kernel);
    }
}

uint64_t cpu_kernel_number(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}
