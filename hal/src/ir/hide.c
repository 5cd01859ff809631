/* Hides constants and widened integers from a compiler that folds them wrongly: each goes through
 * an exclusive or with a 0 that only the running kernel knows. */
#include "rewrite.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct hider {
    hal_ir_rewrite rewrite;
    hal_ir_value *operands;       /* of arithmetic: the values, with constants hidden */
    hal_ir_value zero, zero_long; /* of U32, and of U64 where the device has it */
    uint32_t types;               /* HAL_TYPE_BIT of what is hidden */
} hider;

/* Types of which something is hidden: by integers of their size. */
static uint32_t hidden_types(const hal_device_info *info)
{
    uint32_t types = info->wrong_constants & info->arithmetic_types;
    if (!(info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_U64))) {
        types &=
            HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32);
    }
    return types & ~HAL_TYPE_BIT(HAL_TYPE_BOOL);
}

/* An integer of 32 bits becomes one of 64. */
static bool is_widened(const hal_ir_kernel *ir, const hal_ir_record *record)
{
    return record->opcode == HAL_IR_CAST && hal_type_size(record->type) == 8 &&
           hal_type_size(ir->records[record->a].type) == 4 &&
           !hal_type_is_float(ir->records[record->a].type);
}

/* What a compiler computes when its operands are constants. */
static bool is_foldable(uint32_t opcode)
{
    return (opcode >= HAL_IR_ADD && opcode <= HAL_IR_SELECT) || opcode == HAL_IR_CAST ||
           hal_ir_is_math(opcode);
}

static hal_ir_value hide(hider *h, hal_type type, hal_ir_value value)
{
    hal_ir_builder *b = h->rewrite.to;
    const bool is_long = hal_type_size(type) == 8;
    const hal_ir_value bits = hal_ir_bitcast(b, is_long ? HAL_TYPE_U64 : HAL_TYPE_U32, value);
    const hal_ir_value hidden = hal_ir_xor(b, bits, is_long ? h->zero_long : h->zero);
    return hal_ir_bitcast(b, type, hidden);
}

/* After the leading records, for all blocks: no group has a number above their count. */
static void hide_constants(hider *h, uint32_t leading)
{
    hal_ir_rewrite *r = &h->rewrite;
    const hal_ir_value count = hal_ir_id(r->to, HAL_IR_GROUP_COUNT, 0);
    const hal_ir_value group = hal_ir_id(r->to, HAL_IR_GROUP_ID, 0);
    const hal_ir_value is_above = hal_ir_lt(r->to, count, group);
    h->zero = hal_ir_cast(r->to, HAL_TYPE_U32, is_above);
    if (r->info->arithmetic_types & HAL_TYPE_BIT(HAL_TYPE_U64)) {
        h->zero_long = hal_ir_cast(r->to, HAL_TYPE_U64, is_above);
    }
    for (uint32_t i = 0; i < leading; i++) {
        const hal_ir_record *record = &r->from->records[i];
        const bool hides =
            record->opcode == HAL_IR_CONSTANT && (h->types & HAL_TYPE_BIT(record->type));
        h->operands[i] = hides ? hide(h, record->type, r->values[i]) : r->values[i];
    }
}

static void record_copy(hider *h, uint32_t index)
{
    hal_ir_rewrite *r = &h->rewrite;
    const hal_ir_record *record = &r->from->records[index];
    hal_ir_value *const values = r->values;
    r->values = is_foldable(record->opcode) ? h->operands : values;
    hal_ir_value made = hal_ir_rewrite_copy(r, record);
    r->values = values;
    if ((h->types & HAL_TYPE_BIT(record->type)) && is_widened(r->from, record)) {
        made = hide(h, record->type, made);
    }
    values[index] = h->operands[index] = made;
}

static bool is_leading(const hal_ir_record *record)
{
    return (hal_ir_info_of(record->opcode)->traits & HAL_IR_TRAIT_LEADING) != 0;
}

bool hal_ir_needs_hiding(const hal_ir_kernel *kernel, const hal_device_info *info)
{
    const uint32_t types = hidden_types(info);
    if (types == 0 || (kernel->flags & HAL_IR_FRAGMENT)) {
        return false;
    }
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const hal_ir_record *record = &kernel->records[i];
        if ((types & HAL_TYPE_BIT(record->type)) &&
            (record->opcode == HAL_IR_CONSTANT || is_widened(kernel, record))) {
            return true;
        }
    }
    return false;
}

hal_status hal_ir_hide(const hal_ir_kernel *from, const hal_device_info *info, hal_ir_kernel **made)
{
    hider h = {.types = hidden_types(info)};
    HAL_TRY(hal_ir_rewrite_begin(&h.rewrite, from, info, NULL, NULL));
    h.operands = malloc((from->record_count + 1) * sizeof *h.operands);
    if (!h.operands) {
        hal_ir_rewrite_end(&h.rewrite, NULL);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "legaliser: kernel %s: no host memory",
                        from->names + from->name);
    }
    uint32_t i = 0;
    for (; i < from->record_count && is_leading(&from->records[i]); i++) {
        h.rewrite.values[i] = hal_ir_rewrite_copy(&h.rewrite, &from->records[i]);
    }
    hide_constants(&h, i);
    for (; i < from->record_count; i++) {
        record_copy(&h, i);
    }
    free(h.operands);
    return hal_ir_rewrite_end(&h.rewrite, made);
}
