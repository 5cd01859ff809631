/* The state of one lowering to SPIR-V; types, constants, and operations on results. */
#ifndef PLUGINS_VULKAN_LOWER_TYPES_H
#define PLUGINS_VULKAN_LOWER_TYPES_H

#include "lower/spirv_writer.h"
#include "lower/target.h"

#include <hal/ir.h>
#include <hal/status.h>
#include <stdbool.h>
#include <stddef.h>

enum { LOWER_MAX_INTERFACE = 16 + 4 * HAL_IR_MAX_SHARED };

/* An open FOR, IF or ELSE. */
typedef struct lower_block {
    uint32_t opcode;
    uint32_t record; /* the FOR's */
    uint32_t header; /* labels */
    uint32_t next;
    uint32_t merge;
    uint32_t next_value;  /* of a FOR: its value plus the step */
    uint32_t branch_word; /* index in the body of the target of an IF's branch, which ELSE sets */
} lower_block;

/* An access of some elements: `count` pieces of `type`. Elements below 32 bits are accessed in
 * words of 32 bits where there are enough of them. */
typedef struct lower_access {
    uint32_t type;  /* of a piece in memory */
    uint32_t count; /* pieces: a vector when more than 1 */
    uint32_t bytes; /* of a piece */
} lower_access;

enum { LOWER_CLASSES = 4 }; /* accesses of 1, 2, 4 and 8 elements */

/* A shared array. With several layouts it has a variable for each class of accesses, all at one
 * offset; else one variable, of the narrowest class, and a wider access is made in parts. */
typedef struct lower_shared {
    uint32_t variables[LOWER_CLASSES];
    uint32_t narrowest;
    uint32_t widest;
    uint32_t offset;
} lower_shared;

/* An address computed before, base + index * size, which is reused where it dominates. */
typedef struct lower_address {
    uint32_t memory, index, id, depth, block;
} lower_address;

enum { LOWER_ADDRESSES = 64 };

typedef struct lower {
    spirv_writer writer;
    const hal_ir_kernel *ir;
    const spirv_target *target;
    hal_status status;
    char *problem;
    uint32_t problem_bytes;

    uint32_t *ids;   /* of each record its result; of vectors the first of their `parts` */
    uint32_t *parts; /* the results of vectors' elements */
    uint32_t part_count;
    uint32_t label; /* of the SPIR-V block that is being written */
    uint32_t depth;
    lower_block blocks[HAL_IR_MAX_DEPTH];
    uint32_t block_serial;                      /* of the last block of the IR */
    uint32_t open_blocks[HAL_IR_MAX_DEPTH + 1]; /* serials of the open ones */

    uint32_t glsl; /* the imported set; 0 until it is used */
    uint32_t interface[LOWER_MAX_INTERFACE];
    uint32_t interface_count;
    uint32_t inputs[64]; /* variables of built-in inputs, by built-in */
    uint32_t arguments;  /* pointer to the block of arguments */
    uint32_t arguments_storage;
    uint32_t hidden_zero;                   /* a word of 0 that the driver does not know; 0: none */
    uint32_t hidden_long;                   /* the same of 64 bits */
    uint32_t bindings[HAL_IR_MAX_BINDINGS]; /* addresses */
    lower_shared shared[HAL_IR_MAX_SHARED];
    uint32_t views;          /* 1: shared arrays have several layouts */
    uint32_t private_access; /* 1: work-items of a group do not communicate through bindings */
    uint32_t flat;           /* 1: the group has one dimension, for subgroups */
    lower_address addresses[LOWER_ADDRESSES];
    uint32_t matrices[2][SPV_MATRIX_USES]; /* variables: of bf16 and sums, of f16; 0: none yet */
} lower;

/* Records the first failure. */
void lower_fail(lower *l, hal_status status, const char *format, ...) HAL_PRINTF(3, 4);

/* Types, which the first use declares with the capabilities that they need. Integers
 * have no sign in SPIR-V. */
uint32_t lower_bool(lower *l);
uint32_t lower_int(lower *l, uint32_t bits);
uint32_t lower_float(lower *l, uint32_t bits);
uint32_t lower_type(lower *l, hal_type type);
uint32_t lower_vector(lower *l, uint32_t type, uint32_t count);
uint32_t lower_pointer(lower *l, uint32_t storage, uint32_t type);

/* Constants: of an integer type of 32 or 64 bits; of any value type, by its bits. */
uint32_t lower_u32(lower *l, uint32_t value);
uint32_t lower_u64(lower *l, uint64_t value);
uint32_t lower_number(lower *l, uint32_t bits, uint64_t value);
uint32_t lower_constant(lower *l, hal_type type, uint64_t bits);

/* The same value, of which the driver does not know how it came about; on targets that hide one of
 * `what` (SPIRV_HIDES_*). */
uint32_t lower_hide(lower *l, uint32_t what, hal_type type, uint32_t value);

/* Operations on results. */
uint32_t lower_bits(lower *l, hal_type type, uint32_t value);     /* a value's bits as an integer */
uint32_t lower_from_bits(lower *l, hal_type type, uint32_t bits); /* and back */
uint32_t lower_glsl(lower *l, uint32_t instruction, uint32_t type, const uint32_t *operands,
                    uint32_t count);
uint32_t lower_exact(lower *l, uint32_t id); /* decorates with NoContraction; returns id */
uint32_t lower_select(lower *l, uint32_t type, uint32_t condition, uint32_t yes, uint32_t no);
uint32_t lower_input(lower *l, uint32_t built_in, uint32_t components, uint32_t component);

#endif
