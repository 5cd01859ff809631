/* The state of one lowering to PTX, and its lines, registers and immediates. */
#ifndef PLUGINS_CUDA_LOWER_TEXT_H
#define PLUGINS_CUDA_LOWER_TEXT_H

#include "capability.h"

#include <hal/ir.h>
#include <kit/text.h>
#include <stdbool.h>

/* Kinds of operands: classes of registers, then immediates and text. */
enum {
    CUDA_PREDICATE, /* %p */
    CUDA_HALF,      /* %h */
    CUDA_WORD,      /* %r */
    CUDA_LONG,      /* %l */
    CUDA_FLOAT,     /* %f */
    CUDA_DOUBLE,    /* %d */
    CUDA_CLASSES,
    CUDA_INTEGER = CUDA_CLASSES, /* signed */
    CUDA_UNSIGNED,
    CUDA_FLOAT_BITS,
    CUDA_DOUBLE_BITS,
    CUDA_TEXT
};

typedef struct cuda_operand {
    uint32_t kind;
    uint64_t bits; /* the register's number, the immediate, or the address of the text */
} cuda_operand;

/* A register with the address of an element, and the block of the control flow that computed it. */
typedef struct cuda_known_address {
    uint32_t memory;
    uint32_t block;  /* serial number; 0: none */
    uint32_t depth;  /* of the block */
    uint32_t number; /* of the register */
} cuda_known_address;

/* An open block of the control flow. */
typedef struct cuda_block {
    uint32_t opener; /* the record that opened it */
    uint32_t serial;
    uint32_t label; /* at its end; a loop has the next number at its start */
} cuda_block;

typedef struct cuda_lowering {
    const hal_ir_kernel *kernel;
    uint32_t features; /* CUDA_FEATURE_* */
    kit_text body;
    uint32_t used[CUDA_CLASSES];                /* registers */
    uint32_t *numbers;                          /* of the first register of each record */
    cuda_known_address *addresses;              /* by the record of the index */
    uint8_t *uniform;                           /* HAL_IR_UNIFORM_* of each record */
    uint32_t base[HAL_IR_MAX_BINDINGS];         /* registers: addresses of the bindings */
    uint32_t shared_offsets[HAL_IR_MAX_SHARED]; /* bytes */
    uint32_t shared_base;                       /* register: address of shared memory */
    uint32_t lane_mask;                         /* register: the lanes of the warp */
    bool short_warp;                            /* the last warp of a group lacks lanes */
    cuda_block blocks[HAL_IR_MAX_DEPTH + 1];
    uint32_t depth, serials, labels; /* of the open blocks; given so far */
    struct cuda_gemm_inputs *inputs; /* of a product: CUDA_GEMM_INPUT_SETS, or null */
    hal_status status;
} cuda_lowering;

/* Appends a line; each $ of the pattern is replaced by the next cuda_operand. */
void cuda_emit(cuda_lowering *l, const char *pattern, ...);
/* Starts a line that is executed where the predicate is true. */
void cuda_emit_guard(cuda_lowering *l, cuda_operand predicate);
cuda_operand cuda_text(const char *text);
cuda_operand cuda_integer(int64_t number);
cuda_operand cuda_unsigned(uint64_t number);

/* The class of registers that values of a type have. */
uint32_t cuda_class(hal_type type);

/* A register that is not used yet. */
cuda_operand cuda_fresh(cuda_lowering *l, uint32_t class);

/* Assigns a record's result as many registers as it is wide. Returns the first. */
cuda_operand cuda_define(cuda_lowering *l, uint32_t record);

/* A value: a register or an immediate. */
cuda_operand cuda_value(const cuda_lowering *l, hal_ir_value value);

/* The same in a register, for instructions that take no immediates. */
cuda_operand cuda_in_register(cuda_lowering *l, hal_ir_value value, uint32_t element);

/* Whether a value has the registers of its operand, and so needs no instruction. */
bool cuda_is_alias(const hal_ir_kernel *kernel, const hal_ir_record *record);

/* Suffixes of instructions: .f32, .s32, ..., and .b32, .b64, .pred. */
cuda_operand cuda_type(hal_type type);
cuda_operand cuda_bits(hal_type type);

#endif
