/* Kernels: executables of IR, and native matrix products. */
#include "kernel.h"

#include "device.h"
#include "status.h"

#include <stdatomic.h>
#include <stdlib.h>

static uint64_t number_next(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
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
    const cpu_executable_options options = {.lanes = device->lanes,
                                            .compiles = device->compiles,
                                            .checks = cpu_check_wanted(),
                                            .stream_bytes = device->stream_bytes};
    cpu_executable *executable = NULL;
    *kernel = NULL;
    HAL_TRY(cpu_executable_create(ir, &options, &executable));
    hal_plugin_kernel *made = calloc(1, sizeof(*made));
    if (!made) {
        cpu_executable_destroy(executable);
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel: no host memory");
    }
    made->executable = executable;
    made->number = number_next();
    atomic_init(&made->work, executable->program.work);
    raise_size(&device->arena_bytes, executable->program.arena_bytes);
    raise_count(&device->slot_count, executable->program.slot_count);
    raise_count(&device->memory_count, executable->program.memory_count);
    *kernel = made;
    return HAL_OK;
}

hal_status cpu_kernel_create_product(hal_plugin_device *device,
                                     const hal_gemm_description *description,
                                     hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    const cpu_product_options options = {.lanes = device->lanes,
                                         .isa = device->gemm_isa,
                                         .compiles = device->compiles,
                                         .threads = device->threads};
    cpu_product *product = NULL;
    *kernel = NULL;
    HAL_TRY(cpu_product_create(description, &options, &product, workspace_bytes));
    hal_plugin_kernel *made = calloc(1, sizeof(*made));
    if (!made) {
        cpu_product_destroy(product);
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "gemm: no host memory for a kernel");
    }
    made->product = product;
    made->number = number_next();
    atomic_init(&made->work, cpu_product_work(product));
    *kernel = made;
    return HAL_OK;
}

/* Kernels that are interpreted, and products, have no code of their own. */
hal_status cpu_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                             hal_kernel_report *report)
{
    (void)device;
    if (kernel->executable && kernel->executable->code.bytes) {
        report->known = HAL_REPORT_CODE;
        report->code_bytes = kernel->executable->code.size;
    }
    return HAL_OK;
}

void cpu_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    if (kernel) {
        cpu_executable_destroy(kernel->executable);
        cpu_product_destroy(kernel->product);
        free(kernel);
    }
}
