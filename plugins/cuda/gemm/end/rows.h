/* Stores a box of C by rows, where no tensor map describes C: rows that begin anywhere. */
#ifndef PLUGINS_CUDA_GEMM_END_ROWS_H
#define PLUGINS_CUDA_GEMM_END_ROWS_H

#include "gemm/tile/key.h"

#include <kit/text.h>

/* A box in shared memory, as the epilogue wrote it: lines of 128 bytes of C's rows. */
typedef struct cuda_gemm_box {
    const char *at;       /* register: address in shared memory */
    const char *previous; /* the same of the box to the left of it, or null: it is the first one */
    const char *row, *column, *rows, *columns; /* registers: of C, its first ones and their ends */
    uint32_t lines;                            /* a multiple of 16, up to 64 */
    uint32_t number;                           /* of the box in the text */
    bool is_last;                              /* no box follows to the right */
} cuda_gemm_box;

/* Declares registers; %ldc is there. */
void cuda_gemm_rows_begin(kit_text *t, const cuda_gemm_key *key);

/* Writes the stores of a box by the four warps of a warpgroup, which have all written it. What a
 * box leaves to the next one, less than a sector of memory, that one stores. */
void cuda_gemm_rows_store(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_box *box);

#endif
