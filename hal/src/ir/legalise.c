/* The legaliser: rewrites a kernel for a device in four passes and checks it against the device's
 * limits. The first pass expands transcendental functions, whose expansions use fma; the second
 * lowers the rest; the third hides constants from a compiler that folds them wrongly; the fourth
 * drops unused values. Most kernels for GPUs need the fourth one only. */
#include "legalise.h"

#include "math.h"
#include "rewrite.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Keeps transcendental functions that the device claims, and expands others. */
static hal_ir_value expand_math(hal_ir_rewrite *r, const hal_ir_record *record)
{
    const hal_device_info *info = r->info;
    const bool is_f32 = record->type == HAL_TYPE_F32;
    const uint32_t claims = is_f32 ? info->math_f32 : info->math_f64;
    const bool is_claimed = claims >> hal_ir_math_index(record->opcode) & 1;
    const bool is_fast =
        (record->flags & HAL_IR_FAST) && is_f32 && (info->features & HAL_FEATURE_FAST_MATH);
    if (!is_fast && !is_claimed) {
        return hal_ir_expand_math(r->to, record->opcode, record->type, r->values[record->a],
                                  hal_ir_rewrite_operand(r, record->b));
    }
    hal_ir_record kept = *record;
    kept.flags = is_fast ? HAL_IR_FAST : 0;
    return hal_ir_rewrite_copy(r, &kept);
}

/* Whether the first pass has anything to do. */
static bool has_expandable(const hal_ir_kernel *ir)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (hal_ir_is_math(ir->records[i].opcode)) {
            return true;
        }
    }
    return false;
}

/* The first pass. */
static hal_status expand_kernel(const hal_ir_kernel *from, const hal_device_info *info,
                                hal_ir_kernel **made)
{
    hal_ir_rewrite r;
    HAL_TRY(hal_ir_rewrite_begin(&r, from, info, NULL, NULL));
    for (uint32_t i = 0; i < from->record_count; i++) {
        const hal_ir_record *record = &from->records[i];
        r.values[i] = hal_ir_is_math(record->opcode) ? expand_math(&r, record)
                                                     : hal_ir_rewrite_copy(&r, record);
    }
    return hal_ir_rewrite_end(&r, made);
}

static void mark_live(uint8_t *live, uint32_t *work, uint32_t *pending, hal_ir_value value)
{
    if (!live[value]) {
        live[value] = 1;
        work[(*pending)++] = value;
    }
}

/* Records with effects and their operands are live. A SET is live if its variable is read. Inputs
 * of fragments are live: their numbers have a meaning. */
static hal_status find_live(const hal_ir_kernel *from, uint8_t *live)
{
    const uint32_t count = from->record_count;
    uint32_t *work = malloc((count + 1) * sizeof *work);
    uint32_t *sets = malloc((count + 1) * sizeof *sets); /* the previous SET of the variable */
    uint32_t *last = malloc((count + 1) * sizeof *last); /* the last SET of each VAR */
    uint32_t pending = 0;
    if (!work || !sets || !last) {
        free(work);
        free(sets);
        free(last);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "legaliser: kernel %s: no host memory",
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
            mark_live(live, work, &pending, i);
        }
    }
    while (pending > 0) {
        const uint32_t index = work[--pending];
        const hal_ir_record *record = &from->records[index];
        hal_ir_value operands[4];
        const uint32_t operand_count = hal_ir_operands(record, operands);
        for (uint32_t k = 0; k < operand_count; k++) {
            mark_live(live, work, &pending, operands[k]);
        }
        for (uint32_t set = record->opcode == HAL_IR_VAR ? last[index] : HAL_IR_NONE;
             set != HAL_IR_NONE; set = sets[set]) {
            mark_live(live, work, &pending, set);
        }
    }
    free(work);
    free(sets);
    free(last);
    return HAL_OK;
}

static void keep_live_records(hal_ir_kernel *kernel, const uint8_t *live, hal_ir_value *renamed)
{
    hal_ir_record *records = (hal_ir_record *)kernel->records;
    const uint32_t count = kernel->record_count;
    kernel->record_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (live[i]) {
            renamed[i] = kernel->record_count++;
            records[renamed[i]] = records[i];
            hal_ir_record_rename(&records[renamed[i]], renamed);
        }
    }
}

/* Constants of the pool that a record has. `renamed` has room for all. */
static void keep_used_constants(hal_ir_kernel *kernel, uint32_t *renamed)
{
    hal_ir_record *records = (hal_ir_record *)kernel->records;
    uint64_t *constants = (uint64_t *)kernel->constants;
    const uint32_t count = kernel->constant_count;
    memset(renamed, 0, count * sizeof *renamed);
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        if (records[i].opcode == HAL_IR_CONSTANT) {
            renamed[records[i].aux] = 1;
        }
    }
    kernel->constant_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (renamed[i]) {
            renamed[i] = kernel->constant_count++;
            constants[renamed[i]] = constants[i];
        }
    }
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        if (records[i].opcode == HAL_IR_CONSTANT) {
            records[i].aux = renamed[records[i].aux];
        }
    }
}

/* The last pass, in place: what is left of a verified kernel is one as well. */
static hal_status drop_dead_records(hal_ir_kernel *kernel)
{
    const uint32_t records = kernel->record_count, constants = kernel->constant_count;
    uint8_t *live = calloc(records + 1, 1);
    uint32_t *renamed = malloc(((records > constants ? records : constants) + 1) * sizeof *renamed);
    hal_status status = HAL_OK;
    if (!live || !renamed) {
        status = hal_fail(HAL_ERROR_OUT_OF_MEMORY, "legaliser: kernel %s: no host memory",
                          kernel->names + kernel->name);
    } else {
        status = find_live(kernel, live);
    }
    if (status == HAL_OK && memchr(live, 0, records)) {
        keep_live_records(kernel, live, renamed);
        keep_used_constants(kernel, renamed);
    }
    free(live);
    free(renamed);
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
                        "kernel %s: group size: expected at most %u work-items on %s, got %u", name,
                        info->max_group_items, info->name, hal_ir_group_items(ir));
    }
    for (int i = 0; i < 3; i++) {
        if (ir->group_size[i] > info->max_group_size[i]) {
            return hal_fail(HAL_ERROR_UNSUPPORTED,
                            "kernel %s: group size: expected at most %u x %u x %u on %s, got %u x "
                            "%u x %u",
                            name, info->max_group_size[0], info->max_group_size[1],
                            info->max_group_size[2], info->name, ir->group_size[0],
                            ir->group_size[1], ir->group_size[2]);
        }
    }
    if (ir->binding_count > info->max_bindings) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: bindings: expected at most %u on %s, got %u", name,
                        info->max_bindings, info->name, ir->binding_count);
    }
    for (uint32_t i = ir->binding_count; i < ir->memory_count; i++) {
        const uint32_t bytes = hal_type_size(ir->memories[i].type);
        shared_bytes = (shared_bytes + bytes - 1) / bytes * bytes;
        shared_bytes += (uint64_t)ir->memories[i].count * bytes;
    }
    if (shared_bytes > info->shared_bytes) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: shared arrays: expected at most %u bytes on %s, got %llu", name,
                        info->shared_bytes, info->name, (unsigned long long)shared_bytes);
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
                            "kernel %s: memory %s: expected a storage type of %s, got %s", name,
                            ir->names + memory->name, info->name, hal_type_name(memory->type));
        }
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        if (record->type != HAL_TYPE_NONE && !(values & HAL_TYPE_BIT(record->type))) {
            return hal_fail(
                HAL_ERROR_UNSUPPORTED, "kernel %s: %s: expected an arithmetic type of %s, got %s",
                name, hal_ir_opcode_name(record->opcode), info->name, hal_type_name(record->type));
        }
        if (record->opcode == HAL_IR_ATOMIC && hal_type_size(record->type) == 8 &&
            !(info->features & HAL_FEATURE_ATOMIC_64)) {
            return hal_fail(HAL_ERROR_UNSUPPORTED,
                            "kernel %s: atomic: expected a type of 32 bits on %s, got %s", name,
                            info->name, hal_type_name(record->type));
        }
    }
    return HAL_OK;
}

/* Whether constants, scalars and ids come first, as the builder puts them; the parser may not. */
static bool has_leading_first(const hal_ir_kernel *ir)
{
    bool has_others = false;
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const bool is_leading =
            (hal_ir_info_of(ir->records[i].opcode)->traits & HAL_IR_TRAIT_LEADING) != 0;
        if (is_leading && has_others) {
            return false;
        }
        has_others |= !is_leading;
    }
    return true;
}

/* The third pass, where it changes the kernel, in its place. */
static hal_status hide_kernel(const hal_device_info *info, hal_ir_kernel **kernel)
{
    hal_ir_kernel *hidden = NULL;
    if (!hal_ir_needs_hiding(*kernel, info)) {
        return HAL_OK;
    }
    const hal_status status = hal_ir_hide(*kernel, info, &hidden);
    hal_ir_kernel_destroy(*kernel);
    *kernel = hidden;
    return status == HAL_OK ? hal_ir_verify(hidden) : status;
}

/* The first two passes where they change the kernel, else a copy of it. Any INVALID_IR is a fault
 * of a pass. */
static hal_status run_passes(const hal_ir_kernel *ir, const hal_device_info *info,
                             hal_ir_kernel **made)
{
    const bool expands = has_expandable(ir);
    hal_ir_kernel *expanded = NULL;
    hal_status status = expands ? expand_kernel(ir, info, &expanded) : HAL_OK;
    const hal_ir_kernel *from = expands ? expanded : ir;
    if (status == HAL_OK && (hal_ir_needs_lowering(from, info) || !has_leading_first(from))) {
        status = hal_ir_lower(from, info, made);
    } else if (status == HAL_OK && expands) {
        *made = expanded;
        expanded = NULL;
    } else if (status == HAL_OK) {
        return hal_ir_kernel_copy(ir, made);
    }
    if (status == HAL_OK) {
        status = hal_ir_verify(*made);
    }
    hal_ir_kernel_destroy(expanded);
    return status == HAL_ERROR_INVALID_IR
               ? hal_fail(HAL_ERROR_INTERNAL, "legaliser: expected a valid result, got: %s",
                          hal_status_message())
               : status;
}

hal_status hal_ir_legalise(const hal_ir_kernel *ir, const hal_device_info *info,
                           hal_ir_kernel **legal)
{
    hal_ir_kernel *made = NULL;
    *legal = NULL;
    hal_status status = run_passes(ir, info, &made);
    if (status == HAL_OK) {
        status = hide_kernel(info, &made);
    }
    if (status == HAL_OK) {
        status = drop_dead_records(made);
    }
    if (status == HAL_OK) {
        status = check_limits(made, info);
    }
    if (status == HAL_OK) {
        status = check_types(made, info);
    }
    if (status != HAL_OK) {
        hal_ir_kernel_destroy(made);
        return status;
    }
    *legal = made;
    return HAL_OK;
}
