/* Uniformity of a kernel's values: which are the same for all work-items of a group, and where all
 * of them take the same way. The verifier rejects barriers by it; plugins may use it to keep one
 * copy of a value for a group. Stands alone with ir.h; links nothing.
 *
 * Uniform are constants, scalars, group ids and counts, local ids of a dimension of size 1, pure
 * operations on uniform values, loads from bindings declared for reading only at a uniform index
 * under a uniform guard, variables that only ever get uniform values under uniform control, and
 * the value of a FOR whose bounds and step and whose place are uniform. Everything else is not:
 * loads of memory that may be written, atomics, lane ids and results of subgroup operations. */
#ifndef HAL_IR_UNIFORM_H
#define HAL_IR_UNIFORM_H

#include <hal/ir.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of a record's result. */
enum {
    HAL_IR_UNIFORM_VALUE = 1,  /* its value is the same for all work-items that compute it; of IF
                                * and ELSE: all take the same way */
    HAL_IR_UNIFORM_CONTROL = 2 /* all work-items of the group come to it together */
};

/* How many 32-bit words of scratch the analysis of `record_count` records takes. */
#define HAL_IR_UNIFORM_SCRATCH(record_count) (7u * (size_t)(record_count))

/* Whether the value of a record differs between work-items by itself, whatever its operands. */
static inline int hal_ir_is_divergent_source(const hal_ir_kernel *kernel,
                                             const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_LOCAL_ID:
        return kernel->group_size[record->aux] != 1;
    case HAL_IR_LOAD:
        return hal_ir_is_shared(kernel, record->aux) ||
               kernel->memories[record->aux].access != HAL_ACCESS_READ;
    case HAL_IR_LANE_ID:
    case HAL_IR_INPUT:
    case HAL_IR_ATOMIC:
    case HAL_IR_SHUFFLE:
    case HAL_IR_SHUFFLE_XOR:
    case HAL_IR_SUBGROUP_REDUCE:
    case HAL_IR_MATRIX_MULTIPLY:
        return 1;
    default:
        return 0;
    }
}

/* Notes that when record `from` diverges, record `to` does. Each record has four such edges at
 * most, chained from its source: edge 4 * to + slot. */
static inline void hal_ir_uniform_edge(uint32_t *heads, uint32_t *next, uint32_t from, uint32_t to,
                                       uint32_t slot)
{
    next[4 * to + slot] = heads[from];
    heads[from] = 4 * to + slot;
}

/* Finds the uniformity of every record of a kernel whose structure is sound (every verified kernel;
 * the verifier itself calls it last). `scratch` has HAL_IR_UNIFORM_SCRATCH words, `uniform` a byte
 * for each record. Time linear in the records: divergence spreads once along each edge.
 * Threads: any. Errors: none. */
static inline void hal_ir_uniformity(const hal_ir_kernel *kernel, uint32_t *scratch,
                                     uint8_t *uniform)
{
    const uint32_t count = kernel->record_count;
    uint32_t *heads = scratch;           /* first edge out of each record */
    uint32_t *openers = scratch + count; /* the block's opener for each record; NONE at the top */
    uint32_t *work = scratch + 2 * (size_t)count; /* records whose divergence is not spread yet */
    uint32_t *next = scratch + 3 * (size_t)count;
    uint32_t pending = 0;
    uint32_t open = HAL_IR_NONE;

    for (uint32_t i = 0; i < count; i++) {
        heads[i] = HAL_IR_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_record *record = &kernel->records[i];
        if (hal_ir_closes_block(record->opcode)) {
            if (record->opcode == HAL_IR_ELSE) {
                hal_ir_uniform_edge(heads, next, open, i, 0);
            }
            open = openers[open];
        }
        openers[i] = open;
        hal_ir_value operands[4];
        const uint32_t operand_count = hal_ir_operands(record, operands);
        if (record->opcode == HAL_IR_SET) {
            /* Its way to the VAR needs no edge: the spreading below takes it from the operand. */
            hal_ir_uniform_edge(heads, next, operands[1], i, 1);
        } else {
            for (uint32_t k = 0; k < operand_count; k++) {
                hal_ir_uniform_edge(heads, next, operands[k], i, k);
            }
        }
        if (open != HAL_IR_NONE &&
            (hal_ir_opens_block(record->opcode) || record->opcode == HAL_IR_SET)) {
            hal_ir_uniform_edge(heads, next, open, i, 3);
        }
        uniform[i] = HAL_IR_UNIFORM_VALUE | HAL_IR_UNIFORM_CONTROL;
        if (hal_ir_is_divergent_source(kernel, record)) {
            uniform[i] = HAL_IR_UNIFORM_CONTROL;
            work[pending++] = i;
        }
        if (hal_ir_opens_block(record->opcode)) {
            open = i;
        }
    }
    while (pending > 0) {
        const uint32_t from = work[--pending];
        const hal_ir_record *record = &kernel->records[from];
        if (record->opcode == HAL_IR_SET && (uniform[record->a] & HAL_IR_UNIFORM_VALUE)) {
            uniform[record->a] = HAL_IR_UNIFORM_CONTROL;
            work[pending++] = record->a;
        }
        for (uint32_t edge = heads[from]; edge != HAL_IR_NONE; edge = next[edge]) {
            const uint32_t to = edge / 4;
            if (uniform[to] & HAL_IR_UNIFORM_VALUE) {
                uniform[to] = HAL_IR_UNIFORM_CONTROL;
                work[pending++] = to;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (openers[i] != HAL_IR_NONE && !(uniform[openers[i]] & HAL_IR_UNIFORM_VALUE)) {
            uniform[i] &= (uint8_t)~HAL_IR_UNIFORM_CONTROL;
        }
    }
}

#ifdef __cplusplus
}
#endif
#endif
