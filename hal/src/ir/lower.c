/* Lowers memory accesses, asynchronous copies, NARROW, fma and subgroup operations to those of a
 * device, in kernels and fragments. */
#include "rewrite.h"
#include "base/array.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The largest width up to `width` of one access of the device to elements of a storage type. */
static uint32_t access_width(const hal_device_info *info, hal_type storage, uint32_t width)
{
    const uint32_t bytes = hal_type_size(storage);
    while (width > 1 && width * bytes > info->max_vector_bytes) {
        width /= 2;
    }
    return width;
}

/* Whether memory of a type is accessed otherwise than as the record does. */
static bool is_access_lowered(const hal_device_info *info, hal_type type, uint32_t width)
{
    const hal_type storage = hal_ir_lower_storage(info, type);
    return storage != type || access_width(info, storage, width) != width;
}

/* Whether the device lacks what the record needs. A record that it has may still use a vector that
 * is split. */
static bool needs_lowering(const hal_device_info *info, const hal_ir_kernel *kernel,
                           const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_LOAD:
    case HAL_IR_STORE:
        return is_access_lowered(info, kernel->memories[record->aux].type, record->width);
    case HAL_IR_ASYNC_COPY:
        return !(info->features & HAL_FEATURE_ASYNC_COPY) ||
               is_access_lowered(info, kernel->memories[record->aux].type, record->width);
    case HAL_IR_ASYNC_COMMIT:
    case HAL_IR_ASYNC_WAIT:
        return !(info->features & HAL_FEATURE_ASYNC_COPY);
    case HAL_IR_NARROW:
        return !(info->storage_types & HAL_TYPE_BIT(record->aux));
    case HAL_IR_FMA:
        return !(info->exactness & HAL_EXACT_FMA);
    case HAL_IR_LANE_ID:
    case HAL_IR_SHUFFLE:
    case HAL_IR_SHUFFLE_XOR:
    case HAL_IR_SUBGROUP_REDUCE:
        return info->subgroup_width == 0;
    case HAL_IR_MATRIX_MULTIPLY:
        return !(info->matrix_types & HAL_TYPE_BIT(record->aux)) ||
               info->subgroup_width != HAL_IR_MATRIX_LANES;
    default:
        return false;
    }
}

bool hal_ir_needs_lowering(const hal_ir_kernel *kernel, const hal_device_info *info)
{
    for (uint32_t i = 0; i < kernel->memory_count; i++) {
        const hal_type type = kernel->memories[i].type;
        if (hal_ir_lower_storage(info, type) != type) {
            return true;
        }
    }
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        if (needs_lowering(info, kernel, &kernel->records[i])) {
            return true;
        }
    }
    return false;
}

static bool offset_add(hal_ir_rewrite *r, int32_t offset, uint32_t by, int32_t *sum)
{
    if (offset > INT32_MAX - 8) {
        hal_ir_builder_fail(
            r->to, HAL_ERROR_UNSUPPORTED,
            "offset: expected at most 2147483639 in an access that is split, got %d", offset);
        return false;
    }
    *sum = offset + (int32_t)by;
    return true;
}

/* Marks the vector of a record as split. Returns its elements, to be set. */
static hal_ir_value *split_vector(hal_ir_rewrite *r, uint32_t index)
{
    enum { MAX_WIDTH = 8 };
    if (!HAL_ARRAY_RESERVE(r->elements, r->element_capacity,
                           (uint64_t)r->element_count + MAX_WIDTH)) {
        hal_ir_builder_fail(r->to, HAL_ERROR_OUT_OF_MEMORY, "no host memory");
        return NULL;
    }
    r->splits[index] = r->element_count;
    r->element_count += MAX_WIDTH;
    return r->elements + r->splits[index];
}

/* Loads of the device's width; the elements are those of a split vector. */
static hal_ir_value lower_load(hal_ir_rewrite *r, uint32_t index)
{
    const hal_ir_record *record = &r->from->records[index];
    const hal_type type = r->from->memories[record->aux].type;
    const hal_type legal = hal_ir_lower_storage(r->info, type);
    const uint32_t part = access_width(r->info, legal, record->width);
    hal_ir_value made[8];
    for (uint32_t i = 0; i < record->width; i += part) {
        int32_t offset = 0;
        if (!offset_add(r, record->imm, i, &offset)) {
            return HAL_IR_NONE;
        }
        const hal_ir_value loaded =
            hal_ir_load_wide(r->to, record->aux, r->values[record->a], offset, part,
                             hal_ir_rewrite_operand(r, record->b));
        for (uint32_t k = 0; k < part; k++) {
            const hal_ir_value one = part == 1 ? loaded : hal_ir_extract(r->to, loaded, k);
            made[i + k] = hal_ir_lower_loaded(r->to, type, legal, one);
        }
    }
    if (record->width == 1) {
        return made[0];
    }
    hal_ir_value *elements = split_vector(r, index);
    if (elements) {
        memcpy(elements, made, record->width * sizeof *made);
    }
    return HAL_IR_NONE;
}

static void vector_elements(hal_ir_rewrite *r, hal_ir_value vector, hal_ir_value elements[8])
{
    const uint32_t width = r->from->records[vector].width;
    if (r->splits[vector] != HAL_IR_NONE) {
        memcpy(elements, r->elements + r->splits[vector], width * sizeof *elements);
    } else if (width == 1) {
        elements[0] = r->values[vector];
    } else {
        for (uint32_t i = 0; i < width; i++) {
            elements[i] = hal_ir_extract(r->to, r->values[vector], i);
        }
    }
}

static void lower_store(hal_ir_rewrite *r, const hal_ir_record *record)
{
    const hal_type type = r->from->memories[record->aux].type;
    const hal_type legal = hal_ir_lower_storage(r->info, type);
    const uint32_t part = access_width(r->info, legal, record->width);
    hal_ir_value elements[8];
    vector_elements(r, record->c, elements);
    for (uint32_t i = 0; i < record->width; i++) {
        elements[i] = hal_ir_lower_stored(r->to, type, legal, elements[i]);
    }
    for (uint32_t i = 0; i < record->width; i += part) {
        int32_t offset = 0;
        if (!offset_add(r, record->imm, i, &offset)) {
            return;
        }
        const hal_ir_value value =
            part == 1 ? elements[i] : hal_ir_pack(r->to, part, elements + i);
        hal_ir_store_wide(r->to, record->aux, r->values[record->a], offset,
                          hal_ir_rewrite_operand(r, record->b), value);
    }
}

static hal_ir_value index_add(hal_ir_rewrite *r, hal_ir_value index, uint32_t by)
{
    if (by == 0) {
        return index;
    }
    const hal_ir_value distance = hal_ir_number(r->to, hal_ir_type_of(r->to, index), by);
    return hal_ir_add(r->to, index, distance);
}

/* Narrower copies, or loads and stores if the device has no asynchronous copies. Both memories have
 * the same storage type, so elements are not converted. */
static void lower_async_copy(hal_ir_rewrite *r, const hal_ir_record *record)
{
    const hal_type storage = hal_ir_lower_storage(r->info, r->from->memories[record->aux].type);
    const uint32_t part = access_width(r->info, storage, record->width);
    const uint32_t binding = (uint32_t)record->imm;
    const hal_ir_value guard = hal_ir_rewrite_operand(r, record->b);
    for (uint32_t i = 0; i < record->width; i += part) {
        if (r->info->features & HAL_FEATURE_ASYNC_COPY) {
            const hal_ir_value to = index_add(r, r->values[record->a], i);
            const hal_ir_value from = index_add(r, r->values[record->d], i);
            hal_ir_async_copy(r->to, record->aux, to, binding, from, part, guard);
        } else {
            const hal_ir_value value = hal_ir_load_wide(r->to, binding, r->values[record->d],
                                                        (int32_t)i, part, guard);
            hal_ir_store_wide(r->to, record->aux, r->values[record->a], (int32_t)i, HAL_IR_NONE,
                              value);
        }
    }
}

/* A vector made of split vectors is split too. */
static hal_ir_value lower_pack(hal_ir_rewrite *r, uint32_t index)
{
    const hal_ir_record *record = &r->from->records[index];
    hal_ir_value made[8], second[8];
    vector_elements(r, record->a, made);
    vector_elements(r, record->b, second);
    memcpy(made + 4, second, 4 * sizeof *made);
    hal_ir_value *elements = split_vector(r, index);
    if (elements) {
        memcpy(elements, made, sizeof made);
    }
    return HAL_IR_NONE;
}

static hal_ir_value lower_fma(hal_ir_rewrite *r, const hal_ir_record *record)
{
    const hal_device_info *info = r->info;
    const hal_ir_value x = r->values[record->a], y = r->values[record->b];
    const hal_ir_value z = r->values[record->c];
    const bool is_f64 = record->type == HAL_TYPE_F64;
    if (!(info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_F64)) ||
        (is_f64 && (info->exactness & HAL_EXACT_DENORMALS))) {
        hal_ir_builder_fail(r->to, HAL_ERROR_UNSUPPORTED,
                            "fma: expected a device with a fused multiply-add of %s or wider "
                            "arithmetic, got %s",
                            hal_type_name(record->type), info->name);
        return HAL_IR_NONE;
    }
    return is_f64 ? hal_ir_lower_fma_f64(r->to, x, y, z) : hal_ir_lower_fma(r->to, x, y, z);
}

/* Matrix units are not emulated: programs query them. */
static hal_ir_value lower_matrix(hal_ir_rewrite *r, const hal_ir_record *record)
{
    const hal_device_info *info = r->info;
    hal_ir_value tiles[3] = {record->a, record->b, record->c};
    if (needs_lowering(info, r->from, record)) {
        hal_ir_builder_fail(r->to, HAL_ERROR_UNSUPPORTED,
                            "matrix_multiply: expected a device with matrix units of %s, got %s",
                            hal_type_name((hal_type)record->aux), info->name);
        return HAL_IR_NONE;
    }
    for (int i = 0; i < 3; i++) {
        hal_ir_value elements[8];
        const uint32_t width = r->from->records[tiles[i]].width;
        if (r->splits[tiles[i]] == HAL_IR_NONE) {
            tiles[i] = r->values[tiles[i]];
        } else {
            vector_elements(r, tiles[i], elements);
            tiles[i] = hal_ir_pack(r->to, width, elements);
        }
    }
    return hal_ir_matrix_multiply(r->to, (hal_type)record->aux, tiles[0], tiles[1], tiles[2]);
}

/* Whether an operand of the record is a vector that is split. */
static bool uses_split(const hal_ir_rewrite *r, const hal_ir_record *record)
{
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    for (uint32_t i = 0; i < count; i++) {
        if (r->splits[operands[i]] != HAL_IR_NONE) {
            return true;
        }
    }
    return false;
}

static hal_ir_value lower_record(hal_ir_rewrite *r, uint32_t index)
{
    const hal_ir_record *record = &r->from->records[index];
    if (!needs_lowering(r->info, r->from, record) && !uses_split(r, record)) {
        return hal_ir_rewrite_copy(r, record);
    }
    switch (record->opcode) {
    case HAL_IR_LOAD:
        return lower_load(r, index);
    case HAL_IR_STORE:
        lower_store(r, record);
        return HAL_IR_NONE;
    case HAL_IR_ASYNC_COPY:
        lower_async_copy(r, record);
        return HAL_IR_NONE;
    case HAL_IR_ASYNC_COMMIT:
    case HAL_IR_ASYNC_WAIT:
        return HAL_IR_NONE;
    case HAL_IR_PACK:
        return lower_pack(r, index);
    case HAL_IR_EXTRACT:
        return r->elements[r->splits[record->a] + (uint32_t)record->imm];
    case HAL_IR_NARROW:
        return hal_ir_lower_narrow(r->to, (hal_type)record->aux, r->values[record->a]);
    case HAL_IR_FMA:
        return lower_fma(r, record);
    case HAL_IR_MATRIX_MULTIPLY:
        return lower_matrix(r, record);
    default:
        return hal_ir_lower_subgroup(r, record);
    }
}

hal_status hal_ir_lower(const hal_ir_kernel *from, const hal_device_info *info,
                        hal_ir_kernel **made)
{
    hal_ir_rewrite r;
    HAL_TRY(hal_ir_rewrite_begin(&r, from, info, hal_ir_lower_storage, NULL));
    if (info->subgroup_width == 0) {
        hal_ir_lower_subgroup_begin(&r);
    }
    for (uint32_t i = 0; i < from->record_count; i++) {
        r.values[i] = lower_record(&r, i);
    }
    return hal_ir_rewrite_end(&r, made);
}
