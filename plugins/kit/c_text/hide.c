/* Which values are hidden from a compiler that folds them wrongly; see `hides` of a dialect. */
#include <kit/c_text/state.h>

#include <stdbool.h>
#include <stdint.h>

static bool is_widened(const hal_ir_kernel *ir, const hal_ir_record *record)
{
    return record->opcode == HAL_IR_CAST && !hal_type_is_float(record->type) &&
           hal_type_size(record->type) == 8 && ir->records[record->a].type == HAL_TYPE_I32;
}

/* A constant of a float that is 0 or NaN. */
static bool is_zero(const hal_ir_kernel *ir, const hal_ir_record *record)
{
    if (record->opcode != HAL_IR_CONSTANT || !hal_type_is_float(record->type)) {
        return false;
    }
    const bool wide = record->type == HAL_TYPE_F64;
    const uint64_t size = ir->constants[record->aux] << (wide ? 0 : 32) << 1;
    const uint64_t infinity = wide ? UINT64_C(0x7ff) << 53 : UINT64_C(0xff) << 56;
    return size == 0 || size > infinity;
}

bool kit_c_is_hidden(const kit_c_state *state, hal_ir_value value)
{
    const uint32_t hides = state->dialect->hides;
    const hal_ir_record *record = &state->ir->records[value];
    const uint32_t zeros =
        KIT_C_HIDE_ZEROS | (record->type == HAL_TYPE_F64 ? (uint32_t)KIT_C_HIDE_EXTREMA : 0);
    return (hides & KIT_C_HIDE_WIDENED && is_widened(state->ir, record)) ||
           (hides & zeros && is_zero(state->ir, record));
}

uint32_t kit_c_hides(const hal_ir_kernel *ir)
{
    uint32_t hides = 0;
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        const uint32_t opcode = record->opcode;
        if (opcode == HAL_IR_FLOOR || opcode == HAL_IR_TRUNC || opcode == HAL_IR_RINT) {
            hides |= KIT_C_HIDE_INTEGRAL;
        }
        if ((opcode == HAL_IR_MIN || opcode == HAL_IR_MAX) && record->type == HAL_TYPE_F64) {
            hides |= KIT_C_HIDE_EXTREMA;
        }
        hides |= opcode == HAL_IR_ABS && hal_type_is_signed(record->type) ? KIT_C_HIDE_NEGATIVE : 0;
        hides |= is_widened(ir, record) ? (uint32_t)KIT_C_HIDE_WIDENED : 0;
        hides |= is_zero(ir, record) ? (uint32_t)KIT_C_HIDE_ZEROS : 0;
    }
    return hides;
}
