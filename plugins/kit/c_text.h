/* IR to the statements of a C-like kernel language. What such languages have in common is written
 * here; where they differ stands in a dialect, a table of words and patterns that a plugin fills.
 *
 * The plugin writes what comes before (pragmas, the kernel's head) and declares m0, m1, ...: a
 * pointer to the elements of each binding, in the binding's memory type; this module appends the
 * shared arrays (m with the numbers that follow) and one statement for each record. Values are
 * called v and the number of their record; constants are written where they are used. */
#ifndef PLUGINS_KIT_C_TEXT_H
#define PLUGINS_KIT_C_TEXT_H

#include "text.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the compiler of the language has to keep, by options or pragmas where it is not the default:
 *  - products and sums are not contracted to fma; no other arithmetic is rearranged;
 *  - signed integers wrap (the step of a FOR), and >> of a signed integer copies the sign;
 *  - an access has any type: memory that was written as another type is read as its bits;
 *  - sqrt, floor, trunc, rint and popcount exist for all types of values that they take.
 *
 * In a pattern, @ and a letter stand for
 *   @a @b @c @d  operands            @T @A  type of the result, of operand a
 *   @U @V        their unsigned integers of the same size
 *   @f( @u(      opens a bit cast to the type @T, to the type @V
 *   @s           literal suffix of the type @A, a float
 *   @m           bits of type @A less one
 *   @i           aux: a dimension, a number    @k  imm
 *   @P @S @M @N  a place in memory (a pointer), its address space, its element type, the width of
 *                the access (nothing for 1)
 *   @X           the value to be stored        @o  name of an atomic operation
 * The comment of a pattern lists its letters; "types" are T U A V f u s m. A letter that the field
 * does not have is refused, as is a null word that the kernel needs. Words without letters are
 * copied as they are. plugins/example_c/lower.c is a complete dialect: plain C. */
typedef struct kit_c_dialect {
    /* Names of types: as values have them, and as memory has them (F16 and BF16 as 16 bits). A
     * vector's name is that of its elements and the width: float4. */
    const char *value_types[HAL_TYPE_COUNT];
    const char *memory_types[HAL_TYPE_COUNT];
    const char *global, *shared; /* address spaces; may be empty */
    const char *bit_cast[2];     /* before and after the type: "as_", "(" */
    const char *vector[2];       /* begins a vector from elements: before and after the type */
    const char *convert;     /* before the type, when a vector is converted element by element */
    const char *elements[8]; /* of a vector, such as ".x" */
    const char *shared_array[2]; /* before and after the declaration of an array */
    const char *scalar;          /* i, types: scalar of the dispatch, number @i */
    const char *local_id, *group_id, *group_count; /* i: dimension @i */
    const char *barrier[2];    /* statement: orders shared memory; bindings too */
    const char *fma;           /* abc, types: rounds once */
    const char *multiply_high; /* ab, types: the high half of the product */
    const char *remainder;     /* ab, types: C fmod, exact */
    const char *narrow_f16;    /* a, types: a float rounded to F16, as a float */
    /* PSMN, PSMNX: of 1, 2, 4 or 8 elements; an expression and a statement; null: the plugin does
     * not claim to store F16. */
    const char *load_f16, *store_f16;
    const char *load_bf16; /* PSMN: of a vector; null: the bits of a vector are shifted */
    /* As narrow_f16 (a, types) and store_f16 (PSMNX); null: rounded by integer operations. */
    const char *narrow_bf16, *store_bf16;
    /* cPSMTUo and cdPSMTUo, of 32 and of 64 bits: the value before; @d is what is compared with. */
    const char *atomic[2], *compare_exchange[2];
    const char *atomic_names[HAL_IR_ATOMIC_COUNT]; /* for @o */
    /* May be null where the device has no subgroups. */
    const char *lane_id, *lane_count; /* work-items of the own subgroup; no letters */
    const char *shuffle;              /* ab, types: @a of lane @b */
    const char *shuffle_xor;          /* ak, types: @a of the lane whose number differs by @k */
    uint32_t subgroup_width;
    const char *matrix_multiply; /* abci, types; @i: the type of the elements; null: none */
    const char *fast_math[HAL_IR_MATH_COUNT]; /* ab, types: for HAL_IR_FAST; null: none */
    /* Asynchronous copies; may be null where the device does not claim them. The name of a
     * function, to which the bytes of the copy are appended (1, 2, 4, 8 or 16), of a pointer to
     * shared memory, one to a binding and a BOOL: false writes zeros and reads nothing. Statements
     * that close a set of copies, and that wait (k: sets that may be in flight). */
    const char *async_copy, *async_commit, *async_wait;
    /* KIT_C_HIDE_*: values that the compiler must not know, as it folds them wrongly. Their bits
     * are combined with `hidden`, a uint of 0 that it does not know and the plugin declares. */
    uint32_t hides;
} kit_c_dialect;

/* What a dialect hides. */
enum {
    KIT_C_HIDE_INTEGRAL = 1, /* the operand of floor, trunc and rint, where it is of constants */
    KIT_C_HIDE_WIDENED = 2,  /* a conversion from I32 to 64 bits */
    KIT_C_HIDE_ZEROS = 4,    /* constants of floats that are 0 or NaN */
    KIT_C_HIDE_EXTREMA = 8,  /* those of F64, in kernels with min or max of F64 */
    KIT_C_HIDE_NEGATIVE = 16, /* the negative of an integer in its absolute value */
};

/* Names of types that OpenCL C and Metal have in common; F64, and F16 in memory, differ. */
#define KIT_C_VALUE_TYPES                                                       \
    [HAL_TYPE_BOOL] = "bool", [HAL_TYPE_I8] = "int", [HAL_TYPE_U8] = "uint",    \
    [HAL_TYPE_I16] = "int", [HAL_TYPE_U16] = "uint", [HAL_TYPE_I32] = "int",    \
    [HAL_TYPE_U32] = "uint", [HAL_TYPE_I64] = "long", [HAL_TYPE_U64] = "ulong", \
    [HAL_TYPE_F16] = "float", [HAL_TYPE_BF16] = "float", [HAL_TYPE_F32] = "float"
#define KIT_C_MEMORY_TYPES                                                       \
    [HAL_TYPE_BOOL] = "uchar", [HAL_TYPE_I8] = "char", [HAL_TYPE_U8] = "uchar",  \
    [HAL_TYPE_I16] = "short", [HAL_TYPE_U16] = "ushort", [HAL_TYPE_I32] = "int", \
    [HAL_TYPE_U32] = "uint", [HAL_TYPE_I64] = "long", [HAL_TYPE_U64] = "ulong",  \
    [HAL_TYPE_BF16] = "ushort", [HAL_TYPE_F32] = "float"

/* Of KIT_C_HIDE_*, those that may meet a value of the kernel. Threads: any. */
uint32_t kit_c_hides(const hal_ir_kernel *ir);

/* Appends the statements of a verified and legalised kernel, indented by one level.
 * Threads: any, with a text of their own.
 * Errors, with their message given to host->fail: UNSUPPORTED for an operation that the dialect
 * lacks, naming it, and for a field that is wrong or missing, naming that; OUT_OF_MEMORY. */
hal_status kit_c_lower(const hal_host *host, const kit_c_dialect *dialect, const hal_ir_kernel *ir,
                       kit_text *text);

#ifdef __cplusplus
}
#endif

#endif
