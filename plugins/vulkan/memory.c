/* Memory: each allocation is a buffer with its own VkDeviceMemory, as hal pools memory. Entries of
 * the plugin's table. */
#include "memory.h"

#include <stdlib.h>

#define ALIGNMENT UINT64_C(256)

/* The properties that a kind of memory requires, prefers (the first ones more) and avoids. */
typedef struct memory_wish {
    VkMemoryPropertyFlags required, preferred, also_preferred, avoided;
} memory_wish;

static hal_status fail_allocation(hal_plugin_device *device, VkResult result, uint64_t bytes)
{
    uint64_t free_bytes = 0, total = 0;
    vulkan_memory_info(device, &free_bytes, &total);
    return vulkan_fail_result(device, result, "allocating %llu bytes (%llu free of %llu)",
                              (unsigned long long)bytes, (unsigned long long)free_bytes,
                              (unsigned long long)total);
}

/* `types` are the handles by which the memory is shared, or 0. */
static hal_status create_buffer(hal_plugin_device *device, hal_plugin_memory *memory,
                                uint64_t bytes, VkExternalMemoryHandleTypeFlags types,
                                VkMemoryRequirements *needs)
{
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = types};
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = types ? &external : NULL,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                 VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
    const VkResult result = device->vk.vkCreateBuffer(device->handle, &info, NULL, &memory->buffer);
    if (result != VK_SUCCESS) {
        return fail_allocation(device, result, bytes);
    }
    device->vk.vkGetBufferMemoryRequirements(device->handle, memory->buffer, needs);
    return HAL_OK;
}

static memory_wish wish_of_kind(uint32_t kind)
{
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    switch (kind) {
    case HAL_MEMORY_UPLOAD: /* written in order by the host: need not be cached */
        return (memory_wish){
            .required = mapped, .preferred = 0, .also_preferred = 0, .avoided = local | cached};
    case HAL_MEMORY_DOWNLOAD:
        return (memory_wish){
            .required = mapped, .preferred = cached, .also_preferred = 0, .avoided = local};
    case HAL_MEMORY_SHARED:
        return (memory_wish){
            .required = mapped, .preferred = local, .also_preferred = cached, .avoided = 0};
    default: /* mapped device memory is often small */
        return (memory_wish){.required = 0,
                             .preferred = local,
                             .also_preferred = 0,
                             .avoided = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
    }
}

/* A higher score is better; 0: unusable, as are protected and lazily allocated types. */
static uint32_t type_score(const VkMemoryType *type, const memory_wish *wanted)
{
    const VkMemoryPropertyFlags has = type->propertyFlags;
    const VkMemoryPropertyFlags plain =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if ((has & ~plain) != 0 || (has & wanted->required) != wanted->required) {
        return 0;
    }
    return 1 + ((has & wanted->preferred) == wanted->preferred ? 8 : 0) +
           ((has & wanted->also_preferred) == wanted->also_preferred ? 4 : 0) +
           ((has & wanted->avoided) == 0 ? 2 : 0);
}

static VkResult allocate_from_type(hal_plugin_device *device, uint32_t type,
                                   hal_plugin_memory *memory, uint64_t bytes, const void *chain)
{
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .pNext = chain,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &flags,
                                       .allocationSize = bytes,
                                       .memoryTypeIndex = type};
    const vulkan_functions *vk = &device->vk;
    VkResult result = vk->vkAllocateMemory(device->handle, &info, NULL, &memory->memory);
    if (result != VK_SUCCESS) {
        memory->memory = VK_NULL_HANDLE;
        return result;
    }
    memory->taken = memory->whole = bytes;
    atomic_fetch_add(&device->allocated[memory->heap], bytes);
    result = vk->vkBindBufferMemory(device->handle, memory->buffer, memory->memory, 0);
    if (result != VK_SUCCESS) {
        return result;
    }
    const VkBufferDeviceAddressInfo place = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = memory->buffer};
    const VkDeviceAddress address = vk->vkGetBufferDeviceAddress(device->handle, &place);
    memory->address = (address + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memory->shift = memory->address - address;
    if (device->physical.memory.memoryTypes[type].propertyFlags &
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) {
        void *pointer = NULL;
        result = vk->vkMapMemory(device->handle, memory->memory, 0, VK_WHOLE_SIZE, 0, &pointer);
        memory->mapped = result == VK_SUCCESS ? (uint8_t *)pointer + memory->shift : NULL;
    }
    return result;
}

/* Tries the types of memory from the best on, until one has room. */
static VkResult allocate_from_best(hal_plugin_device *device, uint32_t kind,
                                   hal_plugin_memory *memory, const VkMemoryRequirements *needs,
                                   const void *chain)
{
    const VkPhysicalDeviceMemoryProperties *has = &device->physical.memory;
    const memory_wish wanted = wish_of_kind(kind);
    uint32_t left = needs->memoryTypeBits;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (;;) {
        uint32_t best = UINT32_MAX, best_score = 0;
        for (uint32_t i = 0; i < has->memoryTypeCount; i++) {
            const uint32_t value = left >> i & 1 ? type_score(&has->memoryTypes[i], &wanted) : 0;
            if (value > best_score) {
                best = i;
                best_score = value;
            }
        }
        if (best == UINT32_MAX) {
            return result;
        }
        left &= ~(1u << best);
        memory->heap = has->memoryTypes[best].heapIndex;
        result = allocate_from_type(device, best, memory, needs->size, chain);
        if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY) {
            return result;
        }
    }
}

hal_status vulkan_memory_allocate_shared(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                         const vulkan_sharing *sharing, hal_plugin_memory **memory)
{
    hal_plugin_memory *made = calloc(1, sizeof *made);
    *memory = NULL;
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a memory object",
                        device->physical.info.name);
    }
    VkMemoryRequirements needs = {0};
    hal_status status = create_buffer(device, made, sharing->buffer_bytes, sharing->types, &needs);
    if (status == HAL_OK) {
        needs.memoryTypeBits &= sharing->type_bits;
        needs.size = sharing->memory_bytes ? sharing->memory_bytes : needs.size;
        const VkResult result = allocate_from_best(device, kind, made, &needs, sharing->chain);
        status = result == VK_SUCCESS ? HAL_OK : fail_allocation(device, result, bytes);
    }
    if (status != HAL_OK) {
        vulkan_memory_free(device, made);
        return status;
    }
    made->bytes = bytes;
    *memory = made;
    return HAL_OK;
}

/* Room to align the first byte, and for whole words at the end. */
uint64_t vulkan_memory_padded(uint64_t bytes)
{
    return (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

hal_status vulkan_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    *memory = NULL;
    HAL_TRY(vulkan_device_check_hardware(device));
    const uint64_t most = device->physical.info.max_allocation;
    if (kind >= HAL_MEMORY_KIND_COUNT || bytes == 0) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: memory_allocate: expected bytes of a known kind, got %llu of kind %u",
                        device->physical.info.name, (unsigned long long)bytes, kind);
    }
    if (bytes > most + ALIGNMENT) {
        return kit_fail(
            HAL_ERROR_OUT_OF_MEMORY, "%s: memory_allocate: expected at most %llu bytes, got %llu",
            device->physical.info.name, (unsigned long long)most, (unsigned long long)bytes);
    }
    const vulkan_sharing none = {.buffer_bytes = vulkan_memory_padded(bytes),
                                 .type_bits = UINT32_MAX};
    return vulkan_memory_allocate_shared(device, kind, bytes, &none, memory);
}

void vulkan_memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    if (!memory) {
        return;
    }
    if (memory->is_native) {
        free(memory);
        return;
    }
    if (memory->taken > 0) {
        atomic_fetch_sub(&device->allocated[memory->heap], memory->taken);
    }
    device->vk.vkDestroyBuffer(device->handle, memory->buffer, NULL);
    device->vk.vkFreeMemory(device->handle, memory->memory, NULL);
    free(memory);
}

hal_status vulkan_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    *pointer = memory->mapped;
    if (!memory->mapped) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_map: memory: expected a mapped kind, got device memory",
                        device->physical.info.name);
    }
    return HAL_OK;
}

/* Of the heap of device memory: as the driver counts it, else the size less what was allocated. */
hal_status vulkan_memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
        .pNext = device->physical.has_memory_budget ? &budget : NULL};
    device->instance->vkGetPhysicalDeviceMemoryProperties2(device->physical.handle, &memory);
    uint32_t heap = 0;
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; i++) {
        if (memory.memoryProperties.memoryHeaps[i].size == device->physical.info.memory_bytes) {
            heap = i;
            break;
        }
    }
    const uint64_t total = memory.memoryProperties.memoryHeaps[heap].size;
    const uint64_t used = device->physical.has_memory_budget
                              ? budget.heapUsage[heap]
                              : atomic_load(&device->allocated[heap]);
    const uint64_t limit = device->physical.has_memory_budget && budget.heapBudget[heap] < total
                               ? budget.heapBudget[heap]
                               : total;
    *total_bytes = total;
    *free_bytes = limit > used ? limit - used : 0;
    return HAL_OK;
}
