/* The device and what it claims. Entries of the plugin's table. The conformance tool tests what is
 * claimed; what is not claimed, hal rewrites for the device or fails with UNSUPPORTED. */
#include "template_plugin.h"

static const hal_device_info the_device = {
    .size = sizeof(hal_device_info),
    .kind = HAL_DEVICE_SOFTWARE, /* chosen last; a chip on a card is HAL_DEVICE_DISCRETE */
    .name = "Template device",
    .id = "template:0",
    .driver = "reference interpreter",
    .architecture = "host",
    .memory_bytes = TEMPLATE_MEMORY_BYTES,
    .max_allocation = TEMPLATE_MEMORY_BYTES,
    .max_binding = TEMPLATE_MEMORY_BYTES,
    .binding_alignment = 16,
    .compute_units = 1,
    .subgroup_width = TEMPLATE_SUBGROUP,
    .max_group_items = 256,
    .max_group_size = {256, 256, 256},
    .max_grid = {65535, 65535, 65535},
    .shared_bytes = 32768,
    .max_bindings = HAL_IR_MAX_BINDINGS,
    .max_vector_bytes = 16,
    .preferred_group = 64,
    .storage_types =
        HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I8) | HAL_TYPE_BIT(HAL_TYPE_U8) |
        HAL_TYPE_BIT(HAL_TYPE_I16) | HAL_TYPE_BIT(HAL_TYPE_U16) | HAL_TYPE_BIT(HAL_TYPE_I32) |
        HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) | HAL_TYPE_BIT(HAL_TYPE_U64) |
        HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) | HAL_TYPE_BIT(HAL_TYPE_F32) |
        HAL_TYPE_BIT(HAL_TYPE_F64),
    .arithmetic_types = HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I32) |
                        HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) |
                        HAL_TYPE_BIT(HAL_TYPE_U64) | HAL_TYPE_BIT(HAL_TYPE_F32) |
                        HAL_TYPE_BIT(HAL_TYPE_F64),
    .exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS,
    .features = HAL_FEATURE_ATOMIC_64 | HAL_FEATURE_MAP_DEVICE | HAL_FEATURE_FILL_PATTERNS,
    .max_queues = 1,
};

hal_status template_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    *count = 1;
    if (capacity > 0) {
        infos[0] = the_device;
    }
    return HAL_OK;
}

hal_status template_device_open(uint32_t index, hal_plugin_device **device)
{
    if (index != 0) {
        return template_fail(HAL_ERROR_NOT_FOUND, "template:%u: expected index 0", index);
    }
    *device = template_new(sizeof **device, "device");
    return *device ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

void template_device_close(hal_plugin_device *device)
{
    template_release(device);
}
