/* Where the records of kernels were built, for messages: by the hash of the kernel as it was built.
 * Kept until the process ends, like the strings themselves. */
#ifndef HAL_SRC_IR_POSITION_H
#define HAL_SRC_IR_POSITION_H

#include <hal/ir.h>
#include <stdbool.h>

typedef struct hal_ir_position {
    const char *file; /* null: not known */
    uint32_t line;
} hal_ir_position;

/* Keeps a copy of the positions of a kernel's records; those of an equal kernel stay. Without host
 * memory nothing is kept. Threads: any. */
void hal_ir_positions_keep(const hal_ir_kernel *kernel, const hal_ir_position *positions);

/* The position of a record of the kernel with that hash. Threads: any. */
hal_ir_position hal_ir_position_find(const uint64_t hash[2], uint32_t record);

#endif
