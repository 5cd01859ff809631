/* Kernels: IR is lowered to Metal Shading Language, which the device's driver compiles. Entries of
 * the plugin's table. */
#include "kernel.h"

#include "archive.h"
#include "lower/lower.h"

#include <kit/clock.h>
#include <kit/native_dump.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hal_plugin_kernel *kernel_allocate(const hal_ir_kernel *ir)
{
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    if (!made) {
        kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", ir->names + ir->name);
        return NULL;
    }
    const bool flat = metal_uses_subgroups(ir);
    snprintf(made->name, sizeof made->name, "%s", ir->names + ir->name);
    for (uint32_t i = 0; i < 3; i++) {
        made->group[i] = !flat ? ir->group_size[i] : i > 0 ? 1 : hal_ir_group_items(ir);
    }
    made->binding_count = ir->binding_count;
    made->scalar_bytes = ir->scalar_bytes;
    made->argument_bytes = metal_argument_bytes(ir);
    return made;
}

static hal_status kernel_check(const hal_plugin_device *device, const hal_ir_kernel *ir,
                               const metal_pipeline_facts *facts)
{
    const char *name = ir->names + ir->name, *gpu = device->card->info.name;
    const uint32_t items = hal_ir_group_items(ir);
    if (facts->max_group_items < items) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: group: expected at most %llu work-items, for which %s has "
                        "registers, got %u",
                        name, (unsigned long long)facts->max_group_items, gpu, items);
    }
    if (metal_uses_subgroups(ir) && facts->subgroup_width != METAL_SUBGROUP_WIDTH) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: subgroups: expected %d lanes, got %llu on %s; "
                        "HAL_METAL_QUIRKS=no_subgroups avoids them",
                        name, (int)METAL_SUBGROUP_WIDTH, (unsigned long long)facts->subgroup_width,
                        gpu);
    }
    if (facts->shared_bytes > device->card->info.shared_bytes) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: shared memory: expected at most %u bytes on %s, got %llu", name,
                        device->card->info.shared_bytes, gpu,
                        (unsigned long long)facts->shared_bytes);
    }
    return HAL_OK;
}

static hal_status kernel_build(hal_plugin_device *device, const hal_ir_kernel *ir,
                               const char *source, const char *entry, hal_plugin_kernel **kernel)
{
    hal_plugin_kernel *made = kernel_allocate(ir);
    metal_pipeline_facts facts = {0};
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY; /* the host has the message */
    }
    const uint32_t items = hal_ir_group_items(ir);
    const metal_pipeline_request request = {
        .source = source,
        .entry = entry,
        .group_items = items,
        .full_subgroups =
            device->card->info.subgroup_width > 0 && items % METAL_SUBGROUP_WIDTH == 0,
    };
    hal_status status =
        metal_pipeline_create(device->card, made->name, &request, &facts, &made->pipeline);
    if (status == HAL_OK) {
        status = kernel_check(device, ir, &facts);
    }
    if (status != HAL_OK) {
        metal_kernel_destroy(device, made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

static void log_times(const char *name, const uint64_t times[3], uint64_t bytes)
{
    char line[320];
    snprintf(line, sizeof line,
             "kernel %s: %llu bytes of source lowered in %llu us, compiled by Metal in %llu us",
             name, (unsigned long long)bytes, (unsigned long long)(times[1] - times[0]) / 1000,
             (unsigned long long)(times[2] - times[1]) / 1000);
    kit_log(HAL_LOG_DEBUG, line);
}

hal_status metal_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                               hal_plugin_kernel **kernel)
{
    const char *name = ir->names + ir->name;
    kit_text source = {.host = kit_host()};
    uint64_t times[3] = {kit_clock_ns(), 0, 0};
    char entry[HAL_IR_MAX_NAME + 8];
    *kernel = NULL;
    hal_status status = metal_device_check(device);
    if (status == HAL_OK) {
        status = metal_lower(ir, device->card->quirks, &source);
    }
    if (status == HAL_OK) {
        times[1] = kit_clock_ns();
        if (kit_native_dump_begin(kit_host(), name, device->card->info.name)) {
            kit_native_dump_text(kit_host(), source.data);
        }
        snprintf(entry, sizeof entry, "hal_%s", name);
        status = kernel_build(device, ir, source.data, entry, kernel);
    }
    if (status == HAL_OK) {
        times[2] = kit_clock_ns();
        log_times(name, times, source.length);
    }
    kit_text_release(&source);
    return status;
}

hal_status metal_kernel_create_native(hal_plugin_device *device, const char *format,
                                      const void *code, uint64_t bytes, const char *entry,
                                      const hal_ir_kernel *signature, hal_plugin_kernel **kernel)
{
    *kernel = NULL;
    HAL_TRY(metal_device_check(device));
    if (strcmp(format, "msl") != 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "metal: kernel_create_native: format: expected msl, got %s", format);
    }
    char *source = malloc(bytes + 1);
    if (!source) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", entry);
    }
    memcpy(source, code, bytes);
    source[bytes] = '\0';
    hal_status status = kernel_build(device, signature, source, entry, kernel);
    free(source);
    return status;
}

void metal_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    if (!kernel) {
        return;
    }
    if (!metal_device_is_after_fork(device)) {
        metal_shim_release(kernel->pipeline);
    }
    free(kernel);
}
