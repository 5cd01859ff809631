/* What the environment may do to a program: opens the default device, makes a kernel, runs
 * it, keeps something in the compile cache, and says what came of it, a line each. Run by
 * secure.sh as itself and set-uid. */
#include <hal/hal.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "plugin/cache.h"
#include "core/device.h"
#include "plugin/search.h"

static hal_ir_kernel *build(void)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_ir_builder_create("seen", &b);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_global_id(b, 0), hal_ir_u32(b, 1));
    hal_ir_builder_finish(b, &ir);
    hal_ir_builder_destroy(b);
    return ir;
}

int main(void)
{
    hal_strings paths = {0};
    hal_device *device = NULL;
    hal_kernel *kernel = NULL;
    hal_buffer *buffer = NULL;
    hal_queue *queue = NULL;
    hal_ir_kernel *ir = build();
    const uint32_t grid[3] = {1, 1, 1};
    printf("secure %d\n", getauxval(AT_SECURE) != 0);
    hal_search_paths(&paths);
    for (uint32_t i = 0; i < paths.count; i++) {
        printf("path %s\n", paths.items[i]);
    }
    hal_strings_free(&paths);
    int failed = hal_device_open(NULL, &device);
    printf("device %s\n", failed ? hal_status_message() : hal_device_get_plugin_name(device));
    failed = failed || hal_kernel_create(device, ir, &kernel) ||
             hal_buffer_create(device, HAL_MEMORY_DEVICE, 256, &buffer) ||
             hal_queue_create(device, &queue) ||
             hal_queue_dispatch(queue, kernel, grid, &(hal_range){buffer, 0, HAL_WHOLE}, 1, NULL,
                                0) ||
             hal_queue_wait(queue, HAL_WAIT_FOREVER);
    printf("work %s\n", failed ? hal_status_message() : "done");
    if (device) {
        const uint64_t key[2] = {1, 2};
        hal_cache_enter(&device->cache); /* as while it makes a kernel */
        const hal_status stored =
            hal_cache_store(hal_device_get_info(device)->id, key, "code", sizeof "code");
        printf("cache %s\n", hal_status_name(stored));
        hal_cache_enter(NULL);
    }
    hal_queue_destroy(queue);
    hal_buffer_release(buffer);
    hal_kernel_release(kernel);
    hal_device_release(device);
    hal_ir_kernel_destroy(ir);
    return 0;
}
