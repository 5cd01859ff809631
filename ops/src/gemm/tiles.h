/* The choice of tiles. */
#ifndef OPS_SRC_GEMM_TILES_H
#define OPS_SRC_GEMM_TILES_H

#include "kernel_key.h"

/* A product, as far as the choice of tiles depends on it. */
typedef struct ops_gemm_shape {
    const ops_gemm_tuning *tuning;
    int64_t m, n, k;
    uint32_t batch, precision;
    uint32_t access; /* bytes of matrix units' narrower access to A and B; 0: they are not used */
    hal_type type;   /* of A and B */
    uint8_t a_k_contiguous, b_k_contiguous;
    uint8_t a_width, b_width; /* elements of the widest access along the contiguous axis */
    uint8_t is_staged;        /* only tiles in shared memory will do: an operand is separable */
} ops_gemm_shape;

/* The tiles of a number from 0 on that a GPU has for a part of `k` steps of the product's; with a
 * block of 0 where it has none of that number. `rates`: null for direct kernels and intra-group
 * split-K. Returns false after the last one. */
bool ops_gemm_get_tiles(const hal_device_info *info, const ops_gemm_shape *shape, uint32_t number,
                        int64_t k, ops_gemm_tiles *tiles, const ops_gemm_rates **rates);

/* Whether matrix units multiply such matrices in such a precision. */
bool ops_gemm_units_multiply(const hal_device_info *info, const ops_gemm_tuning *tuning,
                             uint32_t precision, int64_t m, int64_t n, int64_t k, hal_type type);

/* Whether a device has tiles like a GPU's, among which gemm/candidates.c chooses. */
static inline bool ops_gemm_is_gpu(const hal_device_info *info)
{
    return info->item_vector_bytes == 0 &&
           (info->kind != HAL_DEVICE_CPU || info->subgroup_width == 0);
}

/* Tiles on other devices; `width` is the size of A's and B's elements in bytes. */
void ops_gemm_choose_cpu_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                               int64_t m, int64_t n, uint32_t batch, uint32_t width,
                               bool b_k_contiguous, ops_gemm_tiles *tiles);

/* Staged tiles that every device has, for separable operands where no others fit. */
ops_gemm_tiles ops_gemm_least_staged_tiles(void);

/* Tiles of the kernel that only scales C. */
void ops_gemm_choose_scale_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                                 int64_t m, int64_t n, ops_gemm_tiles *tiles);

/* Tiles of the kernel that adds `parts` partial sums of `width` bytes for each of m x n
 * elements. */
void ops_gemm_choose_reduce_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                                  int64_t m, int64_t n, uint32_t parts, uint32_t width,
                                  ops_gemm_tiles *tiles);

/* Replaces tiles by those of their class, which have the same order of additions and no slices.
 * Staged tiles have the fewest steps of k that any have, of which those of the others are a
 * multiple. Intra-group split-K and matrix units keep theirs. `width`: bytes of an element of A and
 * B. */
void ops_gemm_generalise_tiles(const hal_device_info *info, const ops_gemm_tuning *tuning,
                               int64_t m, uint32_t width, ops_gemm_tiles *tiles);

/* Elements of shared memory that staged tiles need, and that intra-group split-K needs. */
uint32_t ops_gemm_shared_elements(const ops_gemm_tiles *tiles);
uint32_t ops_gemm_intra_group_elements(const ops_gemm_tiles *tiles);

/* Partial sums of an element that intra-group split-K adds in its second round: about the square
 * root of the slices, so that both rounds are short; all slices where there are too few work-items
 * for two per element, which then need one round. */
uint32_t ops_gemm_intra_group_parts(const ops_gemm_tiles *tiles);

#endif
