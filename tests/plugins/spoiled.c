/* A plugin around the cpu plugin that spoils what kernels named "spoiled" write: the first number
 * of their last binding is one too large. For tests of hal-replay, which has to name the kernel. */
#include "wrap.h"

#include <string.h>

static hal_plugin_device *device;

static hal_status open_device(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **opened)
{
    const hal_status status = wrap_inside()->device_open(instance, id, opened);
    device = *opened;
    return status;
}

static hal_status create_kernel(hal_plugin_device *on, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    const hal_status status = wrap_inside()->kernel_create(on, ir, kernel);
    wrap_drop(*kernel);
    if (status == HAL_OK && strcmp(ir->names + ir->name, "spoiled") == 0) {
        wrap_keep(*kernel, 1);
    }
    return status;
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
    if (status == HAL_OK) {
        status = wrap_inside()->wait(queue, value, UINT64_MAX);
    }
    for (uint32_t i = 0; status == HAL_OK && i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (!command->kernel || !wrap_find(command->kernel)) {
            continue;
        }
        const uint32_t last = command->binding_first + command->binding_count - 1u;
        const hal_binding *binding = &batch->bindings[last];
        void *view = NULL;
        float number;
        status = wrap_inside()->memory_map(device, binding->memory, &view);
        if (status != HAL_OK) {
            break;
        }
        char *bytes = (char *)view + binding->offset;
        memcpy(&number, bytes, sizeof(number));
        number += 1.0f;
        memcpy(bytes, &number, sizeof(number));
    }
    return status;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    wrap_table *table = wrap_open(WRAP_TARGET, host_abi, host, instance);
    if (table) {
        table->device_open = open_device;
        table->kernel_create = create_kernel;
        table->submit = submit;
    }
    return wrap_plugin(table);
}
