/* Kernels: IR is lowered to SPIR-V, of which the driver makes a pipeline. Entries of the plugin's
 * table. */
#include "kernel.h"

#include "lower/lower.h"
#include "lower/spirv.h"
#include "lower/spirv_text.h"
#include "quirks.h"

#include <kit/hash.h>
#include <kit/native_dump.h>
#include <stdlib.h>
#include <string.h>

const char vulkan_kernel_formats[] = "spirv";

/* A module, from IR or native code. */
typedef struct module_source {
    const char *name; /* for messages */
    const char *entry;
    const uint32_t *words;
    uint64_t bytes;
    uint32_t items, uses_subgroups;
} module_source;

/* The size of VkPipelineCacheHeaderVersionOne: a cache with nothing else is not stored. */
enum { CACHE_HEADER = 32 };

static void dump_line(void *context, const char *text)
{
    (void)context;
    kit_log(HAL_LOG_INFO, text);
}

/* A pipeline cache for one kernel, from the compile cache if it is there; null after a failure. */
static VkPipelineCache cache_load(hal_plugin_device *device, const uint64_t key[2], int *loaded)
{
    const hal_host *host = kit_host();
    void *data = NULL;
    uint64_t bytes = 0;
    *loaded = host->cache_load(host, device->physical.info.id, key, &data, &bytes) == HAL_OK;
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                            .initialDataSize = *loaded ? (size_t)bytes : 0,
                                            .pInitialData = data};
    VkPipelineCache cache = VK_NULL_HANDLE;
    if (device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &cache) != VK_SUCCESS) {
        cache = VK_NULL_HANDLE;
    }
    if (*loaded) {
        host->release(host, data);
    }
    return cache;
}

/* Requires the described width of subgroups, and full ones, where a driver has a choice. */
static VkResult pipeline_compile(hal_plugin_device *device, const module_source *source,
                                 VkShaderModule module, VkPipelineCache cache, VkPipeline *pipeline)
{
    const uint32_t width = device->physical.target.subgroup_width;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT,
        .requiredSubgroupSize = width};
    const int requires_width = device->physical.full_subgroups && source->uses_subgroups;
    const int full = requires_width && source->items % width == 0;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = requires_width ? &size : NULL,
                  .flags =
                      full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = source->entry},
        .layout = device->layout};
    return device->vk.vkCreateComputePipelines(device->handle, cache, 1, &info, NULL, pipeline);
}

static void cache_store(hal_plugin_device *device, const uint64_t key[2], VkPipelineCache cache)
{
    const hal_host *host = kit_host();
    size_t bytes = 0;
    if (cache == VK_NULL_HANDLE ||
        device->vk.vkGetPipelineCacheData(device->handle, cache, &bytes, NULL) != VK_SUCCESS ||
        bytes <= CACHE_HEADER) {
        return;
    }
    void *data = malloc(bytes);
    if (data &&
        device->vk.vkGetPipelineCacheData(device->handle, cache, &bytes, data) == VK_SUCCESS) {
        (void)host->cache_store(host, device->physical.info.id, key, data, bytes); /* optional */
    }
    free(data);
}

static hal_status pipeline_create(hal_plugin_device *device, const module_source *source,
                                  VkPipeline *pipeline)
{
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = (size_t)source->bytes,
                                           .pCode = source->words};
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult result = device->vk.vkCreateShaderModule(device->handle, &info, NULL, &module);
    if (result == VK_SUCCESS) {
        uint64_t key[2] = {0};
        int loaded = 0;
        kit_hash_add(key, source->words, source->bytes);
        const VkPipelineCache cache = cache_load(device, key, &loaded);
        result = pipeline_compile(device, source, module, cache, pipeline);
        if (result == VK_SUCCESS && !loaded) {
            cache_store(device, key, cache);
        }
        device->vk.vkDestroyPipelineCache(device->handle, cache, NULL);
        device->vk.vkDestroyShaderModule(device->handle, module, NULL);
    }
    if (result == VK_SUCCESS) {
        return HAL_OK;
    }
    *pipeline = VK_NULL_HANDLE;
    if (result == VK_ERROR_DEVICE_LOST || result == VK_ERROR_OUT_OF_HOST_MEMORY ||
        result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
        return vulkan_fail_result(device, result, "kernel %s: creating its pipeline", source->name);
    }
    return kit_fail(HAL_ERROR_COMPILE,
                    "kernel %s: the driver %s of %s rejected its SPIR-V of %llu bytes: %s",
                    source->name, device->physical.info.driver, device->physical.info.name,
                    (unsigned long long)source->bytes, vulkan_result_name(result));
}

static hal_status kernel_create_from(hal_plugin_device *device, const hal_ir_kernel *ir,
                                     const module_source *source, hal_plugin_kernel **kernel)
{
    HAL_TRY(vulkan_device_check(device));
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", source->name);
    }
    made->binding_count = ir->binding_count;
    made->scalar_bytes = ir->scalar_bytes;
    made->argument_bytes = spirv_argument_bytes(ir->binding_count, ir->scalar_bytes);
    hal_status status = pipeline_create(device, source, &made->pipeline);
    if (status != HAL_OK) {
        vulkan_kernel_destroy(device, made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

hal_status vulkan_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    char problem[256] = "";
    spirv_module module;
    *kernel = NULL;
    const char *name = ir->names + ir->name;
    hal_status status = spirv_lower(ir, &device->physical.target, &module, problem, sizeof problem);
    if (status != HAL_OK) {
        return kit_fail(status, "kernel %s: %s", name, problem);
    }
    if (kit_native_dump_begin(kit_host(), name, device->physical.info.name)) {
        spirv_text(module.words, module.word_count, dump_line, NULL);
    }
    const module_source source = {.name = name,
                                  .entry = "main",
                                  .words = module.words,
                                  .bytes = 4 * (uint64_t)module.word_count,
                                  .items = module.items,
                                  .uses_subgroups = module.uses_subgroups};
    status = kernel_create_from(device, ir, &source, kernel);
    free(module.words);
    return status;
}

/* Native code has the arguments that lower/lower.h describes. */
hal_status vulkan_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *interface, hal_plugin_kernel **kernel)
{
    const char *name = interface->names + interface->name;
    uint32_t magic = 0;
    *kernel = NULL;
    if (strcmp(format, vulkan_kernel_formats) != 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: kernel_create_native: format: expected %s, got %s", name,
                        vulkan_kernel_formats, format);
    }
    if (bytes >= 4) {
        memcpy(&magic, code, 4);
    }
    if (bytes < 20 || bytes % 4 != 0 || magic != SPV_MAGIC) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "kernel %s: kernel_create_native: code: expected a SPIR-V module in the "
                        "machine's byte order, got %llu other bytes",
                        name, (unsigned long long)bytes);
    }
    uint32_t *words = malloc(bytes); /* aligned for the driver */
    if (!words) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", name);
    }
    memcpy(words, code, bytes);
    const module_source source = {.name = name,
                                  .entry = entry && entry[0] != 0 ? entry : "main",
                                  .words = words,
                                  .bytes = bytes,
                                  .items = hal_ir_group_items(interface)};
    const hal_status status = kernel_create_from(device, interface, &source, kernel);
    free(words);
    return status;
}

hal_status vulkan_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                hal_kernel_report *report)
{
    (void)kernel;
    report->known = 0;
    return vulkan_device_check(device);
}

void vulkan_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    if (kernel) {
        device->vk.vkDestroyPipeline(device->handle, kernel->pipeline, NULL);
        free(kernel);
    }
}
