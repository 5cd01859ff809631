/* spoil.h: a lowering that is wrong in one cell of the table that hal-conformance --table prints:
 * an opcode of a type, in one kind of memory. A part of the mock plugin, whose kernels the kit's
 * interpreter runs; a test says which cell by mock_state.spoil. */
#ifndef TESTS_PLUGINS_SPOIL_H
#define TESTS_PLUGINS_SPOIL_H

#include <hal/ir.h>
#include <stdatomic.h>

typedef struct spoil_cell {
    uint32_t opcode; /* 0: nothing is spoiled */
    uint32_t type;   /* of the value or, of comparisons, of what is compared; or of the memory */
    uint32_t from;   /* of conversions; else 0 */
    uint32_t width;  /* of vectors; else 0 */
    uint32_t kind;   /* of atomics and reductions; else 0 */
    int guarded;
    int shared;            /* memory: shared, else a binding */
    _Atomic uint32_t hits; /* how often a record of the cell ran */
} spoil_cell;

/* A kit_witness; `user` is the cell. Flips the lowest bit that counts of what the records of the
 * cell give; conditions are turned round, an ELSE and a BARRIER are passed by. */
void spoil_witness(void *user, const hal_ir_kernel *kernel, const hal_ir_record *record,
                   uint64_t *values, uint32_t width);

#endif
