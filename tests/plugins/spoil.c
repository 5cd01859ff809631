/* spoil.c: wrong in one cell; spoil.h says who calls it. */
#include "spoil.h"

static int memory_matches(const spoil_cell *cell, const hal_ir_kernel *kernel,
                          const hal_ir_record *record)
{
    if (kernel->memories[record->aux].type != cell->type ||
        hal_ir_is_shared(kernel, record->aux) != (cell->shared != 0)) {
        return 0;
    }
    if (record->opcode == HAL_IR_ASYNC_COPY) {
        return 1;
    }
    return record->opcode == HAL_IR_ATOMIC
               ? record->flags == cell->kind
               : record->width == cell->width && (record->b != HAL_IR_NONE) == (cell->guarded != 0);
}

static int shares_type(const hal_ir_kernel *kernel, uint32_t type)
{
    for (uint32_t i = kernel->binding_count; i < kernel->memory_count; i++) {
        if (kernel->memories[i].type == type) {
            return 1;
        }
    }
    return 0;
}

static int is_of_cell(const spoil_cell *cell, const hal_ir_kernel *kernel,
                      const hal_ir_record *record)
{
    const hal_ir_record *operand = record->a == HAL_IR_NONE ? record : &kernel->records[record->a];
    switch (record->opcode) {
    case HAL_IR_EQ:
    case HAL_IR_NE:
    case HAL_IR_LT:
    case HAL_IR_LE:
        return operand->type == cell->type;
    case HAL_IR_CAST:
    case HAL_IR_BITCAST:
        return record->type == cell->type && operand->type == cell->from;
    case HAL_IR_NARROW:
    case HAL_IR_MATRIX_MULTIPLY:
        return record->aux == cell->type;
    case HAL_IR_PACK:
        return record->type == cell->type && record->width == cell->width;
    case HAL_IR_EXTRACT:
        return record->type == cell->type && operand->width == cell->width;
    case HAL_IR_LOAD:
    case HAL_IR_STORE:
    case HAL_IR_ATOMIC:
    case HAL_IR_ASYNC_COPY:
        return memory_matches(cell, kernel, record);
    case HAL_IR_SUBGROUP_REDUCE:
        return record->type == cell->type && record->aux == cell->kind;
    case HAL_IR_BARRIER:
        return shares_type(kernel, cell->type);
    case HAL_IR_IF:
    case HAL_IR_ELSE:
        return 1;
    default:
        return record->type == cell->type;
    }
}

/* What becomes a narrow float is an f32 still, whose last bits do not count; a matrix product may
 * be off by its last bits. */
static uint64_t bits_to_flip(const spoil_cell *cell)
{
    const int becomes = cell->opcode == HAL_IR_STORE || cell->opcode == HAL_IR_NARROW ||
                        cell->opcode == HAL_IR_ASYNC_COPY;
    if (cell->opcode == HAL_IR_MATRIX_MULTIPLY) {
        return UINT64_C(1) << 16;
    }
    const int drops = becomes && hal_type_is_narrow_float((hal_type)cell->type);
    return UINT64_C(1) << (drops ? 24 - hal_type_float_format((hal_type)cell->type).digits : 0);
}

void spoil_witness(void *user, const hal_ir_kernel *kernel, const hal_ir_record *record,
                   uint64_t *values, uint32_t width)
{
    spoil_cell *cell = user;
    if (record->opcode == cell->opcode && is_of_cell(cell, kernel, record)) {
        atomic_fetch_add(&cell->hits, 1);
        for (uint32_t i = 0; i < width; i++) {
            values[i] ^= bits_to_flip(cell);
        }
    }
}
