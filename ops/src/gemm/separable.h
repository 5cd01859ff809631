/* Operands of products whose places in memory are a sum of two functions, of the line and of k:
 * windows of images, which no copy makes a matrix (implicit GEMM), and results of several images.
 * Each function is affine in the digits of its number, such as image, row and column of a place. */
#ifndef OPS_SRC_GEMM_SEPARABLE_H
#define OPS_SRC_GEMM_SEPARABLE_H

#include "tensor/scalars.h"

#include <stdbool.h>

#define OPS_GEMM_MAX_DIGITS 4u

/* The number ((d0 * length[1] + d1) * length[2] + d2) ... is at the sum of d_i * stride[i]. */
typedef struct ops_gemm_digits {
    uint32_t count;
    int64_t length[OPS_GEMM_MAX_DIGITS], stride[OPS_GEMM_MAX_DIGITS];
} ops_gemm_digits;

/* Of A or B; a C has `line`, of its columns, alone. Strides are not negative. */
typedef struct ops_gemm_separable {
    ops_gemm_digits line, k;
} ops_gemm_separable;

/* The scalars of digits in a kernel. */
typedef struct ops_gemm_digit_values {
    uint32_t count;
    bool is_unit;  /* the last stride is 1 */
    hal_type type; /* of indices */
    hal_ir_value length[OPS_GEMM_MAX_DIGITS], magic[OPS_GEMM_MAX_DIGITS],
        shift[OPS_GEMM_MAX_DIGITS], stride[OPS_GEMM_MAX_DIGITS];
} ops_gemm_digit_values;

/* Adds a digit after the others, in the last one where both are one; false where there is no room.
 * The product of all lengths has 31 bits. */
bool ops_gemm_digits_add(ops_gemm_digits *digits, int64_t length, int64_t stride);

/* The place of the last number. */
int64_t ops_gemm_digits_reach(const ops_gemm_digits *digits);

/* A number whose trailing zeros tell how many neighbours one access may have at every multiple of
 * their number: strides, and with is_unit the length of the last digit in place of its stride. */
int64_t ops_gemm_digits_bits(const ops_gemm_digits *digits, bool is_unit);

/* Declares `count` digits and puts them, in the same order: with more digits than there are the
 * first ones have one element. `i` and `j` make the names unique. */
void ops_gemm_declare_digits(hal_ir_builder *b, uint32_t i, uint32_t j, uint32_t count,
                             bool is_unit, hal_type type, ops_gemm_digit_values *values);
void ops_gemm_put_digits(ops_block *block, bool index64, uint32_t count,
                         const ops_gemm_digits *digits);

/* The place of a number below 2^31, with two operations and two multiplications for each digit but
 * the first. */
hal_ir_value ops_gemm_digits_place(hal_ir_builder *b, const ops_gemm_digit_values *values,
                                   hal_ir_value number);

#endif
