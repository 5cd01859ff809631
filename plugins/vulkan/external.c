/* Memory that others own or share: pages of the host by VK_EXT_external_memory_host, a VkBuffer
 * with its VkDeviceMemory, and descriptors by VK_KHR_external_memory_fd. */
#include "external.h"

#include "kernel.h"
#include "queue.h"

#include <inttypes.h>
#include <kit/handles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADDRESS_ALIGNMENT = 16 }; /* binding_alignment */

static VkExternalMemoryHandleTypeFlagBits type_of_kind(uint32_t kind)
{
    return kind == HAL_HANDLE_DMA_BUF ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
                                      : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}

/* Null handles of Vulkan are pointers or integers. */
static uint64_t number_of(VkBuffer buffer)
{
    return (uint64_t)(uintptr_t)buffer;
}

static hal_status fail_misaligned(hal_plugin_device *device, hal_plugin_memory *made)
{
    vulkan_memory_free(device, made);
    return kit_fail(HAL_ERROR_UNSUPPORTED,
                    "%s: memory_import: expected memory at a multiple of %d bytes of the device",
                    device->physical.info.name, ADDRESS_ALIGNMENT);
}

/* Whether the process may write to a range, as the kernel lists its mappings; where it lists none,
 * yes. */
static bool is_writable(uintptr_t first, uint64_t bytes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t from, to;
    char may_write;
    bool all = true;
    while (maps &&
           fscanf(maps, "%" SCNxPTR "-%" SCNxPTR " %*c%c%*[^\n]", &from, &to, &may_write) == 3) {
        all = all && (may_write == 'w' || to <= first || first + bytes <= from);
    }
    if (maps) {
        fclose(maps);
    }
    return all;
}

static hal_status import_host(hal_plugin_device *device, const hal_memory_handle *handle,
                              hal_plugin_memory **memory)
{
    const VkExternalMemoryHandleTypeFlagBits type =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    void *pointer = (void *)(uintptr_t)(handle->handle + handle->offset);
    VkMemoryHostPointerPropertiesEXT properties = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    const VkResult result =
        device->vk.vkGetMemoryHostPointerPropertiesEXT(device->handle, type, pointer, &properties);
    if (result != VK_SUCCESS || properties.memoryTypeBits == 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_import: the driver does not import the memory at %p",
                        device->physical.info.name, pointer);
    }
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = type,
        .pHostPointer = pointer};
    const vulkan_sharing sharing = {.types = type,
                                    .type_bits = properties.memoryTypeBits,
                                    .buffer_bytes = handle->bytes,
                                    .memory_bytes = handle->bytes,
                                    .chain = &import};
    /* NVIDIA's driver fails then, and for what is mapped there later too. */
    if (device->physical.info.kind != HAL_DEVICE_CPU && handle->access == HAL_ACCESS_READ &&
        !is_writable((uintptr_t)pointer, handle->bytes)) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_import: expected memory that the process can write, which the "
                        "device maps",
                        device->physical.info.name);
    }
    HAL_TRY(
        vulkan_memory_allocate_shared(device, HAL_MEMORY_SHARED, handle->bytes, &sharing, memory));
    if ((*memory)->shift != 0) {
        hal_plugin_memory *made = *memory;
        *memory = NULL;
        return fail_misaligned(device, made);
    }
    (*memory)->mapped = pointer;
    return HAL_OK;
}

static hal_status import_native(hal_plugin_device *device, const hal_memory_handle *handle,
                                hal_plugin_memory **memory)
{
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a memory object",
                        device->physical.info.name);
    }
    made->is_native = true;
    made->buffer = (VkBuffer)(uintptr_t)handle->handle;
    made->memory = (VkDeviceMemory)(uintptr_t)handle->memory;
    made->bytes = handle->bytes;
    made->shift = handle->offset;
    const VkBufferDeviceAddressInfo place = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = made->buffer};
    made->address = device->vk.vkGetBufferDeviceAddress(device->handle, &place) + handle->offset;
    if (made->address % ADDRESS_ALIGNMENT != 0) {
        return fail_misaligned(device, made);
    }
    *memory = made;
    return HAL_OK;
}

/* Types of memory that the descriptor can be; opaque ones say nothing. */
static uint32_t descriptor_types(hal_plugin_device *device, uint32_t kind, int descriptor)
{
    VkMemoryFdPropertiesKHR properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    if (kind == HAL_HANDLE_OPAQUE_FD) {
        return UINT32_MAX;
    }
    return device->vk.vkGetMemoryFdPropertiesKHR(device->handle, type_of_kind(kind), descriptor,
                                                 &properties) == VK_SUCCESS
               ? properties.memoryTypeBits
               : 0;
}

/* The driver takes a descriptor once its import has succeeded, so a copy is tried first. */
static hal_status import_descriptor(hal_plugin_device *device, const hal_memory_handle *handle,
                                    hal_plugin_memory **memory)
{
    const int copy = dup((int)handle->handle);
    if (copy < 0) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_import: expected an open descriptor, got %d",
                        device->physical.info.name, (int)handle->handle);
    }
    const VkImportMemoryFdInfoKHR import = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                            .handleType = type_of_kind(handle->kind),
                                            .fd = copy};
    const vulkan_sharing sharing = {.types = import.handleType,
                                    .type_bits = descriptor_types(device, handle->kind, copy),
                                    .buffer_bytes = handle->memory,
                                    .memory_bytes = handle->memory,
                                    .chain = &import};
    hal_status status =
        vulkan_memory_allocate_shared(device, HAL_MEMORY_DEVICE, handle->bytes, &sharing, memory);
    if (status != HAL_OK) {
        close(copy);
        return status;
    }
    hal_plugin_memory *made = *memory;
    made->address = made->address - made->shift + handle->offset;
    made->shift = handle->offset;
    made->mapped = NULL;
    if (made->address % ADDRESS_ALIGNMENT != 0) {
        *memory = NULL;
        return fail_misaligned(device, made);
    }
    close((int)handle->handle);
    return HAL_OK;
}

hal_status vulkan_external_info(hal_plugin_device *device, hal_external_info *info)
{
    const vulkan_description *is = &device->physical;
    const uint32_t descriptors = (is->has_descriptors ? HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD) : 0) |
                                 (is->has_dma_buf ? HAL_HANDLE_BIT(HAL_HANDLE_DMA_BUF) : 0);
    info->export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE) | descriptors;
    info->import_kinds =
        info->export_kinds | (is->host_alignment > 0 ? HAL_HANDLE_BIT(HAL_HANDLE_HOST) : 0);
    info->host_alignment = is->host_alignment;
    info->host_granularity = is->host_alignment;
    return HAL_OK;
}

hal_status vulkan_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                                hal_plugin_memory **memory)
{
    *memory = NULL;
    HAL_TRY(vulkan_device_check_hardware(device));
    switch (handle->kind) {
    case HAL_HANDLE_HOST:
        return import_host(device, handle, memory);
    case HAL_HANDLE_NATIVE:
        return import_native(device, handle, memory);
    default:
        return import_descriptor(device, handle, memory);
    }
}

hal_status vulkan_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                                hal_memory_handle *handle)
{
    handle->offset = memory->shift;
    if (kind == HAL_HANDLE_NATIVE) {
        handle->handle = number_of(memory->buffer);
        handle->memory = (uint64_t)(uintptr_t)memory->memory;
        return HAL_OK;
    }
    if (memory->handle != type_of_kind(kind)) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_export: expected memory that was allocated to be shared by "
                        "this kind of descriptor",
                        device->physical.info.name);
    }
    int descriptor = -1;
    const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                       .memory = memory->memory,
                                       .handleType = memory->handle};
    const VkResult result = device->vk.vkGetMemoryFdKHR(device->handle, &info, &descriptor);
    if (result != VK_SUCCESS) {
        return vulkan_fail_result(device, result, "exporting memory");
    }
    handle->handle = (uint64_t)descriptor;
    handle->memory = memory->whole;
    return HAL_OK;
}

hal_status vulkan_memory_allocate_shareable(hal_plugin_device *device, uint32_t handle_kind,
                                            uint64_t bytes, hal_plugin_memory **memory)
{
    *memory = NULL;
    HAL_TRY(vulkan_device_check_hardware(device));
    const VkExportMemoryAllocateInfo export = {.sType =
                                                   VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                               .handleTypes = type_of_kind(handle_kind)};
    const vulkan_sharing sharing = {.types = export.handleTypes,
                                    .type_bits = UINT32_MAX,
                                    .buffer_bytes = vulkan_memory_padded(bytes),
                                    .chain = &export};
    HAL_TRY(vulkan_memory_allocate_shared(device, HAL_MEMORY_DEVICE, bytes, &sharing, memory));
    (*memory)->handle = type_of_kind(handle_kind);
    return HAL_OK;
}

hal_status vulkan_device_handle(hal_plugin_device *device, const char *type, uint64_t *handle)
{
    const kit_handle all[] = {KIT_HANDLE("VkDevice", device->handle),
                              KIT_HANDLE("VkPhysicalDevice", device->physical.handle),
                              KIT_HANDLE("VkInstance", device->instance->handle),
                              {NULL, 0}};
    return kit_handle_find(all, type, handle);
}

/* The VkQueue is shared by queues of hal, which submit under a lock. */
hal_status vulkan_queue_handle(hal_plugin_queue *queue, const char *type, uint64_t *handle)
{
    const kit_handle all[] = {KIT_HANDLE("VkSemaphore", queue->timeline), {NULL, 0}};
    return kit_handle_find(all, type, handle);
}

hal_status vulkan_kernel_handle(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                const char *type, uint64_t *handle)
{
    const kit_handle all[] = {KIT_HANDLE("VkPipeline", kernel->pipeline),
                              KIT_HANDLE("VkPipelineLayout", device->layout),
                              {NULL, 0}};
    return kit_handle_find(all, type, handle);
}
