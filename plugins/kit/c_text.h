/* IR to the statements of a C-like kernel language. What such languages have in common is written
 * here; where they differ stands in a dialect, a table of words and patterns that a plugin fills.
 *
 * The plugin writes what comes before (pragmas, the kernel's head) and declares m0, m1, ...: a
 * pointer to the elements of each binding, in the binding's memory type;
 * this module appends the shared arrays (m with the numbers that follow) and one statement for each
 * record. Values are called v and the number of their record, constants stand in their place. */
#ifndef KIT_C_TEXT_H
#define KIT_C_TEXT_H

#include "text.h"

/* In a pattern, @ and a letter stand for
 *   @a @b @c @d  operands            @T @A  type of the result, of operand a
 *   @U @V        their unsigned integers of the same size
 *   @f( @u(      opens a bit cast to the type @T, to the type @V
 *   @s @z        literal suffix of the type @A: of a float, of an unsigned integer
 *   @m           bits of type @A less one
 *   @i           aux: a dimension, a number    @k  imm
 *   @P @S @M @N  a place in memory (a pointer), its address space, its element type, the width of
 *                the access (nothing for 1)
 *   @X           the value to be stored        @o  name of an atomic operation */
typedef struct kit_c_dialect {
    /* Names of types: as values have them, and as memory has them (F16 and BF16 as 16 bits). */
    const char *value_types[HAL_TYPE_COUNT];
    const char *memory_types[HAL_TYPE_COUNT];
    const char *global, *shared; /* address spaces */
    const char *bit_cast[2];     /* before and after the type */
    const char *vector[2];       /* begins a vector from elements: before and after the type */
    const char *convert;     /* before the type, when a vector is converted element by element */
    const char *elements[8]; /* of a vector, such as ".x" */
    const char *shared_array[2]; /* before and after the declaration of an array */
    const char *scalar, *local_id, *group_id, *group_count; /* of number @i */
    const char *barrier[2]; /* statement: orders shared memory; bindings too */
    const char *fma;
    const char *multiply_high;
    const char *remainder; /* fmod */
    const char *narrow_f16;
    const char *load_f16, *store_f16; /* of 1, 2, 4 or 8 elements; an expression and a statement */
    const char *load_bf16;            /* of a vector; null: the bits of a vector are shifted */
    const char *atomic[2], *compare_exchange[2]; /* of 32 and of 64 bits */
    const char *atomic_names[HAL_IR_ATOMIC_COUNT];
    /* May be null where the device has no subgroups. */
    const char *lane_id, *lane_count; /* work-items of the own subgroup */
    const char *shuffle, *shuffle_xor;
    uint32_t subgroup_width;
    const char *matrix_multiply;              /* @i: the type of the elements; null: none */
    const char *fast_math[HAL_IR_MATH_COUNT]; /* for HAL_IR_FAST; null: none */
} kit_c_dialect;

/* Appends the statements of a verified and legalised kernel, indented by one level.
 * Threads: any, with a text of their own.
 * Errors, with their sentence given to host->fail: UNSUPPORTED for an operation that the dialect
 * lacks, naming it; OUT_OF_MEMORY. */
hal_status kit_c_lower(const hal_host *host, const kit_c_dialect *dialect, const hal_ir_kernel *ir,
                       kit_text *text);

#endif
