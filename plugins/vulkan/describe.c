/* What a physical device is, in hal's terms, and what the lowering may use. */
#include "describe.h"

#include "quirks.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_EXTENSIONS = 512, MAX_MATRICES = 128, DEFAULT_UNITS = 8, NO_HARDWARE_MEMORY = 1 << 30 };

/* Of a driver with VULKAN_QUIRK_LIMITED_LOOPS: the test that ends the last loop is free. */
enum { LIMITED_ITERATIONS = 65536 };

/* The structures that a device is asked to fill, which are chained. */
typedef struct answers {
    VkPhysicalDeviceProperties2 properties;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceMaintenance3Properties maintenance3;
    VkPhysicalDeviceMaintenance4PropertiesKHR maintenance4;
    VkPhysicalDeviceSubgroupProperties subgroup;
    VkPhysicalDeviceDriverProperties driver;
    VkPhysicalDeviceFloatControlsProperties floats;
    VkPhysicalDeviceSubgroupSizeControlPropertiesEXT size_control;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors;
    VkPhysicalDeviceShaderCorePropertiesAMD cores;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_memory;
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDeviceVulkan11Features features11;
    VkPhysicalDeviceVulkan12Features features12;
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control_features;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR layout;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    uint32_t has_matrices, has_bfloat16;
    uint32_t has_maintenance4, has_size_control, has_multiprocessors, has_cores, has_layout;
    uint32_t has_budget, has_host_memory, has_descriptors, has_dma_buf, has_semaphore_fd,
        has_clocks;
} answers;

static void find_extensions(const vulkan_instance *instance, VkPhysicalDevice handle, answers *a)
{
    const struct {
        const char *name;
        uint32_t *found;
    } wanted[] = {
        {VK_KHR_MAINTENANCE_4_EXTENSION_NAME, &a->has_maintenance4},
        {VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, &a->has_size_control},
        {VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, &a->has_multiprocessors},
        {VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME, &a->has_cores},
        {VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME, &a->has_layout},
        {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, &a->has_budget},
        {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, &a->has_host_memory},
        {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, &a->has_descriptors},
        {VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME, &a->has_dma_buf},
        {VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, &a->has_semaphore_fd},
        {VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, &a->has_clocks},
        {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, &a->has_matrices},
        {VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, &a->has_bfloat16},
    };
    uint32_t count = MAX_EXTENSIONS;
    VkExtensionProperties *extensions = calloc(count, sizeof *extensions);
    if (!extensions ||
        instance->vkEnumerateDeviceExtensionProperties(handle, NULL, &count, extensions) < 0) {
        count = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
            if (strcmp(extensions[i].extensionName, wanted[k].name) == 0) {
                *wanted[k].found = 1;
            }
        }
    }
    free(extensions);
}

static void chain_append(void *head, void *next)
{
    VkBaseOutStructure *at = head;
    while (at->pNext) {
        at = at->pNext;
    }
    at->pNext = next;
}

static void device_query(const vulkan_instance *instance, VkPhysicalDevice handle, answers *a)
{
    find_extensions(instance, handle, a);
    a->properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    a->id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    a->maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    a->maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES_KHR;
    a->subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    a->driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    a->floats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    a->size_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT;
    a->multiprocessors.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
    a->cores.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD;
    a->host_memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
    a->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    a->features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    a->features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    a->size_control_features.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
    a->layout.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR;
    a->matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    a->bfloat16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    instance->vkGetPhysicalDeviceProperties(handle, &a->properties.properties);
    if (a->properties.properties.apiVersion < VK_API_VERSION_1_2) {
        return; /* it does not know the structures below */
    }
    void *always[] = {&a->id, &a->maintenance3, &a->subgroup, &a->driver, &a->floats};
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        chain_append(&a->properties, always[i]);
    }
    chain_append(&a->features, &a->features11);
    chain_append(&a->features, &a->features12);
    if (a->has_maintenance4) {
        chain_append(&a->properties, &a->maintenance4);
    }
    if (a->has_size_control) {
        chain_append(&a->properties, &a->size_control);
        chain_append(&a->features, &a->size_control_features);
    }
    if (a->has_multiprocessors) {
        chain_append(&a->properties, &a->multiprocessors);
    }
    if (a->has_cores) {
        chain_append(&a->properties, &a->cores);
    }
    if (a->has_host_memory) {
        chain_append(&a->properties, &a->host_memory);
    }
    if (a->has_layout) {
        chain_append(&a->features, &a->layout);
    }
    if (a->has_matrices) {
        chain_append(&a->features, &a->matrices);
    }
    if (a->has_bfloat16) {
        chain_append(&a->features, &a->bfloat16);
    }
    instance->vkGetPhysicalDeviceProperties2(handle, &a->properties);
    instance->vkGetPhysicalDeviceFeatures2(handle, &a->features);
}

static void describe_names(const answers *a, hal_device_info *info)
{
    const VkPhysicalDeviceProperties *p = &a->properties.properties;
    const uint8_t *u = a->id.deviceUUID;
    switch (p->deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        info->kind = HAL_DEVICE_DISCRETE;
        break;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        info->kind = HAL_DEVICE_INTEGRATED;
        break;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        info->kind = HAL_DEVICE_SOFTWARE;
        break;
    default:
        info->kind = HAL_DEVICE_VIRTUAL;
        break;
    }
    snprintf(info->name, sizeof info->name, "%.127s", p->deviceName);
    snprintf(info->driver, sizeof info->driver, "%.30s %.31s", a->driver.driverName,
             a->driver.driverInfo);
    snprintf(info->id, sizeof info->id,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    char *text = info->architecture;
    int length = snprintf(text, sizeof info->architecture, "%04x:%04x:%x:", p->vendorID,
                          p->deviceID, p->driverVersion);
    for (uint32_t i = 0; i < VK_UUID_SIZE; i++) {
        length += snprintf(text + length, sizeof info->architecture - (size_t)length, "%02x",
                           p->pipelineCacheUUID[i]);
    }
}

/* Prefers a family with compute and without graphics. */
static void find_queues(const vulkan_instance *instance, vulkan_description *d)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = 32;
    d->queue_count = 0;
    instance->vkGetPhysicalDeviceQueueFamilyProperties(d->handle, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        const VkQueueFlags flags = families[i].queueFlags;
        const int better = d->queue_count == 0 || !(flags & VK_QUEUE_GRAPHICS_BIT);
        if ((flags & VK_QUEUE_COMPUTE_BIT) && families[i].queueCount > 0 && better) {
            d->family = i;
            d->queue_count = families[i].queueCount < VULKAN_MAX_DEVICE_QUEUES
                                 ? families[i].queueCount
                                 : VULKAN_MAX_DEVICE_QUEUES;
            d->timestamp_bits = families[i].timestampValidBits;
            if (!(flags & VK_QUEUE_GRAPHICS_BIT)) {
                break;
            }
        }
    }
}

/* The first required feature that the device lacks, or null. */
static const char *missing_feature(const answers *a, const vulkan_description *d)
{
    if (a->properties.properties.apiVersion < VK_API_VERSION_1_2) {
        return "Vulkan 1.2";
    }
    if (!a->features12.bufferDeviceAddress) {
        return "bufferDeviceAddress, by which kernels access memory";
    }
    if (!a->features12.timelineSemaphore) {
        return "timelineSemaphore, by which hal waits for batches";
    }
    if (!a->features12.vulkanMemoryModel) {
        return "vulkanMemoryModel, by which barriers order memory";
    }
    if (!a->features.features.shaderInt64) {
        return "shaderInt64, which addresses need";
    }
    return d->queue_count == 0 ? "queue that computes" : NULL;
}

static void describe_memory(const answers *a, vulkan_description *d)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < d->memory.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &d->memory.memoryHeaps[i];
        if ((heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && heap->size > largest) {
            largest = heap->size;
        }
    }
    if (largest == 0 && d->memory.memoryHeapCount > 0) {
        largest = d->memory.memoryHeaps[0].size;
    }
    if (largest == 0 && (d->quirks & VULKAN_QUIRK_NO_HARDWARE)) {
        largest = NO_HARDWARE_MEMORY; /* without hardware it has none: any size will do */
    }
    uint64_t most = largest;
    if (a->maintenance3.maxMemoryAllocationSize != 0 &&
        a->maintenance3.maxMemoryAllocationSize < most) {
        most = a->maintenance3.maxMemoryAllocationSize;
    }
    if (a->has_maintenance4 && a->maintenance4.maxBufferSize != 0 &&
        a->maintenance4.maxBufferSize < most) {
        most = a->maintenance4.maxBufferSize;
    }
    d->info.memory_bytes = largest;
    d->info.max_allocation = most > 1024 ? most - 512 : most; /* room for alignment */
    d->info.max_binding = d->info.max_allocation;
    d->info.binding_alignment = 16;
    d->info.max_bindings = HAL_IR_MAX_BINDINGS;
    d->info.max_vector_bytes = 16;
    d->timestamp_period = (double)a->properties.properties.limits.timestampPeriod;
    d->info.features |= HAL_FEATURE_ZERO_COPY | HAL_FEATURE_FILL_PATTERNS | HAL_FEATURE_INDIRECT |
                        HAL_FEATURE_COPY_ROWS;
    d->info.features |= d->timestamp_bits > 0 ? HAL_FEATURE_TIMESTAMPS : 0;
}

/* From vendors' extensions, as Vulkan does not tell; else a guess, which only affects how work is
 * divided. */
static uint32_t compute_units(const answers *a)
{
    if (a->has_multiprocessors && a->multiprocessors.shaderSMCount > 0) {
        return a->multiprocessors.shaderSMCount;
    }
    const VkPhysicalDeviceShaderCorePropertiesAMD *cores = &a->cores;
    const uint32_t units = cores->shaderEngineCount * cores->shaderArraysPerEngineCount *
                           cores->computeUnitsPerShaderArray;
    if (a->has_cores && units > 0) {
        return units;
    }
    if (a->properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
        const long processors = sysconf(_SC_NPROCESSORS_ONLN);
        return processors > 0 ? (uint32_t)processors : 1;
    }
    return DEFAULT_UNITS;
}

static void describe_groups(const answers *a, vulkan_description *d)
{
    const VkPhysicalDeviceLimits *limits = &a->properties.properties.limits;
    hal_device_info *info = &d->info;
    for (int i = 0; i < 3; i++) {
        info->max_group_size[i] = limits->maxComputeWorkGroupSize[i];
        info->max_grid[i] = limits->maxComputeWorkGroupCount[i];
    }
    /* A group that uses subgroups is laid out along x, see lower/subgroup.c. */
    info->max_group_items = limits->maxComputeWorkGroupInvocations < info->max_group_size[0]
                                ? limits->maxComputeWorkGroupInvocations
                                : info->max_group_size[0];
    info->shared_bytes = limits->maxComputeSharedMemorySize;
    info->preferred_group = info->max_group_items < 256 ? info->max_group_items : 256;
    info->compute_units = compute_units(a);
    info->max_loop_iterations = d->quirks & VULKAN_QUIRK_LIMITED_LOOPS ? LIMITED_ITERATIONS : 0;
    info->max_queues = d->queue_count > 0 ? d->queue_count : 1;
    d->target.shared_bytes = limits->maxComputeSharedMemorySize;
    d->target.push_bytes = limits->maxPushConstantsSize < VULKAN_MAX_PUSH
                               ? limits->maxPushConstantsSize
                               : VULKAN_MAX_PUSH;
}

static void describe_types(const answers *a, vulkan_description *d)
{
    const VkPhysicalDeviceFeatures *core = &a->features.features;
    uint32_t values = HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I32) |
                      HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) |
                      HAL_TYPE_BIT(HAL_TYPE_U64) | HAL_TYPE_BIT(HAL_TYPE_F32);
    values |= core->shaderFloat64 ? HAL_TYPE_BIT(HAL_TYPE_F64) : 0;
    uint32_t stored = values & ~HAL_TYPE_BIT(HAL_TYPE_BOOL);
    if (a->features12.storageBuffer8BitAccess && a->features12.shaderInt8) {
        stored |=
            HAL_TYPE_BIT(HAL_TYPE_I8) | HAL_TYPE_BIT(HAL_TYPE_U8) | HAL_TYPE_BIT(HAL_TYPE_BOOL);
    }
    if (a->features11.storageBuffer16BitAccess && core->shaderInt16) {
        stored |= HAL_TYPE_BIT(HAL_TYPE_I16) | HAL_TYPE_BIT(HAL_TYPE_U16) |
                  HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16);
    }
    d->info.arithmetic_types = values;
    d->info.storage_types = stored;
    if (a->features12.shaderBufferInt64Atomics && a->features12.shaderSharedInt64Atomics) {
        d->info.features |= HAL_FEATURE_ATOMIC_64;
    }
    d->target.shared_views = a->has_layout && a->layout.workgroupMemoryExplicitLayout &&
                             a->layout.workgroupMemoryExplicitLayout8BitAccess &&
                             a->layout.workgroupMemoryExplicitLayout16BitAccess;
}

/* Some devices have one mode for all widths, or one for 16 and 64 bits: then a mode is requested
 * only where all of those widths have it. */
static uint32_t allowed_widths(uint32_t widths, VkShaderFloatControlsIndependence independence)
{
    const uint32_t others = SPIRV_FLOAT_16 | SPIRV_FLOAT_64;
    if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL) {
        return widths;
    }
    if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE) {
        return (widths & (others | SPIRV_FLOAT_32)) == (others | SPIRV_FLOAT_32) ? widths : 0;
    }
    return (widths & others) == others ? widths : widths & SPIRV_FLOAT_32;
}

/* SPIRV_HIDES_* of a driver with these quirks. */
static uint32_t hidden_of(uint32_t quirks)
{
    static const uint32_t rows[][2] = {{VULKAN_QUIRK_WRONG_CONSTANTS, SPIRV_HIDES_CONSTANTS},
                                       {VULKAN_QUIRK_WRONG_NAN, SPIRV_HIDES_NAN},
                                       {VULKAN_QUIRK_WRONG_FACTORS, SPIRV_HIDES_FACTORS},
                                       {VULKAN_QUIRK_WRONG_ABS, SPIRV_HIDES_NEGATIVES}};
    uint32_t hides = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hides |= quirks & rows[i][0] ? rows[i][1] : 0;
    }
    return hides;
}

/* Denormals are claimed where they can be requested; fused multiply-add, and what else Vulkan does
 * not promise, by quirks. With both, division and square root of f32 are corrected. */
static void describe_floats(const answers *a, vulkan_description *d)
{
    const VkPhysicalDeviceFloatControlsProperties *f = &a->floats;
    const uint32_t doubles = a->features.features.shaderFloat64 ? SPIRV_FLOAT_64 : 0;
    const uint32_t used = SPIRV_FLOAT_32 | doubles;
    const uint32_t halves = a->features12.shaderFloat16 && a->features.features.shaderInt16 &&
                                    a->features11.storageBuffer16BitAccess
                                ? SPIRV_FLOAT_16
                                : 0;
    uint32_t kept = 0, denormals = 0, nearest = 0;
    kept |= f->shaderSignedZeroInfNanPreserveFloat16 ? halves : 0;
    kept |= f->shaderSignedZeroInfNanPreserveFloat32 ? SPIRV_FLOAT_32 : 0;
    kept |= f->shaderSignedZeroInfNanPreserveFloat64 ? doubles : 0;
    denormals |= f->shaderDenormPreserveFloat16 ? halves : 0;
    denormals |= f->shaderDenormPreserveFloat32 ? SPIRV_FLOAT_32 : 0;
    denormals |= f->shaderDenormPreserveFloat64 ? doubles : 0;
    nearest |= f->shaderRoundingModeRTEFloat16 ? halves : 0;
    nearest |= f->shaderRoundingModeRTEFloat32 ? SPIRV_FLOAT_32 : 0;
    nearest |= f->shaderRoundingModeRTEFloat64 ? doubles : 0;
    d->target.zero_inf_nan = kept;
    d->target.denormals = allowed_widths(denormals, f->denormBehaviorIndependence);
    d->target.nearest_even = allowed_widths(nearest, f->roundingModeIndependence);
    d->target.half_converts = (d->target.denormals & d->target.nearest_even & SPIRV_FLOAT_16) != 0;
    d->target.half_rounds = d->target.half_converts && !(d->quirks & VULKAN_QUIRK_FOLDS_HALVES);
    d->target.half_packs = d->target.half_converts && !d->target.half_rounds;
    d->target.hides = hidden_of(d->quirks);
    d->target.repairs_integral = (d->quirks & VULKAN_QUIRK_WRONG_INTEGRAL) != 0;
    d->info.exactness |= d->quirks & VULKAN_QUIRK_EXACT_FMA ? HAL_EXACT_FMA : 0;
    d->info.exactness |=
        d->quirks & VULKAN_QUIRK_EXACT_DIVIDE ? HAL_EXACT_DIVIDE | HAL_EXACT_SQRT : 0;
    d->info.exactness |= (d->target.denormals & used) == used ? HAL_EXACT_DENORMALS : 0;
    if ((d->info.exactness & (HAL_EXACT_FMA | HAL_EXACT_DENORMALS)) ==
            (HAL_EXACT_FMA | HAL_EXACT_DENORMALS) &&
        doubles != 0 && !(d->info.exactness & HAL_EXACT_DIVIDE)) {
        d->target.repairs_division = 1;
        d->info.exactness |=
            d->quirks & VULKAN_QUIRK_EXACT_DOUBLES ? HAL_EXACT_DIVIDE | HAL_EXACT_SQRT : 0;
    }
}

/* Subgroups are offered where lanes are known to be in the order of work-items, and where there is
 * one width, or one that can be required. */
static void describe_subgroups(const answers *a, vulkan_description *d)
{
    const uint32_t needed = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    const uint32_t width = a->subgroup.subgroupSize;
    const VkPhysicalDeviceSubgroupSizeControlPropertiesEXT *control = &a->size_control;
    const int fixed = !a->has_size_control || control->minSubgroupSize == control->maxSubgroupSize;
    const int required = d->has_subgroup_control && !fixed && width >= control->minSubgroupSize &&
                         width <= control->maxSubgroupSize &&
                         (control->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
    if ((a->subgroup.supportedOperations & needed) != needed ||
        !(a->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) ||
        !(d->quirks & VULKAN_QUIRK_LANES_IN_ORDER) || width > 128 || (width & (width - 1)) != 0 ||
        !(fixed || required)) {
        return;
    }
    if (required && control->maxComputeWorkgroupSubgroups * width < d->info.max_group_items) {
        return;
    }
    d->info.subgroup_width = width;
    d->target.subgroup_width = width;
    d->full_subgroups = (uint32_t)required;
}

/* Matrix units, for which the driver has a product of the IR's size, with lanes as the IR has
 * them. */
static void describe_matrices(const vulkan_instance *instance, const answers *a,
                              vulkan_description *d)
{
    VkCooperativeMatrixPropertiesKHR found[MAX_MATRICES];
    uint32_t count = MAX_MATRICES;
    for (uint32_t i = 0; i < MAX_MATRICES; i++) {
        found[i] = (VkCooperativeMatrixPropertiesKHR){
            .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
    }
    if (!a->has_matrices || !a->matrices.cooperativeMatrix ||
        !(d->quirks & VULKAN_QUIRK_MATRICES_IN_ORDER) ||
        d->info.subgroup_width != HAL_IR_MATRIX_LANES ||
        !instance->vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
        instance->vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(d->handle, &count, found) < 0) {
        return;
    }
    const bool has_bf16 = a->has_bfloat16 && a->bfloat16.shaderBFloat16Type &&
                          a->bfloat16.shaderBFloat16CooperativeMatrix;
    for (uint32_t i = 0; i < count; i++) {
        const VkCooperativeMatrixPropertiesKHR *of = &found[i];
        const bool is_of_ir = of->MSize == 16 && of->NSize == 8 && of->KSize == 16 &&
                              of->AType == of->BType &&
                              of->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                              of->ResultType == of->CType && of->scope == VK_SCOPE_SUBGROUP_KHR;
        if (is_of_ir && of->AType == VK_COMPONENT_TYPE_FLOAT16_KHR && a->features12.shaderFloat16) {
            d->info.matrix_types |= HAL_TYPE_BIT(HAL_TYPE_F16);
        }
        if (is_of_ir && of->AType == VK_COMPONENT_TYPE_BFLOAT16_KHR && has_bf16) {
            d->info.matrix_types |= HAL_TYPE_BIT(HAL_TYPE_BF16);
        }
    }
}

/* That of the device, and CLOCK_MONOTONIC. */
static bool clocks_are_read(const vulkan_instance *instance, VkPhysicalDevice handle)
{
    VkTimeDomainEXT domains[16];
    uint32_t count = sizeof domains / sizeof domains[0], found = 0;
    if (!instance->vkGetPhysicalDeviceCalibrateableTimeDomainsEXT ||
        instance->vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(handle, &count, domains) < 0) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        found |= domains[i] == VK_TIME_DOMAIN_DEVICE_EXT            ? 1u
                 : domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT ? 2u
                                                                    : 0u;
    }
    return found == 3;
}

/* Drivers with the extension may have it for other semaphores only. */
static bool timelines_are_shared(const vulkan_instance *instance, VkPhysicalDevice handle)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkPhysicalDeviceExternalSemaphoreInfo asked = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
        .pNext = &type,
        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkExternalSemaphoreFeatureFlags both =
        VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
    VkExternalSemaphoreProperties answer = {.sType =
                                                VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
    instance->vkGetPhysicalDeviceExternalSemaphoreProperties(handle, &asked, &answer);
    return (answer.externalSemaphoreFeatures & both) == both;
}

void vulkan_describe(const vulkan_instance *instance, VkPhysicalDevice handle,
                     vulkan_description *d)
{
    answers *a = calloc(1, sizeof *a);
    memset(d, 0, sizeof *d);
    d->handle = handle;
    d->info.size = sizeof d->info;
    if (!a) {
        snprintf(d->unusable, sizeof d->unusable, "no host memory to describe it");
        return;
    }
    device_query(instance, handle, a);
    d->quirks = vulkan_quirks(a->driver.driverID, d->quirk_reasons);
    d->quirks_variable = vulkan_quirks_variable(a->driver.driverID);
    d->has_memory_budget = a->has_budget;
    d->has_descriptors = a->has_descriptors;
    d->has_dma_buf = a->has_descriptors && a->has_dma_buf;
    d->has_clocks = a->has_clocks && clocks_are_read(instance, handle);
    d->has_semaphore_fd = a->has_semaphore_fd && timelines_are_shared(instance, handle);
    d->host_alignment =
        a->has_host_memory ? (uint32_t)a->host_memory.minImportedHostPointerAlignment : 0;
    d->has_host_reset = a->features12.hostQueryReset;
    d->has_subgroup_control = a->has_size_control && a->size_control_features.subgroupSizeControl &&
                              a->size_control_features.computeFullSubgroups;
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    instance->vkGetPhysicalDeviceMemoryProperties2(handle, &memory);
    d->memory = memory.memoryProperties;
    describe_names(a, &d->info);
    find_queues(instance, d);
    const char *missing = missing_feature(a, d);
    if (missing) {
        snprintf(d->unusable, sizeof d->unusable, "it has no %s", missing);
    }
    describe_memory(a, d);
    describe_groups(a, d);
    describe_types(a, d);
    describe_floats(a, d);
    describe_subgroups(a, d);
    describe_matrices(instance, a, d);
    free(a);
}
