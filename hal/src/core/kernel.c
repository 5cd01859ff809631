/* Kernel objects. */
#include "kernel.h"

#include "hooks.h"

#include "base/status.h"
#include "ir/iterations.h"
#include "ir/report.h"

#include <hal/ir_build.h>

#include <stdlib.h>
#include <string.h>

static hal_status names_out_of_memory(void)
{
    return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the names of a kernel");
}

static hal_status kernel_describe_gemm(hal_kernel *kernel, const hal_gemm_description *gemm)
{
    static const char names[] = "gemm\0a\0b\0c\0workspace";
    enum { NAMED = 4, INPUT_BYTES = 8 };
    kernel->names = malloc(sizeof names + HAL_GEMM_MAX_INPUTS * INPUT_BYTES + sizeof "offsets");
    if (!kernel->names) {
        return names_out_of_memory();
    }
    memcpy(kernel->names, names, sizeof names);
    char *at = kernel->names + sizeof names;
    for (uint32_t i = 0; i < gemm->input_count; i++) {
        const char number[] = {(char)('0' + i / 10), (char)('0' + i % 10), 0};
        at = stpcpy(stpcpy(at, "input"), number) + 1;
        kernel->access[NAMED + i] = HAL_ACCESS_READ;
    }
    kernel->access[0] = HAL_ACCESS_READ;
    kernel->access[1] = HAL_ACCESS_READ;
    kernel->access[2] = gemm->beta_is_zero ? HAL_ACCESS_WRITE : HAL_ACCESS_READ_WRITE;
    kernel->access[3] = HAL_ACCESS_READ_WRITE;
    kernel->binding_count = NAMED + gemm->input_count;
    if (gemm->type_offsets != HAL_TYPE_NONE) {
        stpcpy(at, "offsets");
        kernel->access[kernel->binding_count++] = HAL_ACCESS_READ;
    }
    kernel->access[kernel->binding_count] = HAL_ACCESS_READ;
    kernel->scalar_bytes = 2 * sizeof(double);
    return HAL_OK;
}

static hal_status kernel_describe_attention(hal_kernel *kernel)
{
    static const char names[] = "attention\0q\0k\0v\0y";
    enum { INPUTS = 3 };
    kernel->names = malloc(sizeof names);
    if (!kernel->names) {
        return names_out_of_memory();
    }
    memcpy(kernel->names, names, sizeof names);
    for (uint32_t i = 0; i <= INPUTS; i++) {
        kernel->access[i] = i < INPUTS ? HAL_ACCESS_READ : HAL_ACCESS_WRITE;
    }
    kernel->binding_count = INPUTS + 1;
    kernel->access[kernel->binding_count] = HAL_ACCESS_READ;
    kernel->scalar_bytes = sizeof(double);
    return HAL_OK;
}

static hal_status kernel_describe_ir(hal_kernel *kernel, const hal_ir_kernel *ir)
{
    size_t bytes = strlen(ir->names + ir->name) + 1;
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        kernel->access[i] = ir->memories[i].access;
        bytes += strlen(ir->names + ir->memories[i].name) + 1;
    }
    kernel->binding_count = ir->binding_count;
    kernel->reports = hal_ir_has_reports(ir);
    kernel->access[kernel->binding_count] = HAL_ACCESS_READ;
    kernel->scalar_bytes = ir->scalar_bytes;
    kernel->names = malloc(bytes);
    if (!kernel->names) {
        return names_out_of_memory();
    }
    char *at = stpcpy(kernel->names, ir->names + ir->name) + 1;
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        at = stpcpy(at, ir->names + ir->memories[i].name) + 1;
    }
    return HAL_OK;
}

static hal_status plugin_compile(const hal_kernel *kernel, const hal_kernel_source *source,
                                 hal_plugin_kernel **handle)
{
    hal_device *device = kernel->device;
    const hal_plugin_entries *plugin = device->plugin;
    if (source->gemm) {
        return plugin->gemm(device->handle, source->gemm, handle, source->workspace_bytes);
    }
    if (source->attention) {
        return plugin->attention(device->handle, source->attention, handle);
    }
    if (source->code) {
        return plugin->kernel_create_native(device->handle, source->format, source->code,
                                            source->bytes, source->entry, source->ir, handle);
    }
    return plugin->kernel_create(device->handle, source->ir, handle);
}

hal_kernel *hal_kernel_allocate(hal_device *device, const hal_kernel_source *source)
{
    hal_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel");
        return NULL;
    }
    atomic_init(&kernel->references, 1);
    hal_fence_set_init(&kernel->uses);
    kernel->device = device;
    hal_status status = source->gemm        ? kernel_describe_gemm(kernel, source->gemm)
                        : source->attention ? kernel_describe_attention(kernel)
                                            : kernel_describe_ir(kernel, source->ir);
    if (status == HAL_OK && !hal_kernel_source_is_described(source) &&
        device->info.max_loop_iterations != 0 && hal_ir_has_scalar_loops(source->ir)) {
        status = hal_ir_kernel_copy(source->ir, &kernel->limited);
    }
    if (status != HAL_OK) {
        hal_kernel_free(kernel);
        return NULL;
    }
    hal_device_ref(device);
    return kernel;
}

hal_status hal_kernel_compile(hal_kernel *kernel, const hal_kernel_source *source)
{
    hal_device *device = kernel->device;
    const hal_cache_scope *outer = hal_cache_enter(&device->cache);
    const uint64_t hits = hal_cache_count_hits();
    hal_event event = {
        .kind = HAL_EVENT_COMPILE, .device = device, .kernel = kernel, .source = source};
    hal_plugin_kernel *handle = NULL;
    hal_status status = hal_event_begin(&event);
    if (status == HAL_OK) {
        status = plugin_compile(kernel, event.given_source ? event.given_source : source, &handle);
    }
    status = hal_host_made(status, handle);
    kernel->from_cache = hal_cache_count_hits() > hits;
    if (status == HAL_OK) {
        atomic_store_explicit(&kernel->handle, handle, memory_order_release);
    }
    hal_event_end(&event, status);
    hal_cache_enter(outer);
    if (status != HAL_OK) {
        return hal_device_failed(device, status, "creating kernel %s", kernel->names);
    }
    return HAL_OK;
}

void hal_kernel_free(hal_kernel *kernel)
{
    hal_plugin_kernel *handle = atomic_load(&kernel->handle);
    if (handle) {
        hal_event event = {.kind = HAL_EVENT_DESTROY, .device = kernel->device, .kernel = kernel};
        hal_event_begin(&event);
        kernel->device->plugin->kernel_destroy(kernel->device->handle, handle);
        hal_event_end(&event, HAL_OK);
    }
    hal_fence_set_destroy(&kernel->uses);
    free(kernel->message);
    free(kernel->names);
    hal_ir_kernel_destroy(kernel->limited);
    hal_hook_retire(HAL_OBJECT_KERNEL, kernel, sizeof *kernel, free);
}

const char *hal_kernel_get_name(const hal_kernel *kernel)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_KERNEL, kernel, "hal_kernel_get_name");
    return kernel && status == HAL_OK ? kernel->names : "";
}

const char *hal_kernel_binding_name(const hal_kernel *kernel, uint32_t binding)
{
    const char *name = kernel->names;
    for (uint32_t i = 0; i <= binding; i++) {
        name += strlen(name) + 1;
    }
    return name;
}

hal_status hal_kernel_note_use(hal_kernel *kernel, const hal_recorder *recorder)
{
    pthread_mutex_lock(&kernel->uses.lock);
    const hal_status status = hal_fence_set_add(&kernel->uses, hal_recorder_use(recorder));
    pthread_mutex_unlock(&kernel->uses.lock);
    if (status == HAL_OK) {
        atomic_store_explicit(&kernel->batch_serial, recorder->serial, memory_order_relaxed);
    }
    return status;
}
