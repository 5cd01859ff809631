/* Bilinear algorithms of matrix multiplication as tables, and the pass of memory before and after
 * the batched product of their operands. */
#ifndef OPS_SRC_GEMM_NORMWISE_BILINEAR_H
#define OPS_SRC_GEMM_NORMWISE_BILINEAR_H

#include "tensor/context.h"

#include <ops/gemm.h>

/* Limits of a table, and of what a work-item holds: the blocks and operands of all levels. */
#define OPS_BILINEAR_MAX_RANK 7u
#define OPS_BILINEAR_MAX_BLOCKS 4u
#define OPS_BILINEAR_ALL_BLOCKS 16u /* blocks to the power of HAL_GEMM_MAX_LEVELS */

/* A is divided into m x k blocks, B into k x n, C into m x n, each numbered by rows. Product r is
 * (sum of u[r][i] A_i) (sum of v[r][j] B_j), and C_l = sum of w[l][r] times product r. The first
 * coefficient of each row of w that is not 0 is 1. */
typedef struct ops_bilinear {
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

/* One kernel. A work-item reads its place of all blocks of a matrix, or of all products and then
 * combines them to blocks and computes the epilogue; it writes the blocks, the operands of the next
 * batched product, or both. So no sum of a level between is stored, and a dense layer's combination
 * makes the operands of the next layer.
 *
 * Matrices have rank 2 or 3, the last two axes and one batch; lengths are multiples of the numbers
 * of blocks to the power of the levels. Operands and products are [rank^levels, rows, columns] of a
 * block. With two levels, number r1 * rank + r2 is number r2 of what number r1 is divided into. */
typedef struct ops_bilinear_pass {
    uint32_t levels;
    int combines;           /* `from` is products, else a matrix */
    const ops_tensor *from; /* F32 or F64, as all but `inputs` */
    /* The epilogue. */
    const ops_tensor *addend;         /* of C's shape, added first; null: none */
    const ops_expression *expression; /* input 0: the value, 4 and up: `inputs`; null: none */
    const ops_tensor *inputs;         /* of C's shape, with strides of their broadcast */
    uint32_t input_count;
    const ops_tensor *blocks; /* the matrix that is written; null: none */
    const ops_tensor *sums;   /* the operands that are written; null: none */
    ops_bilinear_operand operand;
} ops_bilinear_pass;

/* A tensor without buffer for the operands of a matrix, by rows, or by columns where that is the
 * matrix's order. */
ops_tensor ops_bilinear_sums_layout(uint32_t levels, const ops_tensor *matrix);

/* Whether a pass can compute an epilogue: it reads no index, and the device binds its inputs. */
bool ops_bilinear_can_combine(const hal_device_info *info, const ops_expression *expression,
                              uint32_t input_count);

hal_status ops_bilinear_record(ops_context *context, const ops_bilinear_pass *pass);

#endif
