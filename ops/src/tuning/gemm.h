/* Constants of matrix products, see tuning.h. */
#ifndef OPS_SRC_TUNING_GEMM_H
#define OPS_SRC_TUNING_GEMM_H

#include <stdint.h>

typedef struct ops_gemm_tuning {
    uint32_t split_depth; /* steps of k of each part of a product; 0: by estimated time */
} ops_gemm_tuning;

#endif
