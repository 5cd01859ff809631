/* The device and what it claims. Entries of the plugin's table. */
#include "example_c.h"

static const hal_device_info the_device = {
    .size = sizeof(hal_device_info),
    .kind = HAL_DEVICE_SOFTWARE,
    .name = "C compiler",
    .id = "example_c:0",
    .driver = "the host's C compiler",
    .architecture = "host",
    .memory_bytes = EXAMPLE_MEMORY_BYTES,
    .max_allocation = EXAMPLE_MEMORY_BYTES,
    .max_binding = EXAMPLE_MEMORY_BYTES,
    .binding_alignment = 16,
    .compute_units = 1,
    .subgroup_width = 0, /* hal computes subgroup operations through shared memory */
    .max_group_items = EXAMPLE_MAX_ITEMS,
    .max_group_size = {EXAMPLE_MAX_ITEMS, EXAMPLE_MAX_ITEMS, EXAMPLE_MAX_ITEMS},
    .max_grid = {65535, 65535, 65535},
    .shared_bytes = 32768,
    .max_bindings = HAL_IR_MAX_BINDINGS,
    .max_vector_bytes = 4, /* hal splits wide accesses */
    .preferred_group = 64,
    .storage_types =
        HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I8) | HAL_TYPE_BIT(HAL_TYPE_U8) |
        HAL_TYPE_BIT(HAL_TYPE_I16) | HAL_TYPE_BIT(HAL_TYPE_U16) | HAL_TYPE_BIT(HAL_TYPE_I32) |
        HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) | HAL_TYPE_BIT(HAL_TYPE_U64) |
        HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_F64),
    .arithmetic_types = HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I32) |
                        HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) |
                        HAL_TYPE_BIT(HAL_TYPE_U64) | HAL_TYPE_BIT(HAL_TYPE_F32) |
                        HAL_TYPE_BIT(HAL_TYPE_F64),
    .exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS,
    .features = HAL_FEATURE_ATOMIC_64 | HAL_FEATURE_MAP_DEVICE | HAL_FEATURE_ZERO_COPY |
                HAL_FEATURE_FILL_PATTERNS,
    .max_queues = 2,
};

hal_status example_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    *count = 1;
    if (capacity > 0) {
        infos[0] = the_device;
    }
    return HAL_OK;
}

hal_status example_device_open(uint32_t index, hal_plugin_device **device)
{
    if (index != 0) {
        return example_fail(HAL_ERROR_NOT_FOUND, "example_c:%u: expected index 0", index);
    }
    hal_plugin_device *made = example_new(sizeof *made, "device");
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* for limits of waits */
    pthread_cond_init(&made->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&made->lock, NULL);
    *device = made;
    return HAL_OK;
}

void example_device_close(hal_plugin_device *device)
{
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    example_release(device);
}
