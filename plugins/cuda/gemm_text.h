/* The PTX of matrix products on the warpgroup units (wgmma) of compute capability 9.0. Called by
 * gemm.c, and by tests on machines without the driver.
 *
 * A kernel is persistent: each group takes tiles of C in turn. One warpgroup copies tiles of A and
 * B into a ring of stages through tensor maps; two warpgroups multiply, and write C through another
 * one. Shapes, strides and addresses are parameters, so that a new shape needs no new kernel. */
#ifndef HALYARD_CUDA_GEMM_TEXT_H
#define HALYARD_CUDA_GEMM_TEXT_H

#include <hal/ir.h>
#include <hal/plugin.h>
#include <kit/text.h>
#include <stdbool.h>

enum {
    CUDA_GEMM_ROWS = 128, /* of C in a tile: 64 for each of two warpgroups */
    CUDA_GEMM_MAX_COLUMNS = 256,
    CUDA_GEMM_DEPTH = 64, /* elements of k in a stage: rows of 128 bytes */
    CUDA_GEMM_THREADS = 384,
    CUDA_GEMM_MAP_BYTES = 128,
    CUDA_GEMM_BOX = 64,       /* rows or columns of the boxes that lie along m or n */
    CUDA_GEMM_STORE_ROW = 128 /* bytes of a row of the box of C */
};

/* Everything that the text depends on. */
typedef struct cuda_gemm_key {
    hal_type type;   /* of A and B: F16 or BF16 */
    hal_type type_c; /* F16, BF16 or F32 */
    uint8_t transpose_a, transpose_b;
    uint8_t reads_c; /* beta may differ from 0 */
    uint8_t
        flushes; /* sums of a stage are added to F32 sums, as the units truncate; columns <= 128 */
    uint32_t columns; /* of C in a tile: 64, 128, 192 or 256 */
    uint32_t input_count;
    hal_type inputs[HAL_GEMM_MAX_INPUTS];
    const hal_ir_kernel *epilogue; /* or null */
} cuda_gemm_key;

/* A further input of the epilogue: an address and strides in elements. */
typedef struct cuda_gemm_input {
    uint64_t address;
    int64_t row_stride, column_stride, batch_stride;
} cuda_gemm_input;

/* The parameter block of a launch. */
typedef struct cuda_gemm_block {
    uint8_t maps[3][CUDA_GEMM_MAP_BYTES]; /* of A, B and C; aligned to 64 bytes */
    uint64_t c;                           /* address */
    int64_t ldc, stride_c;                /* elements */
    uint32_t m, n;
    uint32_t steps;                   /* of CUDA_GEMM_DEPTH along k */
    uint32_t tiles_m, tiles_n, tiles; /* of one matrix, and of the whole batch */
    uint32_t raster;                  /* rows of tiles that are taken together, for the L2 */
    uint32_t batched_a, batched_b;    /* 0: all matrices of the batch share the operand */
    float alpha, beta;
    uint32_t reserved;
    cuda_gemm_input inputs[HAL_GEMM_MAX_INPUTS]; /* as many as there are */
} cuda_gemm_block;

/* Stages of the ring, and bytes of shared memory of a group. */
uint32_t cuda_gemm_stages(const cuda_gemm_key *key);
uint32_t cuda_gemm_shared_bytes(const cuda_gemm_key *key);

/* Whether the text can be written: types, tile and the records of the epilogue. */
bool cuda_gemm_is_supported(const cuda_gemm_key *key);

/* Appends the PTX. Memory: of text->host. Threads: any, each on its own text.
 * Errors, with their message given to the host: UNSUPPORTED for a record of the epilogue that the
 * lowering does not know; OUT_OF_MEMORY. */
hal_status cuda_gemm_write(const cuda_gemm_key *key, kit_text *text);

#endif
