/* The lines of an operand of the class EXACT, rows of A or columns of B, as numbers scaled by a
 * power of two each, and these numbers as residues. */
#ifndef OPS_SRC_GEMM_EXACT_LINES_H
#define OPS_SRC_GEMM_EXACT_LINES_H

#include "moduli.h"

#include "tensor/context.h"

/* Bytes of a step of a line: the residues, and 7 bits of the magnitude. */
#define OPS_EXACT_PLANES (OPS_EXACT_MODULI + 1)
#define OPS_EXACT_MAGNITUDE_BITS 7u

/* What is known of a line: the largest ops_f64_class of its numbers; of those that are not 0 the
 * number of the last one, plus 1, and k less that of the first one. */
enum { OPS_EXACT_LINE_CLASS, OPS_EXACT_LINE_END, OPS_EXACT_LINE_REST, OPS_EXACT_LINE_WORDS };

/* A line of planes has a multiple of so many steps, of which the last ones are 0: lines of bytes
 * that begin at multiples of 16. */
#define OPS_EXACT_STEP_MULTIPLE 16

/* Lines [batch, lines, k] of F64, of which batch * lines, and with OPS_EXACT_PLANES bytes for each
 * step the words, are fewer than 2^31. */
typedef struct ops_exact_lines {
    ops_tensor x;
    hal_buffer *classes; /* U32 [batch, lines, OPS_EXACT_LINE_WORDS] */
    hal_buffer *planes;  /* I8: [OPS_EXACT_PLANES, batch, lines, steps] */
    uint32_t steps;      /* k, rounded up to OPS_EXACT_STEP_MULTIPLE */
    bool is_left;        /* residues are multiplied by the inverses of the moduli */
} ops_exact_lines;

/* Writes the classes; then the planes of lines as whole numbers of `bits` bits, 54 to 61, truncated
 * towards zero: a number of class c in a line of class e is one unit of 2^(e - 1022 - bits) for
 * each. */
hal_status ops_exact_lines_classify(ops_context *context, const ops_exact_lines *lines);
hal_status ops_exact_lines_split(ops_context *context, const ops_exact_lines *lines, uint32_t bits);

#endif
