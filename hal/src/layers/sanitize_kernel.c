/* The kernels with checks, by the plugin's handles. */
#include "sanitize.h"

#include "base/map.h"

#include <hal/ir_build.h>

#include <stdlib.h>

static hal_map kernel_of;

hal_sanitize_kernel *hal_sanitize_kernel_find(const hal_plugin_kernel *handle)
{
    return handle ? hal_map_get(&kernel_of, hal_map_key(handle)) : NULL;
}

bool hal_sanitize_kernel_put(const hal_plugin_kernel *handle, hal_sanitize_kernel *kernel)
{
    return hal_map_put(&kernel_of, hal_map_key(handle), kernel);
}

hal_sanitize_kernel *hal_sanitize_kernel_take(const hal_plugin_kernel *handle)
{
    return hal_map_take(&kernel_of, hal_map_key(handle));
}

hal_sanitize_kernel *hal_sanitize_kernel_take_of(const hal_sanitize_device *device)
{
    for (uint32_t i = 0; i < kernel_of.capacity; i++) {
        const hal_sanitize_kernel *kernel = kernel_of.entries[i].value;
        if (kernel && kernel->device == device) {
            return hal_map_take(&kernel_of, kernel_of.entries[i].key);
        }
    }
    return NULL;
}

void hal_sanitize_kernel_free(hal_sanitize_kernel *kernel)
{
    if (kernel) {
        hal_ir_kernel_destroy(kernel->built);
        hal_ir_instrumented_free(&kernel->checked);
        free(kernel->totals);
        free(kernel);
    }
}
