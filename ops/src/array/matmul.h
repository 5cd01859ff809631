/* Matrix products of arrays: what a node asks for, and what one product passes to the next.
 *
 * Products of the class NORMWISE that follow one another, as dense layers do, pass sums of blocks
 * instead of a matrix: the kernel that combines the products of one layer, with bias and
 * activation, also writes the operands of the next layer's batched product. Whether they do is
 * decided when the second one is planned; only this file and matmul_record.c know of it. */
#ifndef OPS_SRC_ARRAY_MATMUL_H
#define OPS_SRC_ARRAY_MATMUL_H

#include "node.h"

#include <ops/gemm.h>

/* What a product adds to the depth of a first operand that it may read as sums, see node.h. */
#define OPS_LAYER_DEPTH 1u

/* Sums of an array for the product that reads it. */
typedef struct ops_matmul_sums {
    uint32_t levels;         /* 0: there are none */
    bool drops_result;       /* nothing else reads the array, so that only its sums are stored */
    const ops_array *source; /* the array */
    ops_array array;         /* no node of the owner's: its view is that of the sums, without a
                              * buffer until they are recorded */
} ops_matmul_sums;

/* The `function` of MATMUL: the precision and the levels that the caller asks for. */
uint32_t ops_matmul_function(uint32_t precision, uint32_t levels);

/* The options of a node of MATMUL, without epilogue. */
ops_gemm_options ops_matmul_options(const ops_array *matmul);

/* The sums that the second operand holds and the product may use; null: none. */
const ops_gemm_prepared *ops_matmul_prepared(const ops_array *matmul);

/* Whether a node is a product that may read its first operand as sums, if lengths allow it. */
bool ops_matmul_may_take_sums(const ops_array *node);

/* The levels by which a product whose result is `root`, after an epilogue of `input_count` further
 * inputs, reads sums of its first operand and can write those of its result. 0: it does not. */
uint32_t ops_matmul_sums_levels(const ops_array *matmul, const ops_array *root,
                                uint32_t input_count);

/* The buffer-less view of the sums of `result`. */
void ops_matmul_sums_describe(ops_matmul_sums *sums, const ops_array *result);

#endif
