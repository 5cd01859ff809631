/* Ways to compute a product with the portable kernel on a GPU: tiles and parts of k. */
#ifndef OPS_SRC_GEMM_CANDIDATES_H
#define OPS_SRC_GEMM_CANDIDATES_H

#include "tiles.h"

#define OPS_GEMM_MAX_CANDIDATES 128u

typedef struct ops_gemm_candidate {
    ops_gemm_tiles tiles;        /* of the kernel, or of the one that computes the parts */
    const ops_gemm_rates *rates; /* as ops_gemm_get_tiles gives them */
    uint32_t depth;              /* steps of k of a part; 0: one kernel */
    double ns;                   /* estimated time */
} ops_gemm_candidate;

/* Finds the candidate with the i-th least estimated time, from 1; `has_parts`: also among those
 * with parts of k. Returns how many there are, at most OPS_GEMM_MAX_CANDIDATES. */
uint32_t ops_gemm_find_candidate(const hal_device_info *info, const ops_gemm_shape *shape,
                                 bool has_parts, uint32_t number, ops_gemm_candidate *found);

#endif
