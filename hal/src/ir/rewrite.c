/* Builds a kernel from the records of another one. */
#include "rewrite.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static void copy_declarations(hal_ir_rewrite *r,
                              hal_type (*storage)(const hal_device_info *info, hal_type type),
                              const hal_ir_added *added)
{
    const hal_ir_kernel *from = r->from;
    if (from->flags & HAL_IR_FRAGMENT) {
        return;
    }
    hal_ir_group_size(r->to, from->group_size[0], from->group_size[1], from->group_size[2]);
    hal_ir_groups_per_unit(r->to, from->groups_per_unit);
    for (uint32_t i = 0; i <= from->memory_count; i++) {
        for (; i == from->binding_count && added && added->name; added++) {
            hal_ir_binding(r->to, added->name, added->type, HAL_ACCESS_READ_WRITE);
        }
        if (i == from->memory_count) {
            break;
        }
        const hal_ir_memory *memory = &from->memories[i];
        const hal_type type = !storage ? memory->type : storage(r->info, memory->type);
        if (hal_ir_is_shared(from, i)) {
            hal_ir_shared(r->to, from->names + memory->name, type, memory->count);
        } else {
            hal_ir_binding(r->to, from->names + memory->name, type, memory->access);
        }
    }
    for (uint32_t i = 0; i < from->scalar_count; i++) {
        const hal_ir_scalar *scalar = &from->scalars[i];
        hal_ir_declare_scalar(r->to, from->names + scalar->name, scalar->type, scalar->offset);
    }
    hal_ir_set_scalar_bytes(r->to, from->scalar_bytes);
}

hal_status hal_ir_rewrite_begin(hal_ir_rewrite *r, const hal_ir_kernel *from,
                                const hal_device_info *info,
                                hal_type (*storage)(const hal_device_info *info, hal_type type),
                                const hal_ir_added *added)
{
    const char *name = from->names + from->name;
    memset(r, 0, sizeof *r);
    r->from = from;
    r->info = info;
    HAL_TRY(from->flags & HAL_IR_FRAGMENT ? hal_ir_builder_create_fragment(name, &r->to)
                                          : hal_ir_builder_create(name, &r->to));
    r->values = malloc((from->record_count + 1) * sizeof *r->values);
    r->splits = malloc((from->record_count + 1) * sizeof *r->splits);
    if (!r->values || !r->splits) {
        hal_ir_rewrite_end(r, NULL);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "legaliser: kernel %s: no host memory", name);
    }
    memset(r->splits, 0xff, from->record_count * sizeof *r->splits); /* HAL_IR_NONE */
    copy_declarations(r, storage, added);
    return HAL_OK;
}

hal_ir_value hal_ir_rewrite_copy(hal_ir_rewrite *r, const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_CONSTANT:
        return hal_ir_constant_of(r->to, record->type, r->from->constants[record->aux]);
    case HAL_IR_LOCAL_ID:
    case HAL_IR_GROUP_ID:
    case HAL_IR_GROUP_COUNT:
    case HAL_IR_LANE_ID:
        return hal_ir_id(r->to, record->opcode, record->aux);
    case HAL_IR_INPUT:
        return hal_ir_input(r->to, record->aux, record->type);
    case HAL_IR_OUTPUT:
        hal_ir_output(r->to, record->aux, r->values[record->a]);
        return HAL_IR_NONE;
    default:
        break;
    }
    hal_ir_record copy = *record;
    hal_ir_record_rename(&copy, r->values);
    return hal_ir_append_copy(r->to, &copy);
}

hal_status hal_ir_rewrite_end(hal_ir_rewrite *r, hal_ir_kernel **made)
{
    hal_status status = HAL_OK;
    if (made) {
        status = hal_ir_builder_finish_unverified(r->to, made);
    }
    hal_ir_builder_destroy(r->to);
    free(r->values);
    free(r->splits);
    free(r->elements);
    memset(r, 0, sizeof *r);
    return status;
}
