/* Converts a plugin's description of a device to hal's. */
#include "device_info.h"

#include "base/sized.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Bits that hal knows. */
#define KNOWN_EXACTNESS (HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS)
#define KNOWN_FEATURES                                                          \
    (HAL_FEATURE_ASYNC_COPY | HAL_FEATURE_ATOMIC_64 | HAL_FEATURE_MAP_DEVICE |  \
     HAL_FEATURE_TIMESTAMPS | HAL_FEATURE_FAST_MATH | HAL_FEATURE_ZERO_COPY |   \
     HAL_FEATURE_INDIRECT | HAL_FEATURE_FILL_PATTERNS | HAL_FEATURE_COPY_ROWS | \
     HAL_FEATURE_DRIVER_COMPILES | HAL_FEATURE_VIRTUAL_MEMORY | HAL_FEATURE_INTEGER_PRODUCTS | \
     HAL_FEATURE_GROUPED_PRODUCTS)
#define KNOWN_MATH ((UINT32_C(1) << HAL_IR_MATH_COUNT) - 1)

/* The range of the mask of SHUFFLE_XOR. */
#define MAX_SUBGROUP_WIDTH 128u

/* Work-items of a group if the device has no preference. */
#define DEFAULT_GROUP 64u

/* Record 0 is checked first: its size is the stride of the others. */
static hal_status check_size(const hal_plugin_entries *plugin, const char *record, uint32_t index,
                             uint32_t first)
{
    uint32_t size;
    memcpy(&size, record, sizeof size);
    if (size < HAL_DEVICE_INFO_LEAST_BYTES || size > HAL_DEVICE_INFO_MAX_BYTES ||
        size % _Alignof(hal_device_info) != 0) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: device %u: size: expected sizeof(hal_device_info), here %zu, "
                        "got %u",
                        plugin->name, index, sizeof(hal_device_info), size);
    }
    if (size != first) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: device %u: size: expected %u, as device 0, got %u",
                        plugin->name, index, first, size);
    }
    return HAL_OK;
}

/* The first invalid field; null if there is none. */
static const char *info_fault(const hal_device_info *info)
{
    if (info->kind < HAL_DEVICE_DISCRETE || info->kind > HAL_DEVICE_CPU) {
        return "kind: expected one of HAL_DEVICE_*";
    }
    if (info->id[0] == 0) {
        return "id: expected a text that names the device";
    }
    if (info->binding_alignment == 0 || info->binding_alignment > 256 ||
        (info->binding_alignment & (info->binding_alignment - 1)) != 0) {
        return "binding_alignment: expected a power of two up to 256";
    }
    if (info->subgroup_width > MAX_SUBGROUP_WIDTH ||
        (info->subgroup_width & (info->subgroup_width - 1)) != 0) {
        return "subgroup_width: expected 0 or a power of two up to 128";
    }
    if (info->max_group_items == 0) {
        return "max_group_items: expected more than 0";
    }
    for (int i = 0; i < 3; i++) {
        if (info->max_group_size[i] == 0 || info->max_grid[i] == 0) {
            return "max_group_size and max_grid: expected more than 0 in each dimension";
        }
    }
    if (info->max_allocation == 0 || info->max_binding == 0) {
        return "max_allocation and max_binding: expected more than 0";
    }
    return NULL;
}

/* Bytes of the first character; 0 if it is a control character or not UTF-8. */
static size_t character_bytes(const char *text)
{
    const unsigned char first = (unsigned char)*text;
    if (first < 0x80) {
        return first >= ' ' && first != 0x7f;
    }
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    uint32_t code = first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) { /* the end of the string, too */
            return 0;
        }
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    static const uint32_t least_of[] = {0, 0, 0xa0, 0x800, 0x10000}; /* 0x80 to 0x9f: controls */
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return first >= 0xc0 && first < 0xf8 && code >= least_of[length] && code <= 0x10ffff &&
                   !surrogate
               ? length
               : 0;
}

/* Names of drivers appear in terminals, logs and JSON: control characters and invalid UTF-8 become
 * question marks. */
static void text_sanitise(char *text, size_t bytes)
{
    text[bytes - 1] = 0;
    while (*text) {
        const size_t length = character_bytes(text);
        if (length == 0) {
            *text = '?';
        }
        text += length ? length : 1;
    }
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void info_limit(const hal_plugin_entries *plugin, hal_device_info *info)
{
    info->size = sizeof *info;
    text_sanitise(info->name, sizeof info->name);
    text_sanitise(info->id, sizeof info->id);
    text_sanitise(info->driver, sizeof info->driver);
    text_sanitise(info->architecture, sizeof info->architecture);

    info->max_bindings = min_u32(info->max_bindings, HAL_IR_MAX_BINDINGS);
    info->shared_bytes = min_u32(info->shared_bytes, HAL_IR_MAX_SHARED_BYTES);
    info->max_group_items = min_u32(info->max_group_items, HAL_IR_MAX_GROUP_ITEMS);
    for (int i = 0; i < 3; i++) {
        info->max_group_size[i] = min_u32(info->max_group_size[i], info->max_group_items);
    }
    info->preferred_group += info->preferred_group == 0 ? DEFAULT_GROUP : 0;
    info->preferred_group = min_u32(info->preferred_group, info->max_group_size[0]);
    info->compute_units += info->compute_units == 0;
    info->max_queues += info->max_queues == 0;

    info->exactness &= KNOWN_EXACTNESS;
    info->features &= KNOWN_FEATURES;
    if (!plugin->queue_elapsed) {
        info->features &= ~(uint32_t)HAL_FEATURE_TIMESTAMPS;
    }
    if (!plugin->part_bytes || !plugin->memory_reserve || !plugin->memory_commit ||
        !plugin->memory_decommit) {
        info->features &= ~(uint32_t)HAL_FEATURE_VIRTUAL_MEMORY;
    }
    if (!plugin->gemm) {
        info->features &=
            ~(uint32_t)(HAL_FEATURE_INTEGER_PRODUCTS | HAL_FEATURE_GROUPED_PRODUCTS);
    }
    info->storage_types &= HAL_STORAGE_TYPES;
    info->arithmetic_types &= HAL_STORAGE_TYPES;
    info->math_f32 &= KNOWN_MATH;
    info->math_f64 &= KNOWN_MATH;
    info->matrix_types &= HAL_TYPES_MATRIX;
    info->wrong_constants &= info->arithmetic_types & ~HAL_TYPE_BIT(HAL_TYPE_BOOL);
    memset(info->reserved, 0, sizeof info->reserved);
}

/* Devices are opened by their ids. */
static hal_status check_ids(const hal_plugin_entries *plugin, const hal_device_info *infos,
                            uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(infos[i].id, infos[index].id) == 0) {
            return hal_fail(HAL_ERROR_BAD_PLUGIN,
                            "plugin %s: device %u: id: expected one that no other device has, got "
                            "\"%s\", as device %u",
                            plugin->name, index, infos[index].id, i);
        }
    }
    return HAL_OK;
}

hal_status hal_device_infos_take(const hal_plugin_entries *plugin, const char *records,
                                 uint32_t count, hal_device_info **infos)
{
    *infos = NULL;
    uint32_t stride; /* the size that the plugin was compiled with */
    memcpy(&stride, records, sizeof stride);
    hal_device_info *made = calloc(count, sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "plugin %s: no host memory for its devices",
                        plugin->name);
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *record = records + (size_t)i * stride;
        hal_status status = check_size(plugin, record, i, stride);
        if (status == HAL_OK) {
            memcpy(&made[i], record, stride < sizeof *made ? stride : sizeof *made);
            const char *fault = info_fault(&made[i]);
            status = fault ? hal_fail(HAL_ERROR_BAD_PLUGIN, "plugin %s: device %u: %s",
                                      plugin->name, i, fault)
                           : HAL_OK;
        }
        if (status == HAL_OK) {
            info_limit(plugin, &made[i]);
            status = check_ids(plugin, made, i);
        }
        if (status != HAL_OK) {
            free(made);
            return status;
        }
    }
    *infos = made;
    return HAL_OK;
}
