/* The last kernel of a product of the class EXACT: elements of C from sums of residues, or from the
 * operands themselves. */
#ifndef OPS_SRC_GEMM_EXACT_FINISH_H
#define OPS_SRC_GEMM_EXACT_FINISH_H

#include "tensor/context.h"

/* Steps of k of one kernel: sums of bytes stay within I32, and its two loops within the limits of
 * devices. */
#define OPS_EXACT_MAX_STEPS 16384

/* C = alpha A B + beta C of a block, of fewer than 2^31 elements. Tensors of F64 of rank 3. */
typedef struct ops_exact_finish {
    ops_tensor a, b, c;    /* [batch, m, k], [batch, n, k], [batch, m, n]; k up to the limit */
    double alpha, beta;    /* C is not read where beta is 0 */
    hal_buffer *a_classes; /* as ops_exact_lines_classify; null: each element from the operands */
    hal_buffer *b_classes;
    hal_buffer *sums; /* I32 [OPS_EXACT_PLANES, batch, m, n]: the planes' products */
    uint32_t bits;    /* of the whole numbers in the planes */
} ops_exact_finish;

hal_status ops_exact_finish_record(ops_context *context, const ops_exact_finish *finish);

#endif
