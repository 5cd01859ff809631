/* Fences of others: timeline semaphores, by themselves or by a descriptor of
 * VK_KHR_external_semaphore_fd. */
#include "fence.h"

#include <stdlib.h>
#include <unistd.h>

static hal_status fence_make(hal_plugin_device *device, hal_plugin_fence **fence)
{
    HAL_TRY(vulkan_device_check_hardware(device));
    *fence = calloc(1, sizeof **fence);
    return *fence ? HAL_OK
                  : kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory for a fence",
                             device->physical.info.name);
}

static hal_status semaphore_make(hal_plugin_device *device, hal_plugin_fence *fence)
{
    const VkExportSemaphoreCreateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .pNext = fence->is_shareable ? &export : NULL,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                        .pNext = &type};
    const VkResult result =
        device->vk.vkCreateSemaphore(device->handle, &info, NULL, &fence->semaphore);
    return result == VK_SUCCESS ? HAL_OK : vulkan_fail_result(device, result, "creating a fence");
}

/* The driver takes a descriptor once its import has succeeded, so a copy is tried first. */
static hal_status descriptor_import(hal_plugin_device *device, hal_plugin_fence *fence,
                                    int descriptor)
{
    HAL_TRY(semaphore_make(device, fence));
    const int copy = dup(descriptor);
    const VkImportSemaphoreFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
        .semaphore = fence->semaphore,
        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
        .fd = copy};
    if (copy >= 0 && device->vk.vkImportSemaphoreFdKHR(device->handle, &info) == VK_SUCCESS) {
        close(descriptor);
        return HAL_OK;
    }
    if (copy >= 0) {
        close(copy);
    }
    device->vk.vkDestroySemaphore(device->handle, fence->semaphore, NULL);
    return kit_fail(HAL_ERROR_UNSUPPORTED,
                    "%s: fence_import: expected a descriptor of a timeline semaphore, got %d, "
                    "which the driver does not take",
                    device->physical.info.name, descriptor);
}

hal_status vulkan_fence_info(hal_plugin_device *device, uint32_t *import_kinds,
                             uint32_t *export_kinds)
{
    *export_kinds = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE) |
                    (device->physical.has_semaphore_fd ? HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD) : 0);
    *import_kinds = *export_kinds;
    return HAL_OK;
}

hal_status vulkan_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                               hal_plugin_fence **fence)
{
    *fence = NULL;
    hal_plugin_fence *made = NULL;
    HAL_TRY(fence_make(device, &made));
    made->is_native = kind == HAL_HANDLE_NATIVE;
    hal_status status = HAL_OK;
    if (made->is_native) {
        made->semaphore = (VkSemaphore)(uintptr_t)handle;
    } else {
        status = descriptor_import(device, made, (int)handle);
    }
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *fence = made;
    return HAL_OK;
}

hal_status vulkan_fence_create(hal_plugin_device *device, uint32_t kind, hal_plugin_fence **fence)
{
    *fence = NULL;
    hal_plugin_fence *made = NULL;
    HAL_TRY(fence_make(device, &made));
    made->is_shareable = kind == HAL_HANDLE_OPAQUE_FD;
    const hal_status status = semaphore_make(device, made);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    *fence = made;
    return HAL_OK;
}

hal_status vulkan_fence_export(hal_plugin_device *device, hal_plugin_fence *fence, uint32_t kind,
                               uint64_t *handle)
{
    int descriptor = -1;
    if (kind == HAL_HANDLE_NATIVE) {
        *handle = (uint64_t)(uintptr_t)fence->semaphore;
        return HAL_OK;
    }
    if (!fence->is_shareable) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: fence_export: expected a fence that was created as "
                        "HAL_HANDLE_OPAQUE_FD",
                        device->physical.info.name);
    }
    const VkSemaphoreGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                          .semaphore = fence->semaphore,
                                          .handleType =
                                              VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkResult result = device->vk.vkGetSemaphoreFdKHR(device->handle, &info, &descriptor);
    if (result != VK_SUCCESS) {
        return vulkan_fail_result(device, result, "exporting a fence");
    }
    *handle = (uint64_t)descriptor;
    return HAL_OK;
}

hal_status vulkan_fence_await(hal_plugin_device *device, hal_plugin_fence *fence, uint64_t value)
{
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &fence->semaphore,
                                      .pValues = &value};
    const VkResult result = device->vk.vkWaitSemaphores(device->handle, &info, UINT64_MAX);
    return result == VK_SUCCESS ? HAL_OK
                                : vulkan_fail_result(device, result, "waiting for a fence");
}

/* The driver still raises what it was asked to. */
void vulkan_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence)
{
    const uint64_t last = atomic_load(&fence->last);
    if (last > 0 && vulkan_device_check(device) == HAL_OK) {
        vulkan_fence_await(device, fence, last);
    }
    if (!fence->is_native) {
        device->vk.vkDestroySemaphore(device->handle, fence->semaphore, NULL);
    }
    free(fence);
}
