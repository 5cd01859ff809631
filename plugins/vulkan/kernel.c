/* Kernels: IR to SPIR-V to a pipeline. Entries of the plugin's table. */
#include "spirv.h"
#include "spirv_text.h"
#include "vulkan_plugin.h"

#include <kit/native_dump.h>
#include <stdlib.h>
#include <string.h>

const char vulkan_kernel_formats[] = "spirv";

/* What a pipeline is made of, from IR or from native code. */
typedef struct source {
    const char *name; /* for messages */
    const char *entry;
    const uint32_t *words;
    uint64_t bytes;
    uint32_t items, uses_subgroups;
} source;

/* Of VkPipelineCacheHeaderVersionOne: a cache that holds nothing else saves nothing. */
enum { CACHE_HEADER = 32 };

static void dump_line(void *context, const char *text)
{
    (void)context;
    vulkan_host()->log(HAL_LOG_INFO, text);
}

/* Of the module: two sums that mix every word. */
static void hash(const source *made_of, uint64_t key[2])
{
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15), b = made_of->bytes;
    for (uint64_t i = 0; i < made_of->bytes / 4; i++) {
        a = (a ^ made_of->words[i]) * UINT64_C(0xff51afd7ed558ccd);
        b = (b + made_of->words[i]) * UINT64_C(0xc4ceb9fe1a85ec53);
        a ^= a >> 29;
        b ^= b >> 31;
    }
    key[0] = a;
    key[1] = b;
}

/* A cache for one kernel, filled from disk if it is there; null where there is none to be had. */
static VkPipelineCache load_cache(hal_plugin_device *device, const uint64_t key[2], int *loaded)
{
    const hal_host *host = vulkan_host();
    void *data = NULL;
    uint64_t bytes = 0;
    *loaded = host->cache_load != NULL &&
              host->cache_load(device->is.info.id, key, &data, &bytes) == HAL_OK;
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                            .initialDataSize = *loaded ? (size_t)bytes : 0,
                                            .pInitialData = data};
    VkPipelineCache cache = VK_NULL_HANDLE;
    if (device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &cache) != VK_SUCCESS) {
        cache = VK_NULL_HANDLE;
    }
    if (*loaded) {
        host->release(data);
    }
    return cache;
}

/* With subgroups of the described width, all full, where a driver has a choice. */
static VkResult compile(hal_plugin_device *device, const source *made_of, VkShaderModule module,
                        VkPipelineCache cache, VkPipeline *pipeline)
{
    const uint32_t width = device->is.target.subgroup_width;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT,
        .requiredSubgroupSize = width};
    const int asks = device->is.full_subgroups && made_of->uses_subgroups;
    const int full = asks && made_of->items % width == 0;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = asks ? &size : NULL,
                  .flags =
                      full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = made_of->entry},
        .layout = device->layout};
    return device->vk.vkCreateComputePipelines(device->handle, cache, 1, &info, NULL, pipeline);
}

static void store_cache(hal_plugin_device *device, const uint64_t key[2], VkPipelineCache cache)
{
    const hal_host *host = vulkan_host();
    size_t bytes = 0;
    if (cache == VK_NULL_HANDLE || host->cache_store == NULL ||
        device->vk.vkGetPipelineCacheData(device->handle, cache, &bytes, NULL) != VK_SUCCESS ||
        bytes <= CACHE_HEADER) {
        return;
    }
    void *data = malloc(bytes);
    if (data != NULL &&
        device->vk.vkGetPipelineCacheData(device->handle, cache, &bytes, data) == VK_SUCCESS) {
        (void)host->cache_store(device->is.info.id, key, data, bytes); /* a wish, no more */
    }
    free(data);
}

static hal_status create_pipeline(hal_plugin_device *device, const source *made_of,
                                  VkPipeline *pipeline)
{
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = (size_t)made_of->bytes,
                                           .pCode = made_of->words};
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult result = device->vk.vkCreateShaderModule(device->handle, &info, NULL, &module);
    if (result == VK_SUCCESS) {
        uint64_t key[2];
        int loaded = 0;
        hash(made_of, key);
        const VkPipelineCache cache = load_cache(device, key, &loaded);
        result = compile(device, made_of, module, cache, pipeline);
        if (result == VK_SUCCESS && !loaded) {
            store_cache(device, key, cache);
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
        return vulkan_failed(device, result, "kernel %s: making its pipeline", made_of->name);
    }
    return vulkan_fail(HAL_ERROR_COMPILE,
                       "kernel %s: the driver %s of %s rejected its SPIR-V of %llu bytes: %s",
                       made_of->name, device->is.info.driver, device->is.info.name,
                       (unsigned long long)made_of->bytes, vulkan_result_name(result));
}

static hal_status make(hal_plugin_device *device, const hal_ir_kernel *ir, const source *made_of,
                       hal_plugin_kernel **kernel)
{
    hal_status status = vulkan_check(device);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return vulkan_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", made_of->name);
    }
    made->binding_count = ir->binding_count;
    made->scalar_bytes = ir->scalar_bytes;
    made->argument_bytes = spirv_argument_bytes(ir->binding_count, ir->scalar_bytes);
    status = create_pipeline(device, made_of, &made->pipeline);
    if (status == HAL_OK && device->is.quirks->compiles_late) {
        status = vulkan_queue_warm(device, made);
    }
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
    hal_status status = spirv_lower(ir, &device->is.target, &module, problem, sizeof problem);
    if (status != HAL_OK) {
        return vulkan_fail(status, "kernel %s: %s", name, problem);
    }
    if (kit_native_dump_begin(vulkan_host(), name, device->is.info.name)) {
        spirv_text(module.words, module.word_count, dump_line, NULL);
    }
    const source made_of = {.name = name,
                            .entry = "main",
                            .words = module.words,
                            .bytes = 4 * (uint64_t)module.word_count,
                            .items = module.items,
                            .uses_subgroups = module.uses_subgroups};
    status = make(device, ir, &made_of, kernel);
    free(module.words);
    return status;
}

/* Native code takes its arguments as lower.h says. */
hal_status vulkan_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature, hal_plugin_kernel **kernel)
{
    const char *name = signature->names + signature->name;
    uint32_t magic = 0;
    *kernel = NULL;
    if (strcmp(format, vulkan_kernel_formats) != 0) {
        return vulkan_fail(HAL_ERROR_UNSUPPORTED,
                           "kernel %s: code of format %s; this plugin takes "
                           "%s",
                           name, format, vulkan_kernel_formats);
    }
    if (bytes >= 4) {
        memcpy(&magic, code, 4);
    }
    if (bytes < 20 || bytes % 4 != 0 || magic != SPV_MAGIC) {
        return vulkan_fail(HAL_ERROR_INVALID_ARGUMENT,
                           "kernel %s: %llu bytes that are no SPIR-V module of this machine's byte "
                           "order",
                           name, (unsigned long long)bytes);
    }
    uint32_t *words = malloc(bytes); /* aligned, whatever the caller's memory is */
    if (words == NULL) {
        return vulkan_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory", name);
    }
    memcpy(words, code, bytes);
    const source made_of = {.name = name,
                            .entry = entry != NULL && entry[0] != 0 ? entry : "main",
                            .words = words,
                            .bytes = bytes,
                            .items = hal_ir_group_items(signature)};
    const hal_status status = make(device, signature, &made_of, kernel);
    free(words);
    return status;
}

void vulkan_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    if (kernel != NULL) {
        device->vk.vkDestroyPipeline(device->handle, kernel->pipeline, NULL);
        free(kernel);
    }
}
