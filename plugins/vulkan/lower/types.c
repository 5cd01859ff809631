/* Types, constants and single instructions. */
#include "lower/types.h"

#include <stdarg.h>
#include <stdio.h>

uint32_t lower_bool(lower *l)
{
    return spirv_unique(&l->writer, SPV_OP_TYPE_BOOL, 0, NULL, 0);
}

/* Below 32 bits the storage capabilities come with the accesses, see lower/memory.c. */
uint32_t lower_int(lower *l, uint32_t bits)
{
    return UNIQUE(&l->writer, SPV_OP_TYPE_INT, 0, bits, 0);
}

uint32_t lower_float(lower *l, uint32_t bits)
{
    if (bits != 32) {
        spirv_capability(&l->writer, bits == 64 ? SPV_CAPABILITY_FLOAT64 : SPV_CAPABILITY_FLOAT16);
    }
    return UNIQUE(&l->writer, SPV_OP_TYPE_FLOAT, 0, bits);
}

uint32_t lower_type(lower *l, hal_type type)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        return lower_bool(l);
    case HAL_TYPE_I32:
    case HAL_TYPE_U32:
        return lower_int(l, 32);
    case HAL_TYPE_I64:
    case HAL_TYPE_U64:
        return lower_int(l, 64);
    case HAL_TYPE_F32:
        return lower_float(l, 32);
    case HAL_TYPE_F64:
        return lower_float(l, 64);
    default:
        lower_fail(l, HAL_ERROR_UNSUPPORTED,
                   "lowering to SPIR-V: expected a value type, got type %u", (unsigned)type);
        return lower_int(l, 32);
    }
}

uint32_t lower_vector(lower *l, uint32_t type, uint32_t count)
{
    return count == 1 ? type : UNIQUE(&l->writer, SPV_OP_TYPE_VECTOR, 0, type, count);
}

uint32_t lower_pointer(lower *l, uint32_t storage, uint32_t type)
{
    return UNIQUE(&l->writer, SPV_OP_TYPE_POINTER, 0, storage, type);
}

uint32_t lower_u32(lower *l, uint32_t value)
{
    return UNIQUE(&l->writer, SPV_OP_CONSTANT, lower_int(l, 32), value);
}

uint32_t lower_u64(lower *l, uint64_t value)
{
    return UNIQUE(&l->writer, SPV_OP_CONSTANT, lower_int(l, 64), (uint32_t)value,
                  (uint32_t)(value >> 32));
}

uint32_t lower_number(lower *l, uint32_t bits, uint64_t value)
{
    return bits == 64 ? lower_u64(l, value) : lower_u32(l, (uint32_t)value);
}

uint32_t lower_constant(lower *l, hal_type type, uint64_t bits)
{
    if (type == HAL_TYPE_BOOL) {
        return spirv_unique(&l->writer, bits ? SPV_OP_CONSTANT_TRUE : SPV_OP_CONSTANT_FALSE,
                            lower_bool(l), NULL, 0);
    }
    if (hal_type_size(type) == 8) {
        return UNIQUE(&l->writer, SPV_OP_CONSTANT, lower_type(l, type), (uint32_t)bits,
                      (uint32_t)(bits >> 32));
    }
    return UNIQUE(&l->writer, SPV_OP_CONSTANT, lower_type(l, type), (uint32_t)bits);
}

uint32_t lower_bits(lower *l, hal_type type, uint32_t value)
{
    if (!hal_type_is_float(type)) {
        return value;
    }
    return RESULT(&l->writer, SPV_OP_BITCAST, lower_int(l, 8 * hal_type_size(type)), value);
}

uint32_t lower_from_bits(lower *l, hal_type type, uint32_t bits)
{
    if (!hal_type_is_float(type)) {
        return bits;
    }
    return RESULT(&l->writer, SPV_OP_BITCAST, lower_type(l, type), bits);
}

uint32_t lower_hide(lower *l, uint32_t what, hal_type type, uint32_t value)
{
    const uint32_t width = 8 * hal_type_size(type);
    if (!(l->target->hides & what) || l->hidden_zero == 0 || type == HAL_TYPE_BOOL) {
        return value;
    }
    const uint32_t hidden =
        RESULT(&l->writer, SPV_OP_BITWISE_XOR, lower_int(l, width), lower_bits(l, type, value),
               width == 64 ? l->hidden_long : l->hidden_zero);
    return lower_from_bits(l, type, hidden);
}

uint32_t lower_glsl(lower *l, uint32_t instruction, uint32_t type, const uint32_t *operands,
                    uint32_t count)
{
    uint32_t all[5] = {l->glsl, instruction};
    for (uint32_t i = 0; i < count; i++) {
        all[2 + i] = operands[i];
    }
    return spirv_result(&l->writer, SPV_OP_EXT_INST, type, all, count + 2);
}

uint32_t lower_exact(lower *l, uint32_t id)
{
    EMIT(&l->writer, SPIRV_DECORATIONS, SPV_OP_DECORATE, id, SPV_DECORATION_NO_CONTRACTION);
    return id;
}

uint32_t lower_select(lower *l, uint32_t type, uint32_t condition, uint32_t yes, uint32_t no)
{
    return RESULT(&l->writer, SPV_OP_SELECT, type, condition, yes, no);
}

uint32_t lower_input(lower *l, uint32_t built_in, uint32_t components, uint32_t component)
{
    const uint32_t type = lower_vector(l, lower_int(l, 32), components);
    uint32_t *variable = &l->inputs[built_in];
    if (*variable == 0) {
        *variable = spirv_id(&l->writer);
        EMIT(&l->writer, SPIRV_DECORATIONS, SPV_OP_DECORATE, *variable, SPV_DECORATION_BUILT_IN,
             built_in);
        EMIT(&l->writer, SPIRV_DECLARATIONS, SPV_OP_VARIABLE,
             lower_pointer(l, SPV_STORAGE_INPUT, type), *variable, SPV_STORAGE_INPUT);
        l->interface[l->interface_count++] = *variable;
    }
    const uint32_t all = RESULT(&l->writer, SPV_OP_LOAD, type, *variable);
    return components == 1
               ? all
               : RESULT(&l->writer, SPV_OP_COMPOSITE_EXTRACT, lower_int(l, 32), all, component);
}

void lower_fail(lower *l, hal_status status, const char *format, ...)
{
    va_list arguments;
    if (l->status != HAL_OK) {
        return;
    }
    l->status = status;
    va_start(arguments, format);
    vsnprintf(l->problem, l->problem_bytes, format, arguments);
    va_end(arguments);
}
