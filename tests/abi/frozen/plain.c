/* A plugin as it was built for release 1.0, against the frozen headers: the required entries only,
 * work inside submit, no kernels. It stays as it is when the interface grows. */
#include <hal/plugin.h>

#include <stdlib.h>
#include <string.h>

struct hal_plugin_instance {
    const hal_host *host;
};

struct hal_plugin_device {
    const hal_host *host;
};

struct hal_plugin_memory {
    uint8_t *data;
};

struct hal_plugin_queue {
    uint64_t reached;
};

__attribute__((visibility("default"))) const hal_plugin *
hal_plugin_create(uint32_t host_abi, const hal_host *host, hal_plugin_instance **instance);

static void instance_destroy(hal_plugin_instance *instance)
{
    free(instance);
}

static hal_status enumerate(hal_plugin_instance *instance, hal_device_info *infos,
                            uint32_t capacity, uint32_t *count)
{
    (void)instance;
    *count = 1;
    if (capacity > 0) {
        infos[0] = (hal_device_info){.size = sizeof infos[0],
                                     .kind = HAL_DEVICE_SOFTWARE,
                                     .name = "Plain",
                                     .id = "plain:0",
                                     .max_allocation = UINT64_C(1) << 28,
                                     .max_binding = UINT64_C(1) << 28,
                                     .binding_alignment = 16,
                                     .max_group_items = 64,
                                     .max_group_size = {64, 64, 64},
                                     .max_grid = {65535, 65535, 65535},
                                     .shared_bytes = 16384,
                                     .max_bindings = 8,
                                     .max_vector_bytes = 16,
                                     .storage_types = HAL_TYPE_BIT(HAL_TYPE_U32),
                                     .arithmetic_types = HAL_TYPE_BIT(HAL_TYPE_U32),
                                     .features = HAL_FEATURE_MAP_DEVICE};
    }
    return HAL_OK;
}

static hal_status device_open(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **device)
{
    if (strcmp(id, "plain:0") != 0) {
        return instance->host->fail(instance->host, HAL_ERROR_NOT_FOUND, "plain: no such id");
    }
    *device = calloc(1, sizeof **device);
    if (!*device) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    (*device)->host = instance->host;
    return HAL_OK;
}

static void device_close(hal_plugin_device *device)
{
    free(device);
}

static hal_status memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    (void)kind;
    *memory = calloc(1, sizeof **memory);
    if (*memory) {
        (*memory)->data = device->host->allocate(device->host, bytes, 256);
    }
    if (!*memory || !(*memory)->data) {
        free(*memory);
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    return HAL_OK;
}

static void memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    device->host->release(device->host, memory->data);
    free(memory);
}

static hal_status memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    (void)device;
    *pointer = memory->data;
    return HAL_OK;
}

static hal_status kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    (void)ir;
    (void)kernel;
    return device->host->fail(device->host, HAL_ERROR_UNSUPPORTED, "plain: it has no kernels");
}

static void kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    (void)kernel;
}

static hal_status queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    (void)device;
    *queue = calloc(1, sizeof **queue);
    return *queue ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    (void)device;
    free(queue);
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    for (uint32_t i = 0; i < wait_count; i++) {
        if (waits[i].kind != HAL_WAIT_QUEUE || waits[i].queue->reached < waits[i].value) {
            return HAL_ERROR_INVALID_ARGUMENT;
        }
    }
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        const hal_binding *bindings = &batch->bindings[command->binding_first];
        const uint8_t *pattern = batch->scalars + command->scalar_first;
        if (bindings[0].length == 0) {
            continue;
        }
        uint8_t *first = bindings[0].memory->data + bindings[0].offset;
        if (command->kind == HAL_COMMAND_COPY) {
            memcpy(bindings[1].memory->data + bindings[1].offset, first, bindings[0].length);
        }
        for (uint64_t b = 0; command->kind == HAL_COMMAND_FILL && b < bindings[0].length; b++) {
            first[b] = pattern[b % command->scalar_bytes];
        }
    }
    queue->reached = value;
    return HAL_OK;
}

static hal_status wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return queue->reached >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    static const hal_plugin table = {.size = sizeof table,
                                     .abi = HAL_PLUGIN_ABI,
                                     .name = "plain",
                                     .ir_version = HAL_IR_VERSION,
                                     .instance_destroy = instance_destroy,
                                     .enumerate = enumerate,
                                     .device_open = device_open,
                                     .device_close = device_close,
                                     .memory_allocate = memory_allocate,
                                     .memory_free = memory_free,
                                     .memory_map = memory_map,
                                     .kernel_create = kernel_create,
                                     .kernel_destroy = kernel_destroy,
                                     .queue_create = queue_create,
                                     .queue_destroy = queue_destroy,
                                     .submit = submit,
                                     .wait = wait};
    if (host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR || !(*instance = calloc(1, sizeof **instance))) {
        return NULL;
    }
    (*instance)->host = host;
    return &table;
}
