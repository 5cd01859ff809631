/* What the files of the lowering share: registers, operands and the text so far. */
#ifndef HALYARD_CUDA_LOWER_STATE_H
#define HALYARD_CUDA_LOWER_STATE_H

#include "lower.h"

/* Kinds of operands: registers by class, in the order of the letters that name them, then
 * immediates and pieces of text. */
enum {
    CUDA_PREDICATE, /* %p */
    CUDA_HALF,      /* %h */
    CUDA_WORD,      /* %r */
    CUDA_LONG,      /* %l */
    CUDA_FLOAT,     /* %f */
    CUDA_DOUBLE,    /* %d */
    CUDA_CLASSES,
    CUDA_INTEGER = CUDA_CLASSES, /* a signed number */
    CUDA_UNSIGNED,
    CUDA_FLOAT_BITS,
    CUDA_DOUBLE_BITS,
    CUDA_TEXT
};

typedef struct cuda_operand {
    uint32_t kind;
    uint64_t bits; /* the register's number, the immediate, or the address of the text */
} cuda_operand;

/* The address of an element that was computed already, and the block that it was computed in. */
typedef struct cuda_address {
    uint32_t memory;
    uint32_t block; /* serial number; 0: none */
    uint32_t depth;
    uint32_t number; /* of the register */
} cuda_address;

typedef struct cuda_block {
    uint32_t opener; /* the record */
    uint32_t serial;
    uint32_t label;
} cuda_block;

typedef struct cuda_lowering {
    const hal_ir_kernel *kernel;
    uint32_t sm;
    kit_text body;
    uint32_t used[CUDA_CLASSES];
    uint32_t *numbers;       /* of each record's first register */
    cuda_address *addresses; /* by the record of the index */
    uint8_t *uniform;
    uint32_t base[HAL_IR_MAX_BINDINGS]; /* registers with the bindings' addresses */
    uint32_t shared_offsets[HAL_IR_MAX_SHARED];
    uint32_t shared_base;    /* register */
    uint32_t member_mask;    /* register with the lanes of the subgroup */
    uint32_t short_subgroup; /* 1: the last one lacks lanes */
    cuda_block blocks[HAL_IR_MAX_DEPTH + 1];
    uint32_t depth, serials, labels;
    hal_status status;
} cuda_lowering;

/* ---- Text (lower_text.c) ---- */

/* Appends a line; each $ takes the next operand, of type cuda_operand. */
void cuda_emit(cuda_lowering *l, const char *pattern, ...);
/* Begins a line that is carried out where the predicate is true. */
void cuda_guard(cuda_lowering *l, cuda_operand predicate);
cuda_operand cuda_text(const char *text);
cuda_operand cuda_integer(int64_t number);
cuda_operand cuda_unsigned(uint64_t number);

/* ---- Registers (lower_text.c) ---- */

/* The class of a type's values, and a fresh register of a class. */
uint32_t cuda_class(hal_type type);
cuda_operand cuda_fresh(cuda_lowering *l, uint32_t class);

/* The registers of a record's result: as many as it is wide, the first one is given. */
cuda_operand cuda_define(cuda_lowering *l, uint32_t record);

/* Element `element` of a value: a register or an immediate. */
cuda_operand cuda_element(const cuda_lowering *l, hal_ir_value value, uint32_t element);
cuda_operand cuda_value(const cuda_lowering *l, hal_ir_value value);

/* The same in a register, where an instruction takes no immediates. */
cuda_operand cuda_in_register(cuda_lowering *l, hal_ir_value value, uint32_t element);

/* Whether a value needs no instruction, because it is another one under a new type or name. */
int cuda_is_alias(const hal_ir_kernel *kernel, const hal_ir_record *record);

/* Type suffixes: .f32, .s32, ..., and .b32, .b64, .pred. */
cuda_operand cuda_type(hal_type type);
cuda_operand cuda_bits(hal_type type);

/* ---- Records, by family ---- */

int cuda_lower_arithmetic(cuda_lowering *l, uint32_t index); /* lower_arithmetic.c */
int cuda_lower_convert(cuda_lowering *l, uint32_t index);    /* lower_convert.c */
int cuda_lower_memory(cuda_lowering *l, uint32_t index);     /* lower_memory.c */
int cuda_lower_control(cuda_lowering *l, uint32_t index);    /* lower_control.c */
int cuda_lower_subgroup(cuda_lowering *l, uint32_t index);   /* lower_subgroup.c */
int cuda_lower_math(cuda_lowering *l, uint32_t index);       /* lower_math.c */

/* ---- Between the families ---- */

/* The lesser or greater of two floats, NaN if either is (lower_arithmetic.c). */
void cuda_extreme(cuda_lowering *l, hal_type type, int lesser, cuda_operand result, cuda_operand a,
                  cuda_operand b);

/* Half-width floats as memory has them: two of them in a word, `high` may be absent (kind
 * CUDA_TEXT); and element 0 or 1 of a word as f32 (lower_convert.c). */
void cuda_pack_halves(cuda_lowering *l, hal_type type, cuda_operand word, cuda_operand low,
                      cuda_operand high);
void cuda_unpack_half(cuda_lowering *l, hal_type type, cuda_operand result, cuda_operand word,
                      uint32_t element);

/* The remainder of floats, as C's fmod (lower_math.c). */
void cuda_lower_remainder(cuda_lowering *l, uint32_t index);

/* The registers that subgroup operations use, where the kernel has any (lower_subgroup.c). */
void cuda_prepare_subgroups(cuda_lowering *l);

#endif
