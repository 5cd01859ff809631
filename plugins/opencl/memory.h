/* Memory: the object, and its entries. */
#ifndef PLUGINS_OPENCL_MEMORY_H
#define PLUGINS_OPENCL_MEMORY_H

#include "device.h"

/* Of shadowed memory `host` is valid, and `buffer` is a copy, created when a kernel first needs
 * it. */
struct hal_plugin_memory {
    cl_mem buffer;
    uint8_t *host; /* null for device memory that is not mapped */
    void *shared;  /* from clSVMAlloc */
    cl_mem pinned; /* the buffer that is mapped at `host` */
    uint64_t bytes;
    uint64_t serial;
    bool shadowed;
};

hal_status opencl_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
void opencl_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status opencl_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);
/* The buffer; that of shadowed memory is created by the first call. */
hal_status opencl_memory_buffer(hal_plugin_device *device, hal_plugin_memory *memory,
                                cl_mem *buffer);

#endif
