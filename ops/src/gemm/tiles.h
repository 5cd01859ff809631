/* The choice of tiles. Called by gemm/task.c and gemm/cost.c. */
#ifndef OPS_SRC_GEMM_TILES_H
#define OPS_SRC_GEMM_TILES_H

#include "plan.h"

/* Tiles without matrix units; `width` is the size of A's and B's elements in bytes. */
void ops_gemm_choose_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                           uint32_t batch, uint32_t width, int b_k_contiguous,
                           ops_gemm_tiles *tiles);

/* Tiles of intra-group split-K; returns 0 where the shape gains nothing from it. */
int ops_gemm_choose_intra_group_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                                      uint32_t batch, uint32_t width, int a_k_contiguous,
                                      int b_k_contiguous, ops_gemm_tiles *tiles);

/* Tiles of direct kernels for a k so small that C is most of the memory traffic; returns 0 where it
 * is not. */
int ops_gemm_choose_outer_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                                ops_gemm_tiles *tiles);

/* Tiles for matrix units; returns 0 where the device has none for the type, the precision forbids
 * them or the matrices are too small. `access`: bytes of the narrower of the accesses to A and B.
 */
int ops_gemm_choose_matrix_tiles(const hal_device_info *info, uint32_t precision, int64_t m,
                                 int64_t n, int64_t k, uint32_t batch, hal_type type,
                                 uint32_t access, int b_k_contiguous, ops_gemm_tiles *tiles);

/* Tiles of the kernel that only scales C. */
void ops_gemm_choose_scale_tiles(const hal_device_info *info, int64_t m, int64_t n,
                                 ops_gemm_tiles *tiles);

/* Tiles of the kernel that adds `parts` partial sums of `width` bytes for each of m x n
 * elements. */
void ops_gemm_choose_reduce_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t parts,
                                  uint32_t width, ops_gemm_tiles *tiles);

/* Elements of shared memory that staged tiles need, and that intra-group split-K needs. */
uint32_t ops_gemm_shared_elements(const ops_gemm_tiles *tiles);
uint32_t ops_gemm_intra_group_elements(const ops_gemm_tiles *tiles);

#endif
