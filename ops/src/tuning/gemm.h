/* Constants of matrix products, see tuning.h. */
#ifndef OPS_SRC_TUNING_GEMM_H
#define OPS_SRC_TUNING_GEMM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ops_gemm_tuning {
    bool has_levels_inside; /* a plugin's kernel has the levels, unless weights are prepared */
    uint32_t split_depth;   /* steps of k of each part of a product; 0: by estimated time */

    /* Copies of A and B into lines that a plugin's kernel takes, which it does not need. */
    double min_copied_work;   /* multiplications: a GPU multiplies fewer in less time than a copy */
    int64_t min_copied_steps; /* of k: with fewer, the portable kernel is bound by C */
    bool copies_strict;       /* else strict products are never copied where the plugin estimates */
    double copy_launch_ns;    /* of a copy, */
    double copy_bytes_per_ns; /* and what a compute unit reads and writes */
} ops_gemm_tuning;

#endif
