/* Candidates to compute a product with the portable kernel on a GPU: tiles and parts of k. */
#ifndef OPS_SRC_GEMM_CANDIDATES_H
#define OPS_SRC_GEMM_CANDIDATES_H

#include "cost.h"

#define OPS_GEMM_MAX_CANDIDATES 128u

/* Finds the candidate with the i-th least estimated time, from 1; `has_parts`: also among those
 * with parts of k. Returns how many there are, at most OPS_GEMM_MAX_CANDIDATES. */
uint32_t ops_gemm_find_candidate(const hal_device_info *info, const ops_gemm_shape *shape,
                                 bool has_parts, uint32_t number, ops_gemm_candidate *found);

#endif
