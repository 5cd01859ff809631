/* Kernels for measurements, see peak_kernels.h. */
#include "peak_kernels.h"

#include "base/status.h"

#include <stdbool.h>

enum { GROUP = 128, CHAINS = 8, STEPS = 8, LOOPS = 128 };

/* As many groups as keep a device busy, of a kernel of a few microseconds. */
static uint32_t group_count(const hal_device *device)
{
    const uint32_t units = hal_device_get_info(device)->compute_units;
    return (units ? units : 1) * 16;
}

static uint32_t group_items(const hal_device *device)
{
    const hal_device_info *info = hal_device_get_info(device);
    uint32_t items = info->max_group_items < GROUP ? info->max_group_items : GROUP;
    return items < info->max_group_size[0] ? items : info->max_group_size[0];
}

static hal_status kernel_end(hal_device *device, hal_ir_builder *b, hal_peak_kernel *made)
{
    const hal_status status = hal_kernel_create_built(device, b, NULL, &made->kernel);
    hal_ir_builder_destroy(b);
    return status;
}

/* Stores a value that depends on all that was computed. */
static void result_store(hal_ir_builder *b, hal_ir_memory_id memory, hal_ir_value value)
{
    hal_ir_store(b, memory, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), value);
}

hal_status hal_peak_empty(hal_device *device, hal_peak_kernel *made)
{
    hal_ir_builder *b;
    const uint32_t items = group_items(device);
    *made = (hal_peak_kernel){.grid = {1, 1, 1}};
    HAL_TRY(hal_ir_builder_create("peak_launch", &b));
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_store(b, y, item, hal_ir_add(b, hal_ir_load(b, y, item), hal_ir_u32(b, 1)));
    return kernel_end(device, b, made);
}

hal_status hal_peak_copy(hal_device *device, uint64_t bytes, hal_peak_kernel *made)
{
    hal_ir_builder *b;
    const hal_device_info *info = hal_device_get_info(device);
    const uint32_t items = group_items(device);
    const uint32_t width = info->max_vector_bytes >= 16 ? 4 : 1;
    const uint64_t groups = bytes / ((uint64_t)items * width * 4);
    const uint32_t x = groups < info->max_grid[0] ? (uint32_t)groups : info->max_grid[0];
    *made = (hal_peak_kernel){.grid = {x, 1, 1}, .operations = 2.0 * x * items * width * 4};
    HAL_TRY(hal_ir_builder_create("peak_copy", &b));
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id from = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id to = hal_ir_binding(b, "y", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value at = hal_ir_mul(b, hal_ir_global_id(b, 0), hal_ir_u32(b, width));
    hal_ir_store_wide(b, to, at, 0, HAL_IR_NONE,
                      hal_ir_load_wide(b, from, at, 0, width, HAL_IR_NONE));
    return kernel_end(device, b, made);
}

/* x * y + x in one operation where the device has it: hal would compute FMA by others. */
static hal_ir_value multiply_add(hal_ir_builder *b, bool is_fused, hal_ir_value x, hal_ir_value y)
{
    return is_fused ? hal_ir_fma(b, x, y, x) : hal_ir_add(b, hal_ir_mul(b, x, y), x);
}

hal_status hal_peak_multiply_add(hal_device *device, hal_type type, hal_peak_kernel *made)
{
    hal_ir_builder *b;
    const hal_device_info *info = hal_device_get_info(device);
    const uint32_t items = group_items(device), groups = group_count(device);
    const bool is_fused = (info->exactness & HAL_EXACT_FMA) != 0;
    *made = (hal_peak_kernel){.grid = {groups, 1, 1},
                              .operations = 2.0 * groups * items * CHAINS * STEPS * LOOPS};
    if (!(info->arithmetic_types & HAL_TYPE_BIT(type))) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "peaks: the device lacks %s", hal_type_name(type));
    }
    HAL_TRY(hal_ir_builder_create("peak_multiply_add", &b));
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), factor = hal_ir_load(b, y, item);
    hal_ir_value sums[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = hal_ir_var(b, hal_ir_add(b, factor, hal_ir_number(b, type, i)));
    }
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, LOOPS), hal_ir_u32(b, 1));
    hal_ir_value now[CHAINS];
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < CHAINS; i++) {
            now[i] = multiply_add(b, is_fused, step ? now[i] : hal_ir_get(b, sums[i]), factor);
        }
    }
    for (int i = 0; i < CHAINS; i++) {
        hal_ir_set(b, sums[i], now[i]);
    }
    hal_ir_end(b);
    hal_ir_value sum = hal_ir_get(b, sums[0]);
    for (int i = 1; i < CHAINS; i++) {
        sum = hal_ir_add(b, sum, hal_ir_get(b, sums[i]));
    }
    result_store(b, y, sum);
    return kernel_end(device, b, made);
}

hal_status hal_peak_matrix(hal_device *device, hal_type type, hal_peak_kernel *made)
{
    enum { TILES = 8, K_WORDS = 8 };
    hal_ir_builder *b;
    const uint32_t items = group_items(device) / 32 * 32, groups = group_count(device);
    const bool is_f64 = type == HAL_TYPE_F64;
    const hal_type sums_type = is_f64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
    const double k = is_f64 ? K_WORDS : K_WORDS * 4.0 / hal_type_size(type);
    *made =
        (hal_peak_kernel){.grid = {groups, 1, 1},
                          .operations = 2.0 * groups * (items / 32) * 16 * 8 * k * TILES * LOOPS};
    if (!(hal_device_get_info(device)->matrix_types & HAL_TYPE_BIT(type)) || items == 0) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "peaks: the device lacks matrix units of %s",
                        hal_type_name(type));
    }
    HAL_TRY(hal_ir_builder_create("peak_matrix", &b));
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", sums_type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value zero = hal_ir_number(b, sums_type, 0);
    const hal_ir_value word = hal_ir_cast(b, is_f64 ? HAL_TYPE_F64 : HAL_TYPE_U32,
                                          hal_ir_load(b, y, hal_ir_id(b, HAL_IR_LOCAL_ID, 0)));
    const hal_ir_value left = hal_ir_pack(b, 4, (hal_ir_value[]){word, word, word, word});
    const hal_ir_value right = hal_ir_pack(b, 2, (hal_ir_value[]){word, word});
    hal_ir_value sums[TILES][4];
    for (int i = 0; i < TILES; i++) {
        for (int e = 0; e < 4; e++) {
            sums[i][e] = hal_ir_var(b, zero);
        }
    }
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, LOOPS), hal_ir_u32(b, 1));
    for (int i = 0; i < TILES; i++) {
        hal_ir_value parts[4];
        for (int e = 0; e < 4; e++) {
            parts[e] = hal_ir_get(b, sums[i][e]);
        }
        const hal_ir_value sum =
            hal_ir_matrix_multiply(b, type, left, right, hal_ir_pack(b, 4, parts));
        for (uint32_t e = 0; e < 4; e++) {
            hal_ir_set(b, sums[i][e], hal_ir_extract(b, sum, e));
        }
    }
    hal_ir_end(b);
    hal_ir_value total = zero;
    for (int i = 0; i < TILES; i++) {
        for (int e = 0; e < 4; e++) {
            total = hal_ir_add(b, total, hal_ir_get(b, sums[i][e]));
        }
    }
    result_store(b, y, total);
    return kernel_end(device, b, made);
}
