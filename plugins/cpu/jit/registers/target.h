/* The parts of the compiler that depend on the instruction set: AVX-512 or AVX2. */
#ifndef PLUGINS_CPU_JIT_REGISTERS_TARGET_H
#define PLUGINS_CPU_JIT_REGISTERS_TARGET_H

#include "jit/program/program.h"
#include "jit/encoder/x86_encoder.h"

typedef struct jit_state jit_state;

/* The parts that depend on the instruction set. Values of type BOOL are in mask registers, or in
 * vectors whose lanes have 32 bits, all 0 or all 1. */
typedef struct jit_target {
    uint8_t length, lanes;  /* of a vector: X86_ZMM or X86_YMM; how many of 32 bits it has */
    uint8_t vectors, masks; /* registers for values; no masks: they are in vectors */
    uint8_t most_parts;
    uint8_t mask;         /* a register that accesses take for a mask */
    uint8_t mask_from;    /* bytes of the least elements whose accesses can have a mask */
    bool has_apart_loads; /* see jit/emission/apart.h */
    uint32_t reserved;    /* vector registers that do not exist, as bits */
    bool (*cast_is_supported)(hal_type from, hal_type to);
    void (*emit_float_least)(jit_state *jit, const jit_node *node);
    void (*emit_shift)(jit_state *jit, const jit_node *node);
    void (*emit_integer)(jit_state *jit, const jit_node *node); /* neither SHL, SHR nor MULHI */
    void (*emit_bool)(jit_state *jit, const jit_node *node);
    void (*emit_comparison)(jit_state *jit, const jit_node *node);
    void (*emit_select)(jit_state *jit, const jit_node *node); /* and BLEND */
    void (*emit_cast)(jit_state *jit, const jit_node *node);
    /* To nearest even; NaN stays NaN. The result is in the lower half of each lane of d. */
    void (*emit_bf16_bits)(jit_state *jit, uint32_t d, uint32_t a);
    /* Words of 16 bits side by side where the mask is true; a load sets the others to 0. Null: all
     * instructions take masks. */
    void (*words_load)(jit_state *jit, uint32_t words, x86_operand from, uint32_t mask);
    void (*words_store)(jit_state *jit, uint32_t words, x86_operand to, uint32_t mask);
    /* The low 1 or 2 bytes of each lane, where `mask` is true unless that is 0; TEMPORARY_C may be
     * `a`. */
    void (*narrow_store)(jit_state *jit, uint32_t bytes, uint32_t a, x86_operand to, uint32_t mask);
    /* The low 2 bytes of each lane side by side, in temporary A. */
    void (*low_words)(jit_state *jit, uint32_t words, uint32_t a);
    /* A mask for gathering elements, which may be in temporary B. */
    uint32_t (*element_mask)(jit_state *jit, hal_type type, uint32_t mask);
    /* Elements of 4 or 8 bytes where the mask is true; a load sets the others to 0. */
    void (*masked_load)(jit_state *jit, hal_type type, uint32_t d, x86_operand from, uint32_t mask);
    void (*masked_store)(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask);
    /* Elements of 4 or 8 bytes to signed indices of 32 bits, where the mask, which is lost, is
     * true. Of lanes with one index the last one stays. */
    void (*scatter)(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask);
    void (*bool_copy)(jit_state *jit, uint32_t d, uint32_t a);
    void (*bool_set)(jit_state *jit, uint32_t d, bool value);
    void (*bool_both)(jit_state *jit, uint32_t d, uint32_t a, uint32_t b);
    /* In memory a lane is a byte, 0 or not; in the frame it is as in the register. */
    void (*bool_load)(jit_state *jit, uint32_t d, x86_operand from);
    void (*bool_store)(jit_state *jit, uint32_t a, x86_operand to);
    void (*bool_spill)(jit_state *jit, uint32_t a, x86_operand to);
    void (*bool_fill)(jit_state *jit, uint32_t d, x86_operand from);
    /* Lanes where the mask is false become 0. */
    void (*lanes_clear)(jit_state *jit, hal_type type, uint32_t d, uint32_t mask);
    /* Sets the flag EQUAL if no lane is true. */
    void (*bool_test)(jit_state *jit, uint32_t a);
    /* The low 32 bits of a general-purpose register to all lanes. */
    void (*general_broadcast)(jit_state *jit, uint32_t d, uint32_t general);
} jit_target;

extern const jit_target jit_avx512; /* jit/emission/avx512.c */
extern const jit_target jit_avx2;   /* jit/emission/avx2.c */

#endif
