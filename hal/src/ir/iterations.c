/* Counts the iterations of loops that a work-item of a kernel executes, for devices that limit
 * them. */
#include "iterations.h"

#include "internal.h"

#include <hal/ir_build.h>
#include <stdbool.h>
#include <string.h>

/* Iterations of the loops by which a plugin may compute REM: exact, with 40 bits of the quotient an
 * iteration for F32 and 11 for F64. */
enum { REM_ITERATIONS_F32 = 8, REM_ITERATIONS_F64 = 188 };

/* A block that is open. Of IF and ELSE the larger counts. */
typedef struct block {
    uint32_t opcode;
    uint64_t turns; /* of a FOR */
    uint64_t sum;   /* iterations in the block */
    uint64_t other; /* those in the IF of an ELSE */
} block;

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply_saturated(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* Iterations of a FOR; 1 where its bounds are not known. `scalars` may be null. */
static uint64_t loop_turns(const hal_ir_kernel *kernel, const hal_ir_record *loop,
                           const void *scalars)
{
    const uint32_t operands[3] = {loop->a, loop->b, loop->c};
    int64_t numbers[3];
    for (int i = 0; i < 3; i++) {
        const hal_ir_record *record = &kernel->records[operands[i]];
        uint32_t bits;
        if (record->opcode == HAL_IR_CONSTANT) {
            bits = (uint32_t)kernel->constants[record->aux];
        } else if (record->opcode == HAL_IR_SCALAR && scalars) {
            memcpy(&bits, (const char *)scalars + kernel->scalars[record->aux].offset, sizeof bits);
        } else {
            return 1;
        }
        numbers[i] = loop->type == HAL_TYPE_I32 ? (int32_t)bits : (int64_t)bits;
    }
    const int64_t start = numbers[0], end = numbers[1], step = numbers[2];
    return start >= end || step <= 0 ? 0 : (uint64_t)((end - start - 1) / step + 1);
}

static uint64_t record_iterations(const hal_ir_record *record)
{
    return record->opcode != HAL_IR_REM   ? 0
           : record->type == HAL_TYPE_F32 ? REM_ITERATIONS_F32
           : record->type == HAL_TYPE_F64 ? REM_ITERATIONS_F64
                                          : 0;
}

/* The iterations of a block that ends. */
static uint64_t block_iterations(const block *b)
{
    if (b->opcode == HAL_IR_FOR) {
        return add_saturated(multiply_saturated(b->turns, add_saturated(b->sum, 1)), 1);
    }
    return b->other > b->sum ? b->other : b->sum;
}

uint64_t hal_ir_loop_iterations(const hal_ir_kernel *kernel)
{
    return hal_ir_scalar_iterations(kernel, NULL);
}

bool hal_ir_has_scalar_loops(const hal_ir_kernel *kernel)
{
    bool is_found = false;
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const hal_ir_record *record = &kernel->records[i], *all = kernel->records;
        is_found |= record->opcode == HAL_IR_FOR && (all[record->a].opcode == HAL_IR_SCALAR ||
                                                     all[record->b].opcode == HAL_IR_SCALAR ||
                                                     all[record->c].opcode == HAL_IR_SCALAR);
    }
    return is_found;
}

uint64_t hal_ir_scalar_iterations(const hal_ir_kernel *kernel, const void *scalars)
{
    block blocks[HAL_IR_MAX_DEPTH + 1] = {{0}};
    uint32_t depth = 0;
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const hal_ir_record *record = &kernel->records[i];
        block *open = &blocks[depth];
        switch (record->opcode) {
        case HAL_IR_FOR:
            blocks[++depth] = (block){HAL_IR_FOR, loop_turns(kernel, record, scalars), 0, 0};
            break;
        case HAL_IR_IF:
            blocks[++depth] = (block){.opcode = HAL_IR_IF};
            break;
        case HAL_IR_ELSE:
            *open = (block){.opcode = HAL_IR_ELSE, .other = open->sum};
            break;
        case HAL_IR_END:
            blocks[depth - 1].sum = add_saturated(blocks[depth - 1].sum, block_iterations(open));
            depth--;
            break;
        default:
            open->sum = add_saturated(open->sum, record_iterations(record));
            break;
        }
    }
    return blocks[0].sum;
}
