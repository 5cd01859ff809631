/* Bilinear algorithms of matrix multiplication as tables, and the two kernels around the batched
 * product that each level of one needs. Used by gemm/normwise.c. */
#ifndef OPS_SRC_GEMM_BILINEAR_H
#define OPS_SRC_GEMM_BILINEAR_H

#include "tensor/context.h"

/* Limits of a table, so that one kernel makes all sums of a level. */
#define OPS_BILINEAR_MAX_RANK OPS_MAX_OUTPUTS
#define OPS_BILINEAR_MAX_BLOCKS 4u

/* A is divided into m x k blocks, B into k x n, C into m x n, each numbered by rows. Product r is
 * (sum of u[r][i] A_i) (sum of v[r][j] B_j), and C_l = sum of w[l][r] times product r. */
typedef struct ops_bilinear {
    const char *name;
    uint8_t m, n, k;
    uint8_t rank; /* number of products */
    int8_t u[OPS_BILINEAR_MAX_RANK][OPS_BILINEAR_MAX_BLOCKS];
    int8_t v[OPS_BILINEAR_MAX_RANK][OPS_BILINEAR_MAX_BLOCKS];
    int8_t w[OPS_BILINEAR_MAX_BLOCKS][OPS_BILINEAR_MAX_RANK];
} ops_bilinear;

/* V. Strassen, Gaussian elimination is not optimal, Numerische Mathematik 13 (1969): seven products
 * of 2 x 2 blocks. Its error constant is smaller than that of Winograd's variant, whose fewer
 * additions gain nothing where they are bound by memory. */
extern const ops_bilinear ops_strassen;

typedef enum ops_bilinear_operand { OPS_BILINEAR_A, OPS_BILINEAR_B } ops_bilinear_operand;

/* A tensor for the operands [parts * rank, rows / m, columns / k] (of B: rows / k, columns / n) of
 * the products of matrices [parts, rows, columns]. The lengths are multiples of the numbers of
 * blocks. `sums` keeps the order of axes in memory.
 * Ownership: `sums` holds its buffer's only reference. */
hal_status ops_bilinear_sums_create(ops_context *context, const ops_bilinear *algorithm,
                                    ops_bilinear_operand operand, const ops_tensor *from,
                                    ops_tensor *sums);

/* Computes the operands from the blocks of `from`. */
hal_status ops_bilinear_sums(ops_context *context, const ops_bilinear *algorithm,
                             ops_bilinear_operand operand, const ops_tensor *from,
                             const ops_tensor *sums);

/* What is computed from a block of C as the combination of the products. */
typedef struct ops_bilinear_epilogue {
    const ops_tensor *addend;         /* of C's shape, added first; null: none */
    const ops_expression *expression; /* input 0: the value, 4 and up: `inputs`; null: none */
    const ops_tensor *inputs;         /* broadcast to C's shape */
    uint32_t input_count;
} ops_bilinear_epilogue;

/* Whether one kernel can combine products with such an epilogue: few inputs, none of which is an
 * index. */
int ops_bilinear_can_combine(const ops_bilinear *algorithm, const ops_bilinear_epilogue *epilogue);

/* Combines the products [parts * rank, rows / m, columns / n] to `c`, [parts, rows, columns]. Null
 * `epilogue`: none. */
hal_status ops_bilinear_combine(ops_context *context, const ops_bilinear *algorithm,
                                const ops_tensor *products, const ops_bilinear_epilogue *epilogue,
                                const ops_tensor *c);

#endif
