/* The choice of tiles. Called by gemm/task.c and gemm/cost.c. */
#ifndef OPS_SRC_GEMM_TILES_H
#define OPS_SRC_GEMM_TILES_H

#include "plan.h"

/* Picks tiles for a device and shape; `width` is that of A's and B's elements in bytes. */
void ops_gemm_choose_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t batch,
                           uint32_t width, int b_k_contiguous, ops_gemm_tiles *tiles);

/* The tiles of a product in slices of k, where its shape is one for them; 0 where not. */
int ops_gemm_choose_intra_group_tiles(const hal_device_info *info, int64_t m, int64_t n, int64_t k,
                                      uint32_t batch, uint32_t width, int a_k_contiguous,
                                      ops_gemm_tiles *tiles);

/* The tiles for matrix units, where the device has them for the type, the precision asked for
 * allows them and the matrices are large enough; 0 where not. */
int ops_gemm_choose_matrix_tiles(const hal_device_info *info, uint32_t precision, int64_t m,
                                 int64_t n, int64_t k, uint32_t batch, hal_type type,
                                 int b_k_contiguous, ops_gemm_tiles *tiles);

/* The tiles of the kernel that only scales C. */
void ops_gemm_choose_scale_tiles(const hal_device_info *info, int64_t m, int64_t n,
                                 ops_gemm_tiles *tiles);

/* The tiles of the kernel that adds `parts` parts of m x n sums of `width` bytes. */
void ops_gemm_choose_reduce_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t parts,
                                  uint32_t width, ops_gemm_tiles *tiles);

/* Elements of shared memory that staged tiles need at most, and sums that slices leave there. */
uint32_t ops_gemm_shared_elements(const ops_gemm_tiles *tiles);
uint32_t ops_gemm_intra_group_elements(const ops_gemm_tiles *tiles);

#endif
