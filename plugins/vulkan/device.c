/* Listing, opening and closing devices. Entries of the plugin's table. */
#include "device.h"

#include "quirks.h"

#include <kit/quirks.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VULKAN_MAX_DEVICES = 32 };

/* The usable devices that the last enumerate found. hal calls enumerate and device_open from one
 * thread at a time. */
static vulkan_description *found;
static uint32_t found_count;

/* The process that opened a device, or 0. Drivers may have threads from then on, which a child
 * of fork does not have. */
static pid_t owner;

static hal_status fail_none_usable(uint32_t count, const char *reasons)
{
    if (count == 0) {
        return kit_fail(HAL_ERROR_NO_DEVICE,
                        "vulkan: the drivers find no device; check that it is there and that this "
                        "user may open it (/dev/dri, /dev/nvidia*)");
    }
    return kit_fail(HAL_ERROR_NO_DEVICE, "vulkan: expected a usable device, got %u others%s", count,
                    reasons);
}

static hal_status devices_list(void)
{
    const vulkan_instance *instance = NULL;
    VkPhysicalDevice handles[VULKAN_MAX_DEVICES];
    uint32_t count = VULKAN_MAX_DEVICES, usable = 0;
    char reasons[512] = "", line[400];
    HAL_TRY(vulkan_instance_get(&instance));
    const VkResult result = instance->vkEnumeratePhysicalDevices(instance->handle, &count, handles);
    if (result == VK_ERROR_INITIALIZATION_FAILED) { /* drivers say so when there is no hardware */
        return fail_none_usable(0, reasons);
    }
    if (result < 0) {
        return vulkan_fail_attempt("vulkan", result, "listing the devices");
    }
    vulkan_description *described = calloc(count > 0 ? count : 1, sizeof *described);
    if (!described) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "vulkan: no host memory to list %u devices",
                        count);
    }
    for (uint32_t i = 0; i < count; i++) {
        vulkan_description *d = &described[usable];
        vulkan_describe(instance, handles[i], d);
        if (d->unusable[0] == 0) {
            usable++;
            continue;
        }
        snprintf(line, sizeof line, "%.127s cannot be used: %s", d->info.name, d->unusable);
        kit_log(HAL_LOG_INFO, line);
        snprintf(reasons + strlen(reasons), sizeof reasons - strlen(reasons), "%s%s",
                 reasons[0] ? "; " : ": ", line);
    }
    free(found);
    found = described;
    found_count = usable;
    return usable > 0 ? HAL_OK : fail_none_usable(count, reasons);
}

static hal_status device_load_functions(hal_plugin_device *device)
{
    const vulkan_instance *instance = device->instance;
    PFN_vkVoidFunction function = NULL;
    const char *missing = NULL;
#define DEVICE(name)                                                 \
    function = instance->vkGetDeviceProcAddr(device->handle, #name); \
    missing = !function ? #name : missing;                           \
    memcpy(&device->vk.name, &function, sizeof function);
#define DEVICE_EXTENSION(name)                                       \
    function = instance->vkGetDeviceProcAddr(device->handle, #name); \
    memcpy(&device->vk.name, &function, sizeof function);
#include "symbols.inl"
#undef DEVICE
#undef DEVICE_EXTENSION
    if (missing) {
        return kit_fail(HAL_ERROR_TOO_OLD, "%s: driver %s has no function %s; update it",
                        device->physical.info.name, device->physical.info.driver, missing);
    }
    device->device_queue_count = device->physical.queue_count;
    for (uint32_t i = 0; i < device->device_queue_count; i++) {
        pthread_mutex_init(&device->device_queues[i].lock, NULL);
        device->vk.vkGetDeviceQueue(device->handle, device->physical.family, i,
                                    &device->device_queues[i].handle);
    }
    return HAL_OK;
}

/* Writes the names of the extensions by which memory and fences are shared and clocks are read,
 * at most 5. Returns their number. */
static uint32_t external_extensions(const vulkan_description *is, const char **names)
{
    uint32_t count = 0;
    if (is->host_alignment > 0) {
        names[count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    }
    if (is->has_descriptors) {
        names[count++] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
    }
    if (is->has_dma_buf) {
        names[count++] = VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME;
    }
    if (is->has_semaphore_fd) {
        names[count++] = VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME;
    }
    if (is->has_clocks) {
        names[count++] = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME;
    }
    return count;
}

/* Enables the features and extensions that the description relies on, and no others. */
static hal_status device_create(hal_plugin_device *device)
{
    const vulkan_description *is = &device->physical;
    const spirv_target *target = &is->target;
    const uint32_t stored = is->info.storage_types;
    const VkBool32 has_8 = (stored & HAL_TYPE_BIT(HAL_TYPE_I8)) != 0;
    const VkBool32 has_16 = (stored & HAL_TYPE_BIT(HAL_TYPE_I16)) != 0;
    const VkBool32 atomics = (is->info.features & HAL_FEATURE_ATOMIC_64) != 0;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR layout = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR,
        .workgroupMemoryExplicitLayout = VK_TRUE,
        .workgroupMemoryExplicitLayout8BitAccess = VK_TRUE,
        .workgroupMemoryExplicitLayout16BitAccess = VK_TRUE};
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT,
        .subgroupSizeControl = VK_TRUE,
        .computeFullSubgroups = VK_TRUE};
    VkPhysicalDeviceVulkan12Features features12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .storageBuffer8BitAccess = has_8,
        .shaderInt8 = has_8,
        .shaderFloat16 =
            target->half_converts || (is->info.matrix_types & HAL_TYPE_BIT(HAL_TYPE_F16)) != 0,
        .shaderBufferInt64Atomics = atomics,
        .shaderSharedInt64Atomics = atomics,
        .hostQueryReset = is->has_host_reset != 0,
        .timelineSemaphore = VK_TRUE,
        .bufferDeviceAddress = VK_TRUE,
        .vulkanMemoryModel = VK_TRUE};
    VkPhysicalDeviceVulkan11Features features11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &features12,
        .storageBuffer16BitAccess = has_16};
    const VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &features11,
        .features = {.shaderFloat64 = (stored & HAL_TYPE_BIT(HAL_TYPE_F64)) != 0,
                     .shaderInt64 = VK_TRUE,
                     .shaderInt16 = has_16}};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .cooperativeMatrix = VK_TRUE};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
        .shaderBFloat16Type = VK_TRUE,
        .shaderBFloat16CooperativeMatrix = VK_TRUE};
    const char *extensions[10];
    uint32_t extension_count = 0;
    if (target->shared_views) {
        extensions[extension_count++] = VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME;
        layout.pNext = features12.pNext;
        features12.pNext = &layout;
    }
    if (is->full_subgroups) {
        extensions[extension_count++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
        size_control.pNext = features12.pNext;
        features12.pNext = &size_control;
    }
    if (is->info.matrix_types != 0) {
        extensions[extension_count++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
        matrices.pNext = features12.pNext;
        features12.pNext = &matrices;
    }
    if (is->info.matrix_types & HAL_TYPE_BIT(HAL_TYPE_BF16)) {
        extensions[extension_count++] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
        bfloat16.pNext = features12.pNext;
        features12.pNext = &bfloat16;
    }
    if (is->has_memory_budget) {
        extensions[extension_count++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    }
    extension_count += external_extensions(is, extensions + extension_count);
    float priorities[VULKAN_MAX_DEVICE_QUEUES];
    for (uint32_t i = 0; i < VULKAN_MAX_DEVICE_QUEUES; i++) {
        priorities[i] = 0.5f;
    }
    const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            .queueFamilyIndex = is->family,
                                            .queueCount = is->queue_count,
                                            .pQueuePriorities = priorities};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queues,
                                     .enabledExtensionCount = extension_count,
                                     .ppEnabledExtensionNames = extensions};
    const VkResult result =
        device->instance->vkCreateDevice(is->handle, &info, NULL, &device->handle);
    if (result != VK_SUCCESS) {
        device->handle = NULL;
        return vulkan_fail_result(device, result, "opening the device (%s)", is->info.driver);
    }
    return device_load_functions(device);
}

static hal_status layout_create(hal_plugin_device *device)
{
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                       .size = device->physical.target.push_bytes};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &range};
    device->push_bytes = range.size;
    const VkResult result =
        device->vk.vkCreatePipelineLayout(device->handle, &info, NULL, &device->layout);
    return result == VK_SUCCESS ? HAL_OK
                                : vulkan_fail_result(device, result, "creating a pipeline layout");
}

hal_status vulkan_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    *count = 0;
    HAL_TRY(devices_list());
    for (uint32_t i = 0; i < found_count && i < capacity; i++) {
        infos[i] = found[i].info;
    }
    *count = found_count;
    return HAL_OK;
}

hal_status vulkan_device_open(uint32_t index, hal_plugin_device **device)
{
    *device = NULL;
    HAL_TRY(!found ? devices_list() : HAL_OK);
    if (index >= found_count) {
        return kit_fail(HAL_ERROR_NOT_FOUND, "vulkan:%u: expected an index below %u", index,
                        found_count);
    }
    if (owner != 0 && owner != getpid()) {
        return kit_fail(
            HAL_ERROR_INVALID_STATE,
            "vulkan:%u: the driver does not work in a child of a process that has opened "
            "a device; fork before devices are opened, or let the child execute a "
            "program",
            index);
    }
    hal_plugin_device *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "vulkan:%u: no host memory", index);
    }
    owner = getpid();
    made->physical = found[index];
    hal_status status = vulkan_instance_get(&made->instance);
    status = status == HAL_OK ? device_create(made) : status;
    status = status == HAL_OK ? layout_create(made) : status;
    if (status != HAL_OK) {
        vulkan_device_close(made);
        return status;
    }
    *device = made;
    return HAL_OK;
}

void vulkan_device_close(hal_plugin_device *device)
{
    if (!device) {
        return;
    }
    if (device->handle && device->vk.vkDestroyDevice) {
        device->vk.vkDestroyPipelineLayout(device->handle, device->layout, NULL);
        device->vk.vkDestroyDevice(device->handle, NULL);
    }
    for (uint32_t i = 0; i < device->device_queue_count; i++) {
        pthread_mutex_destroy(&device->device_queues[i].lock);
    }
    free(device);
}

hal_status vulkan_fail_result(hal_plugin_device *device, VkResult result, const char *format, ...)
{
    char attempt[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(attempt, sizeof attempt, format, arguments);
    va_end(arguments);
    if (result == VK_ERROR_DEVICE_LOST) {
        atomic_store(&device->lost, VULKAN_LOST);
    }
    return vulkan_fail_attempt(device->physical.info.name, result, attempt);
}

hal_status vulkan_device_check(const hal_plugin_device *device)
{
    const int lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (!lost) {
        return HAL_OK;
    }
    return kit_fail(HAL_ERROR_DEVICE_LOST,
                    lost == VULKAN_LOST
                        ? "%s: the device was lost earlier; open it again"
                        : "%s: the driver refused batches that had been accepted earlier; open "
                          "the device again",
                    device->physical.info.name);
}

hal_status vulkan_device_give_up(hal_plugin_device *device)
{
    int known = 0;
    atomic_compare_exchange_strong(&device->lost, &known, VULKAN_GIVEN_UP);
    return vulkan_device_check(device);
}

hal_status vulkan_device_check_hardware(const hal_plugin_device *device)
{
    if (!(device->physical.quirks & VULKAN_QUIRK_NO_HARDWARE)) {
        return vulkan_device_check(device);
    }
    return kit_fail(HAL_ERROR_UNSUPPORTED,
                    "%s: a device without hardware (%s is set) makes kernels only; it has no "
                    "memory and runs nothing",
                    device->physical.info.name, device->physical.quirks_variable);
}

hal_status vulkan_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    kit_quirk_at(vulkan_quirk_names, device->physical.quirk_reasons, VULKAN_QUIRK_COUNT,
                 device->physical.quirks, index, quirk);
    return HAL_OK;
}
