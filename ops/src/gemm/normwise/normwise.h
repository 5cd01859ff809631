/* Matrix products of the class HAL_GEMM_NORMWISE by levels of Strassen's algorithm: the one header
 * of this folder for the others. The planner of products calls ops_normwise_choose, and the
 * recorder ops_normwise_multiply; the planner of arrays ops_normwise_sums_levels. */
#ifndef OPS_SRC_GEMM_NORMWISE_NORMWISE_H
#define OPS_SRC_GEMM_NORMWISE_NORMWISE_H

#include "tensor/context.h"

#include <ops/gemm.h>

#include <stdbool.h>

#define OPS_NORMWISE_MAX_LEVELS HAL_GEMM_MAX_LEVELS

/* A product as the choice of levels sees it. */
typedef struct ops_normwise_shape {
    hal_type type;
    int64_t batch, m, n, k;
    uint32_t b_levels;      /* for which the sums of B exist; 0: for none */
    uint64_t max_workspace; /* bytes of temporary memory; 0: no limit */
} ops_normwise_shape;

/* Bytes of temporary memory that a product takes at most at once, without the sums of a prepared
 * B; UINT64_MAX for more than 64 bits can count. */
uint64_t ops_normwise_workspace(const ops_normwise_shape *shape, uint32_t levels);

/* The levels of a product. */
typedef struct ops_normwise_levels {
    uint32_t inside;     /* to ask the plugin for: its kernel forms the sums; 0: none */
    uint32_t apart;      /* else as kernels of their own; 0: none */
    const char *why_not; /* the reason for no levels as kernels of their own */
} ops_normwise_levels;

/* Chooses levels: options.levels, or those that take the least time by the cost model. A function
 * of the shape, the options and the device's kind. */
ops_normwise_levels ops_normwise_choose(const hal_device_info *info,
                                        const ops_gemm_options *options,
                                        const ops_normwise_shape *shape);

/* The levels for which the sums of a B are prepared: `forced`, if it may have them, or else those
 * that gain for products of the shape. 0: none. */
uint32_t ops_normwise_choose_prepared(const hal_device_info *info, const ops_normwise_shape *shape,
                                      uint32_t forced);

/* The levels that take the least time inside a plugin's kernel, without regard to max_workspace,
 * which that kernel knows; 0: none gains. */
uint32_t ops_normwise_choose_inside(const hal_device_info *info, const ops_normwise_shape *shape);

/* The levels by which a product can read A as sums that the product before it wrote, and write C as
 * sums for the next one: no length has a rest, and those of a prepared B are of as many levels. 0:
 * it cannot. */
uint32_t ops_normwise_sums_levels(const hal_device_info *info, const ops_gemm_options *options,
                                  const ops_normwise_shape *shape);

/* Checks a product with options.a_sums or options.c_sums, but not its epilogue. `like`: receives
 * C's type and shape. */
hal_status ops_normwise_check(const ops_context *context, const ops_gemm_options *options,
                              const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                              ops_tensor *like);

/* The sums of a matrix, for that part whose lengths are multiples of 2^levels, as a tensor without
 * buffer and by rows; the computation of those of B. */
ops_tensor ops_normwise_sums_layout(uint32_t levels, const ops_tensor *matrix);
hal_status ops_normwise_prepare(ops_context *context, uint32_t levels, const ops_tensor *b,
                                const ops_tensor *sums);

/* Whether the kernels of a level can compute the epilogue of a product. */
bool ops_normwise_takes(const hal_device_info *info, const ops_gemm_options *options);

/* C = epilogue(alpha A B + beta C) with at least one level, for checked tensors of one batch. Rows
 * and columns that are left over are products of the class ACCURATE. */
typedef struct ops_normwise_product {
    /* Computes an ordinary product, as ops_gemm. */
    hal_status (*multiply)(ops_context *context, const ops_gemm_options *options,
                           const ops_tensor *a, const ops_tensor *b, const ops_tensor *c);
    uint32_t levels;
    const ops_gemm_options *options;
    const ops_tensor *a;      /* null with a_sums, where no length has a rest */
    const ops_tensor *b, *c;  /* c may be null with c_sums, where beta is 0 */
    const ops_tensor *a_sums; /* those of A; null: made here */
    const ops_tensor *b_sums; /* those of ops_normwise_prepare; null: made here */
    const ops_tensor *c_sums; /* receives the sums of C as the next product's A; null: none */
} ops_normwise_product;

/* `c_is_written`: whether C may have been written when an error is returned; else the product can
 * be computed in another way. */
hal_status ops_normwise_multiply(ops_context *context, const ops_normwise_product *product,
                                 bool *c_is_written);

#endif
