/* The legaliser: checks a kernel against a device and runs the passes that rewrite it. First come
 * opcodes that the plugin does not know and transcendental functions, whose expansion uses fma,
 * then everything else; at last unused values are dropped. Called when a kernel is made. */
#include "legalise.h"

#include "math.h"
#include "rewrite.h"
#include "base/status.h"

#include <stdlib.h>

/* Keeps a transcendental function that the device computes itself, and expands another. */
static hal_ir_value expand_math(hal_ir_rewrite *r, const hal_ir_record *record, int is_known)
{
    const hal_device_info *info = r->info;
    const int is_f32 = record->type == HAL_TYPE_F32;
    const uint32_t claims = is_f32 ? info->math_f32 : info->math_f64;
    const int claimed = is_known && (claims >> hal_ir_math_index(record->opcode) & 1);
    const int fast = is_known && (record->flags & HAL_IR_FAST) && is_f32 &&
                     (info->abilities & HAL_ABILITY_FAST_MATH);
    if (!fast && !claimed) {
        return hal_ir_expand_math(r->to, record->opcode, record->type, r->values[record->a],
                                  hal_ir_rewrite_operand(r, record->b));
    }
    hal_ir_record kept = *record;
    kept.flags = fast ? HAL_IR_FAST : 0;
    return hal_ir_rewrite_copy(r, &kept);
}

/* Computes an opcode by older ones. */
static hal_ir_value expand_newer(hal_ir_rewrite *r, const hal_ir_record *record, uint32_t minor)
{
    const hal_ir_info *info = hal_ir_info_of(record->opcode);
    hal_ir_builder_fail(
        r->to, HAL_ERROR_UNSUPPORTED,
        "kernel %s: %s: expected opcodes of plugin ABI %u.%u, which %s has, got one "
        "of %u.%u; rebuild the plugin",
        r->from->names + r->from->name, info->name, HAL_PLUGIN_ABI_MAJOR, minor, r->info->name,
        HAL_PLUGIN_ABI_MAJOR, info->since);
    return HAL_IR_NONE;
}

static hal_ir_value expand_record(hal_ir_rewrite *r, const hal_ir_record *record, uint32_t minor)
{
    const int is_known = hal_ir_info_of(record->opcode)->since <= minor;
    if (hal_ir_is_math(record->opcode)) {
        return expand_math(r, record, is_known);
    }
    return is_known ? hal_ir_rewrite_copy(r, record) : expand_newer(r, record, minor);
}

/* The pass over transcendental functions and over opcodes that the plugin does not know. */
static hal_status expand(const hal_ir_kernel *from, const hal_device_info *info, uint32_t minor,
                         hal_ir_kernel **made)
{
    hal_ir_rewrite r;
    const hal_status status = hal_ir_rewrite_begin(&r, from, info, NULL);
    if (status != HAL_OK) {
        return status;
    }
    for (uint32_t i = 0; i < from->record_count; i++) {
        r.values[i] = expand_record(&r, &from->records[i], minor);
    }
    return hal_ir_rewrite_end(&r, made);
}

static void enliven(uint8_t *live, uint32_t *work, uint32_t *pending, hal_ir_value value)
{
    if (!live[value]) {
        live[value] = 1;
        work[(*pending)++] = value;
    }
}

/* Live are records with effects and what they use; a variable is live when it is read, and then
 * so is what sets it. Inputs of fragments stay, for their numbers count. */
static hal_status find_live(const hal_ir_kernel *from, uint8_t *live)
{
    const uint32_t count = from->record_count;
    uint32_t *work = malloc((count + 1) * sizeof *work);
    uint32_t *sets = malloc((count + 1) * sizeof *sets); /* the SET before, of the same variable */
    uint32_t *last = malloc((count + 1) * sizeof *last); /* the last SET of each VAR */
    uint32_t pending = 0;
    if (work == NULL || sets == NULL || last == NULL) {
        free(work);
        free(sets);
        free(last);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "legalising kernel %s: no host memory",
                        from->names + from->name);
    }
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_record *record = &from->records[i];
        const uint32_t opcode = record->opcode;
        last[i] = HAL_IR_NONE;
        if (opcode == HAL_IR_SET) {
            sets[i] = last[record->a];
            last[record->a] = i;
        } else if (opcode != HAL_IR_VAR && !(hal_ir_info_of(opcode)->traits & HAL_IR_TRAIT_PURE)) {
            enliven(live, work, &pending, i);
        }
    }
    while (pending > 0) {
        const uint32_t index = work[--pending];
        const hal_ir_record *record = &from->records[index];
        hal_ir_value operands[4];
        const uint32_t operand_count = hal_ir_operands(record, operands);
        for (uint32_t k = 0; k < operand_count; k++) {
            enliven(live, work, &pending, operands[k]);
        }
        for (uint32_t set = record->opcode == HAL_IR_VAR ? last[index] : HAL_IR_NONE;
             set != HAL_IR_NONE; set = sets[set]) {
            enliven(live, work, &pending, set);
        }
    }
    free(work);
    free(sets);
    free(last);
    return HAL_OK;
}

/* The pass that leaves out what nobody uses. */
static hal_status drop_dead(const hal_ir_kernel *from, const hal_device_info *info,
                            hal_ir_kernel **made)
{
    hal_ir_rewrite r;
    uint8_t *live = calloc(from->record_count + 1, 1);
    if (live == NULL) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "legalising kernel %s: no host memory",
                        from->names + from->name);
    }
    hal_status status = find_live(from, live);
    if (status == HAL_OK) {
        status = hal_ir_rewrite_begin(&r, from, info, NULL);
    }
    if (status == HAL_OK) {
        for (uint32_t i = 0; i < from->record_count; i++) {
            r.values[i] = live[i] ? hal_ir_rewrite_copy(&r, &from->records[i]) : HAL_IR_NONE;
        }
        status = hal_ir_rewrite_end(&r, made);
    }
    free(live);
    return status;
}

static hal_status check_limits(const hal_ir_kernel *ir, const hal_device_info *info)
{
    const char *name = ir->names + ir->name;
    uint64_t shared_bytes = 0;
    if (ir->flags & HAL_IR_FRAGMENT) {
        return HAL_OK;
    }
    if (hal_ir_group_items(ir) > info->max_group_items) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s has groups of %u work-items, %s takes at most %u", name,
                        hal_ir_group_items(ir), info->name, info->max_group_items);
    }
    for (int i = 0; i < 3; i++) {
        if (ir->group_size[i] > info->max_group_size[i]) {
            return hal_fail(HAL_ERROR_UNSUPPORTED,
                            "kernel %s has groups of %u x %u x %u, %s takes at most %u x %u x %u",
                            name, ir->group_size[0], ir->group_size[1], ir->group_size[2],
                            info->name, info->max_group_size[0], info->max_group_size[1],
                            info->max_group_size[2]);
        }
    }
    if (ir->binding_count > info->max_bindings) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "kernel %s has %u bindings, %s takes at most %u",
                        name, ir->binding_count, info->name, info->max_bindings);
    }
    for (uint32_t i = ir->binding_count; i < ir->memory_count; i++) {
        const uint32_t bytes = hal_type_size(ir->memories[i].type);
        shared_bytes = (shared_bytes + bytes - 1) / bytes * bytes;
        shared_bytes += (uint64_t)ir->memories[i].count * bytes;
    }
    if (shared_bytes > info->shared_bytes) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s needs %llu bytes of shared memory, %s has %u for a group", name,
                        (unsigned long long)shared_bytes, info->name, info->shared_bytes);
    }
    return HAL_OK;
}

static hal_status check_types(const hal_ir_kernel *ir, const hal_device_info *info)
{
    const char *name = ir->names + ir->name;
    const uint32_t values = info->arithmetic_types | HAL_TYPE_BIT(HAL_TYPE_BOOL);
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        const hal_ir_memory *memory = &ir->memories[i];
        if (!(info->storage_types & HAL_TYPE_BIT(memory->type))) {
            return hal_fail(HAL_ERROR_UNSUPPORTED,
                            "kernel %s has memory of %s (%s), which %s cannot store", name,
                            hal_type_name(memory->type), ir->names + memory->name, info->name);
        }
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        if (record->type != HAL_TYPE_NONE && !(values & HAL_TYPE_BIT(record->type))) {
            return hal_fail(
                HAL_ERROR_UNSUPPORTED, "kernel %s computes with %s (%s), which %s does not", name,
                hal_type_name(record->type), hal_ir_opcode_name(record->opcode), info->name);
        }
        if (record->opcode == HAL_IR_ATOMIC && hal_type_size(record->type) == 8 &&
            !(info->abilities & HAL_ABILITY_ATOMIC_64)) {
            return hal_fail(HAL_ERROR_UNSUPPORTED,
                            "kernel %s has atomics of %s, %s has them of 32 bits only", name,
                            hal_type_name(record->type), info->name);
        }
    }
    return HAL_OK;
}

hal_status hal_ir_legalise(const hal_ir_kernel *ir, const hal_device_info *info, uint32_t minor,
                           hal_ir_kernel **legal)
{
    hal_ir_kernel *expanded = NULL, *lowered = NULL, *made = NULL;
    *legal = NULL;
    hal_status status = expand(ir, info, minor, &expanded);
    if (status == HAL_OK) {
        status = hal_ir_lower(expanded, info, &lowered);
    }
    if (status == HAL_OK) {
        status = drop_dead(lowered, info, &made);
    }
    if (status == HAL_OK) {
        status = check_limits(made, info);
    }
    if (status == HAL_OK) {
        status = check_types(made, info);
    }
    hal_ir_kernel_destroy(expanded);
    hal_ir_kernel_destroy(lowered);
    if (status != HAL_OK) {
        hal_ir_kernel_destroy(made);
        return status;
    }
    *legal = made;
    return HAL_OK;
}
