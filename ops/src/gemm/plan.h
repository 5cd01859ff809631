/* The plan of a product: a value that says how it is computed. It depends on types, lengths,
 * strides, options and the device, not on time or free memory. The planner makes it once, then it
 * is described or recorded; it can be printed, compared and pinned (ops_gemm_options.config). */
#ifndef OPS_SRC_GEMM_PLAN_H
#define OPS_SRC_GEMM_PLAN_H

#include "product.h"

typedef enum ops_gemm_path {
    OPS_GEMM_PATH_NONE,     /* C has no elements */
    OPS_GEMM_PATH_PORTABLE, /* kernels of IR */
    OPS_GEMM_PATH_NATIVE,   /* the plugin's kernel */
    OPS_GEMM_PATH_LEVELS,   /* Strassen's algorithm in kernels of its own, see normwise */
    OPS_GEMM_PATH_EXACT     /* F64 by integers, see exact */
} ops_gemm_path;

/* Operands that are copied first: into rows, since neither rows nor columns are contiguous; into
 * lines that the plugin's kernel takes; into rows that a processor's lanes read. */
enum {
    OPS_GEMM_COPIES_A = 1,
    OPS_GEMM_COPIES_B = 2,
    OPS_GEMM_COPIES_C = 4,
    OPS_GEMM_ALIGNS_A = 8,
    OPS_GEMM_ALIGNS_B = 16,
    OPS_GEMM_PACKS_B = 32,
    OPS_GEMM_ALIGNS_SHIFT = 3
};

/* What a plan does without, since there was no memory for it. */
enum { OPS_GEMM_WITHOUT_LEVELS = 1, OPS_GEMM_WITHOUT_PLUGIN = 2, OPS_GEMM_WITHOUT_SPLIT = 4 };

typedef struct ops_gemm_plan {
    ops_gemm_path path;
    uint32_t copies;  /* OPS_GEMM_COPIES_A and so on */
    uint32_t levels;  /* of Strassen's algorithm; 0: none */
    uint32_t without; /* OPS_GEMM_WITHOUT_LEVELS and so on */
    uint32_t spares;  /* what the next plan does without where there is no memory for this one */
    /* Portable: */
    ops_gemm_tiles tile;
    uint32_t split;     /* steps of k of a part; 0: one kernel */
    bool is_transposed; /* C' = B' A' */
    bool is_serial;     /* the device limits loops: one matrix of the batch after the other */
    double ns;          /* estimated time; 0: not known */
    /* Native: */
    uint32_t by_columns; /* bits of A and B */
    uint64_t copied_bytes, workspace_bytes;
    const char *native_needs; /* what a native kernel expects and the product lacks, or null */
} ops_gemm_plan;

#endif
