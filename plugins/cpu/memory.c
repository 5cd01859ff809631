/* Memory: every kind is plain memory of the host. */
#include "memory.h"

#include "status.h"
#include "threads/control_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { ALIGNMENT = 256, PART_BYTES = 65536 }; /* a multiple of the pages of all systems */
#define UNKNOWN_TOTAL (UINT64_C(4) << 30)

/* Larger allocations are whole pages of the system, huge ones if available. */
#define LARGE (UINT64_C(2) << 20)

/* The number that follows `key` at the beginning of a line. */
static uint64_t read_number(const char *path, const char *key, uint64_t otherwise)
{
    char line[128];
    uint64_t result = otherwise;
    FILE *file = fopen(path, "re");
    if (!file) {
        return otherwise;
    }
    while (fgets(line, sizeof(line), file)) {
        unsigned long long number;
        if (strncmp(line, key, strlen(key)) == 0 &&
            sscanf(line + strlen(key), "%llu", &number) == 1) {
            result = number;
            break;
        }
    }
    fclose(file);
    return result;
}

hal_status cpu_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                               hal_plugin_memory **memory)
{
    (void)device;
    *memory = NULL;
    if (kind >= HAL_MEMORY_KIND_COUNT || bytes == 0) {
        return cpu_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "cpu memory: %llu bytes of kind %u cannot be allocated",
                        (unsigned long long)bytes, kind);
    }
    hal_plugin_memory *made = calloc(1, sizeof(*made));
    void *address = NULL;
    if (made && bytes >= LARGE) {
        address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        address = address == MAP_FAILED ? NULL : address;
        if (address) {
            (void)madvise(address, bytes, MADV_HUGEPAGE); /* a wish, no more */
        }
    } else if (made && posix_memalign(&address, ALIGNMENT,
                                      (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)) {
        address = NULL;
    }
    if (!address) {
        uint64_t free_bytes = 0, total = 0;
        free(made);
        cpu_memory_info(device, &free_bytes, &total);
        return cpu_fail(
            HAL_ERROR_OUT_OF_MEMORY, "cpu memory: the host has no %llu bytes (%llu free of %llu)",
            (unsigned long long)bytes, (unsigned long long)free_bytes, (unsigned long long)total);
    }
    made->address = address;
    made->bytes = bytes;
    made->is_mapped = bytes >= LARGE;
    *memory = made;
    return HAL_OK;
}

void cpu_memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    (void)device;
    if (!memory) {
        return;
    }
    if (memory->is_imported) {
        free(memory);
        return;
    }
    if (memory->is_mapped) {
        munmap(memory->address, memory->bytes);
    } else {
        free(memory->address);
    }
    free(memory);
}

hal_status cpu_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    (void)device;
    *pointer = memory->address;
    return HAL_OK;
}

/* Kernels use any address that their elements may have. */
hal_status cpu_external_info(hal_plugin_device *device, hal_external_info *info)
{
    (void)device;
    info->import_kinds = HAL_HANDLE_BIT(HAL_HANDLE_HOST) | HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    info->export_kinds = info->import_kinds;
    info->host_alignment = 1;
    info->host_granularity = 1;
    return HAL_OK;
}

hal_status cpu_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                             hal_plugin_memory **memory)
{
    (void)device;
    hal_plugin_memory *made = calloc(1, sizeof(*made));
    *memory = made;
    if (!made) {
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "cpu memory: no host memory for an import");
    }
    made->address = (uint8_t *)(uintptr_t)(handle->handle + handle->offset);
    made->bytes = handle->bytes;
    made->is_imported = true;
    return HAL_OK;
}

hal_status cpu_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                             hal_memory_handle *handle)
{
    (void)device;
    (void)kind;
    handle->handle = (uint64_t)(uintptr_t)memory->address;
    return HAL_OK;
}

hal_status cpu_part_bytes(hal_plugin_device *device, uint64_t *bytes)
{
    (void)device;
    *bytes = PART_BYTES;
    return HAL_OK;
}

hal_status cpu_memory_reserve(hal_plugin_device *device, uint64_t bytes, hal_plugin_memory **memory)
{
    (void)device;
    hal_plugin_memory *made = calloc(1, sizeof(*made));
    void *address = MAP_FAILED;
    *memory = NULL;
    if (made) {
        address = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (address == MAP_FAILED) {
        free(made);
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY,
                        "cpu memory: the process has no %llu bytes of "
                        "addresses",
                        (unsigned long long)bytes);
    }
    made->address = address;
    made->bytes = bytes;
    made->is_mapped = true;
    *memory = made;
    return HAL_OK;
}

static hal_status range_protect(hal_plugin_memory *memory, uint64_t offset, uint64_t bytes,
                                int protection)
{
    return mprotect(memory->address + offset, bytes, protection) == 0
               ? HAL_OK
               : cpu_fail(HAL_ERROR_OUT_OF_MEMORY,
                          "cpu memory: the system does not map %llu bytes at %llu",
                          (unsigned long long)bytes, (unsigned long long)offset);
}

hal_status cpu_memory_commit(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                             uint64_t bytes)
{
    (void)device;
    return range_protect(memory, offset, bytes, PROT_READ | PROT_WRITE);
}

hal_status cpu_memory_decommit(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes)
{
    (void)device;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return mmap(memory->address + offset, bytes, PROT_NONE, flags, -1, 0) != MAP_FAILED
               ? HAL_OK
               : cpu_fail(HAL_ERROR_OUT_OF_MEMORY,
                          "cpu memory: the system does not take back %llu bytes at %llu",
                          (unsigned long long)bytes, (unsigned long long)offset);
}

hal_status cpu_memory_protect(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                              uint64_t bytes, uint32_t access)
{
    (void)device;
    return range_protect(memory, offset, bytes,
                         access == HAL_ACCESS_READ ? PROT_READ : PROT_READ | PROT_WRITE);
}

hal_status cpu_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)device;
    uint64_t limit, left;
    cpu_control_group_memory("", &limit, &left);
    const uint64_t available = read_number("/proc/meminfo", "MemAvailable:", 0) * 1024;
    *total_bytes = cpu_memory_total();
    *free_bytes = available < left ? available : left;
    *free_bytes = *free_bytes < *total_bytes ? *free_bytes : *total_bytes;
    return HAL_OK;
}

/* Memory of the machine, or of the process's control groups. Without sysinfo, which sandboxes deny,
 * that of /proc. */
uint64_t cpu_memory_total(void)
{
    struct sysinfo info;
    uint64_t limit, left;
    cpu_control_group_memory("", &limit, &left);
    uint64_t total = read_number("/proc/meminfo", "MemTotal:", 0) * 1024;
    if (sysinfo(&info) == 0) {
        total = (uint64_t)info.totalram * info.mem_unit;
    }
    total = total == 0 ? UNKNOWN_TOTAL : total; /* a sandbox tells neither */
    return limit < total ? limit : total;
}
