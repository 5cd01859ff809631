/* Memory. Entries of the plugin's table.
 *
 * Mapped kinds need a pointer that stays valid while kernels run, which mapping in OpenCL does
 * not give. Where host and device share memory and fine-grained buffers are offered, all kinds
 * are such buffers. Elsewhere mapped memory is shadowed: the host's memory is valid, copies read
 * and write it, and kernels use a copy on the device, which commands.c updates around each of
 * them. */
#include "memory.h"

#include "quirks.h"

#include <stdlib.h>
#include <string.h>

static hal_status fail_allocation(const hal_plugin_device *device, cl_int error, uint64_t bytes)
{
    const hal_device_info *info = &device->card->info;
    return kit_fail(HAL_ERROR_OUT_OF_MEMORY,
                    "%s: allocating %llu bytes: %s (%d); the device has %llu bytes, at most %llu "
                    "in one allocation",
                    info->name, (unsigned long long)bytes, opencl_error_name(error), (int)error,
                    (unsigned long long)info->memory_bytes,
                    (unsigned long long)info->max_allocation);
}

/* With room to align it, as clSVMAlloc promises only the alignment of the largest type. */
static hal_status create_shared(hal_plugin_device *device, hal_plugin_memory *made)
{
    const size_t bytes = (made->bytes + OPENCL_ALIGNMENT - 1) / OPENCL_ALIGNMENT * OPENCL_ALIGNMENT;
    cl_int error = CL_SUCCESS;
    made->shared = cl.clSVMAlloc(device->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                                 bytes + OPENCL_ALIGNMENT, 0);
    if (!made->shared) {
        return fail_allocation(device, CL_MEM_OBJECT_ALLOCATION_FAILURE, made->bytes);
    }
    const uintptr_t first = (uintptr_t)made->shared;
    made->host =
        (uint8_t *)made->shared + (OPENCL_ALIGNMENT - first % OPENCL_ALIGNMENT) % OPENCL_ALIGNMENT;
    made->buffer = cl.clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                     made->bytes, made->host, &error);
    return made->buffer ? HAL_OK : fail_allocation(device, error, made->bytes);
}

static hal_status buffer_write_once(hal_plugin_device *device, cl_mem buffer)
{
    const uint8_t zero = 0;
    cl_int error = cl.clEnqueueFillBuffer(device->transfers, buffer, &zero, 1, 0, 1, 0, NULL, NULL);
    if (error == CL_SUCCESS) {
        error = cl.clFinish(device->transfers);
    }
    return error == CL_SUCCESS
               ? HAL_OK
               : kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: writing new memory: %s (%d)",
                          device->card->info.name, opencl_error_name(error), (int)error);
}

static hal_status create_plain(hal_plugin_device *device, hal_plugin_memory *made)
{
    cl_int error = CL_SUCCESS;
    made->buffer = cl.clCreateBuffer(device->context, CL_MEM_READ_WRITE, made->bytes, NULL, &error);
    if (!made->buffer) {
        return fail_allocation(device, error, made->bytes);
    }
    return device->card->quirks & OPENCL_QUIRK_LAZY_MEMORY ? buffer_write_once(device, made->buffer)
                                                           : HAL_OK;
}

/* Pinned where that makes copies faster and the driver can pin more. */
static hal_status create_shadowed(hal_plugin_device *device, hal_plugin_memory *made)
{
    cl_int error = CL_SUCCESS;
    if (!device->card->unified && !(device->card->quirks & OPENCL_QUIRK_PAGEABLE)) {
        made->pinned = cl.clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                         made->bytes, NULL, &error);
    }
    if (made->pinned) {
        made->host = cl.clEnqueueMapBuffer(device->transfers, made->pinned, CL_TRUE,
                                           CL_MAP_READ | CL_MAP_WRITE, 0, made->bytes, 0, NULL,
                                           NULL, &error);
        if (!made->host || (uintptr_t)made->host % OPENCL_ALIGNMENT != 0) {
            if (made->host) {
                cl.clEnqueueUnmapMemObject(device->transfers, made->pinned, made->host, 0, NULL,
                                           NULL);
                cl.clFinish(device->transfers);
            }
            cl.clReleaseMemObject(made->pinned);
            made->pinned = NULL;
            made->host = NULL;
        }
    }
    made->shadowed = true;
    if (!made->host) {
        void *host = NULL;
        if (posix_memalign(&host, OPENCL_ALIGNMENT, made->bytes) != 0) {
            return fail_allocation(device, CL_OUT_OF_HOST_MEMORY, made->bytes);
        }
        made->host = host;
    }
    return HAL_OK;
}

hal_status opencl_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    *memory = NULL;
    HAL_TRY(opencl_device_check(device));
    hal_status status = HAL_OK;
    if (kind >= HAL_MEMORY_KIND_COUNT || bytes == 0) {
        return kit_fail(
            HAL_ERROR_INVALID_ARGUMENT,
            "opencl: memory_allocate: expected at least 1 byte of a known kind, got %llu "
            "of kind %u",
            (unsigned long long)bytes, kind);
    }
    if (bytes > device->card->info.max_allocation) {
        return fail_allocation(device, CL_INVALID_BUFFER_SIZE, bytes);
    }
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory for a memory object");
    }
    made->bytes = bytes;
    made->serial = atomic_fetch_add(&device->serial, 1) + 1;
    if (device->card->fine_shared) {
        status = create_shared(device, made);
    } else {
        status =
            kind == HAL_MEMORY_DEVICE ? create_plain(device, made) : create_shadowed(device, made);
    }
    if (status != HAL_OK) {
        opencl_memory_free(device, made);
        return status;
    }
    *memory = made;
    return HAL_OK;
}

void opencl_memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    if (!memory) {
        return;
    }
    if (opencl_device_check(device) == HAL_OK) {
        if (memory->buffer) {
            cl.clReleaseMemObject(memory->buffer);
        }
        if (memory->shared) {
            cl.clSVMFree(device->context, memory->shared);
        }
        if (memory->pinned) {
            cl.clEnqueueUnmapMemObject(device->transfers, memory->pinned, memory->host, 0, NULL,
                                       NULL);
            cl.clFinish(device->transfers);
            cl.clReleaseMemObject(memory->pinned);
        } else if (memory->shadowed) {
            free(memory->host);
        }
    }
    free(memory);
}

hal_status opencl_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    *pointer = memory->host;
    if (!memory->host) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: memory_map: memory: expected a mapped kind, got device memory",
                        device->card->info.name);
    }
    return HAL_OK;
}

hal_status opencl_memory_buffer(hal_plugin_device *device, hal_plugin_memory *memory,
                                cl_mem *buffer)
{
    hal_status status = HAL_OK;
    if (memory->shadowed) {
        pthread_mutex_lock(&device->lock);
        if (!memory->buffer) {
            status = create_plain(device, memory);
        }
        pthread_mutex_unlock(&device->lock);
    }
    *buffer = memory->buffer;
    return status;
}
