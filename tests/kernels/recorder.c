/* The plugin hal_recorder.so, whose devices exist as descriptions only; see recorder.h. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct hal_plugin_device {
    int unused;
};

/* Device memory is a size without bytes, so that tensors may exceed the machine's memory. */
struct hal_plugin_memory {
    void *mapped;
};

struct hal_plugin_kernel {
    int unused;
};

struct hal_plugin_queue {
    int unused;
};

extern EXPORT recorder_state recorder_state_of_plugin;
EXPORT const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                           hal_plugin_instance **instance);

recorder_state recorder_state_of_plugin;
static const hal_host *services;

#define EVERY_TYPE 0x3ffeu
#define EXACT (HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS)

#define GPU(words)                                                                  \
    .size = sizeof(hal_device_info), .kind = HAL_DEVICE_DISCRETE, .name = words,    \
    .id = "recorder-" words, .driver = "recorder 1", .architecture = words,         \
    .memory_bytes = UINT64_C(1) << 40, .max_allocation = UINT64_C(1) << 38,         \
    .max_binding = UINT64_C(1) << 38, .binding_alignment = 16, .compute_units = 32, \
    .max_grid = {0x7fffffff, 65535, 65535}, .max_bindings = HAL_IR_MAX_BINDINGS,    \
    .max_vector_bytes = 16, .storage_types = EVERY_TYPE, .max_queues = 4

/* With everything; without subgroups and doubles; the same with subgroups of 16; with subgroups;
 * small and inexact; large, with asynchronous copies and matrix units; with matrix units and
 * without doubles, as Apple's. */
static const hal_device_info infos[] = {
    {GPU("full"), .max_group_items = 1024, .max_group_size = {1024, 1024, 64},
     .shared_bytes = 48 << 10, .preferred_group = 256, .arithmetic_types = EVERY_TYPE,
     .exactness = EXACT, .features = HAL_FEATURE_ATOMIC_64},
    {GPU("single"), .max_group_items = 512, .max_group_size = {512, 512, 512},
     .shared_bytes = 64 << 10, .preferred_group = 256, .item_register_bytes = 512,
     .arithmetic_types = EVERY_TYPE & ~HAL_TYPE_BIT(HAL_TYPE_F64), .exactness = EXACT},
    {GPU("narrow"), .max_group_items = 512, .max_group_size = {512, 512, 512},
     .shared_bytes = 64 << 10, .preferred_group = 256, .subgroup_width = 16,
     .item_register_bytes = 512, .arithmetic_types = EVERY_TYPE & ~HAL_TYPE_BIT(HAL_TYPE_F64),
     .exactness = EXACT},
    {GPU("subgroups"), .max_group_items = 1024, .max_group_size = {1024, 1024, 64},
     .shared_bytes = 48 << 10, .preferred_group = 256, .subgroup_width = 32,
     .arithmetic_types = EVERY_TYPE, .exactness = EXACT, .features = HAL_FEATURE_ATOMIC_64},
    {GPU("weak"), .max_group_items = 128, .max_group_size = {128, 128, 64},
     .shared_bytes = 16 << 10, .preferred_group = 64, .subgroup_width = 8,
     .arithmetic_types = EVERY_TYPE},
    {GPU("copies"), .max_group_items = 1024, .max_group_size = {1024, 1024, 64},
     .shared_bytes = 227 << 10, .preferred_group = 256, .subgroup_width = 32,
     .arithmetic_types = EVERY_TYPE, .exactness = EXACT,
     .features = HAL_FEATURE_ATOMIC_64 | HAL_FEATURE_ASYNC_COPY | HAL_FEATURE_FAST_MATH,
     .matrix_types = HAL_TYPES_MATRIX},
    {GPU("matrices"), .max_group_items = 1024, .max_group_size = {1024, 1024, 1024},
     .shared_bytes = 32 << 10, .preferred_group = 256, .subgroup_width = 32,
     .arithmetic_types = EVERY_TYPE & ~HAL_TYPE_BIT(HAL_TYPE_F64),
     .exactness = EXACT & ~(uint32_t)HAL_EXACT_DENORMALS,
     .matrix_types =
         HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) | HAL_TYPE_BIT(HAL_TYPE_F32)},
};
enum { INFOS = sizeof infos / sizeof infos[0] };

static hal_status enumerate(hal_plugin_instance *instance, hal_device_info *written,
                            uint32_t capacity, uint32_t *count)
{
    (void)instance;
    memcpy(written, infos, sizeof infos[0] * (capacity < INFOS ? capacity : INFOS));
    *count = INFOS;
    return HAL_OK;
}

static hal_status out_of_memory(void)
{
    return services->fail(services, HAL_ERROR_OUT_OF_MEMORY,
                          "the host has no memory for the recorder");
}

static hal_status device_open(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **device)
{
    (void)instance;
    (void)id;
    *device = malloc(sizeof **device);
    return *device ? HAL_OK : out_of_memory();
}

static void device_close(hal_plugin_device *device)
{
    free(device);
}

static hal_status memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    (void)device;
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (made && kind != HAL_MEMORY_DEVICE) {
        made->mapped = services->allocate(services, bytes, 256);
        if (made->mapped) {
            memset(made->mapped, 0, bytes);
        }
    }
    if (!made || (kind != HAL_MEMORY_DEVICE && !made->mapped)) {
        free(made);
        return out_of_memory();
    }
    *memory = made;
    return HAL_OK;
}

static void memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    (void)device;
    services->release(services, memory->mapped);
    free(memory);
}

static hal_status memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    (void)device;
    *pointer = memory->mapped;
    return HAL_OK;
}

static hal_status kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    (void)device;
    *kernel = malloc(sizeof **kernel);
    if (!*kernel) {
        return out_of_memory();
    }
    if (recorder_state_of_plugin.made) {
        recorder_state_of_plugin.made(recorder_state_of_plugin.user, ir);
    }
    return HAL_OK;
}

static void kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    free(kernel);
}

static hal_status queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    (void)device;
    *queue = malloc(sizeof **queue);
    return *queue ? HAL_OK : out_of_memory();
}

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    (void)device;
    free(queue);
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    (void)queue;
    (void)batch;
    (void)waits;
    (void)wait_count;
    (void)value;
    return HAL_OK;
}

static hal_status wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    (void)queue;
    (void)value;
    (void)timeout_ns;
    return HAL_OK;
}

static void instance_destroy(hal_plugin_instance *instance)
{
    (void)instance;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    static char place;
    static const hal_plugin table = {.size = sizeof table,
                                     .abi = HAL_PLUGIN_ABI,
                                     .name = "recorder",
                                     .version = "1",
                                     .build_id = "1",
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
    if (host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR) {
        return NULL;
    }
    services = host;
    *instance = (hal_plugin_instance *)(void *)&place;
    return &table;
}
