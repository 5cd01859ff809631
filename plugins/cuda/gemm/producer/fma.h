/* How tiles of A and B come to shared memory in products of strict F32: as steps of k, each with
 * the lines (rows of A, columns of B) of the tile.
 *
 * An operand that is contiguous along its lines is copied by cp.async, 16 bytes at a time where its
 * lines begin at multiples of that. One that is contiguous along k is transposed by copies of
 * single elements. (By registers, with loads of 16 bytes, an H100 takes 2 to 24 % more time.)
 * */
#ifndef PLUGINS_CUDA_GEMM_PRODUCER_FMA_H
#define PLUGINS_CUDA_GEMM_PRODUCER_FMA_H

#include "gemm/tile/fma.h"

#include <kit/text.h>

typedef struct cuda_fma_operand {
    char name;      /* a or b */
    bool along_k;   /* contiguous along k in memory */
    uint32_t lines; /* of the tile */
    uint32_t depth; /* steps of k of a stage */
    uint32_t pitch; /* elements from step to step */
    uint32_t width; /* elements of an access */
    /* Access i of a work-item is i / across passes and i mod across jumps behind its first one: */
    uint32_t passes, pass; /* of that many lines (along k) or steps of k */
    uint32_t across, jump; /* of that many steps; along k */
} cuda_fma_operand;

cuda_fma_operand cuda_fma_operand_of(const cuda_gemm_key *key, bool is_b);

/* Bytes of a stage: A, then B. */
uint32_t cuda_fma_stage_bytes(const cuda_gemm_key *key);

/* Declares registers, and computes where the work-item's accesses lie in a tile. `offset`: of the
 * operand in a stage. */
void cuda_fma_load_begin(kit_text *t, const cuda_fma_operand *o, uint32_t offset);

/* Begins at step %load_k of the tile at %inner_row, %inner_column and %batch. */
void cuda_fma_load_place(kit_text *t, const cuda_fma_operand *o);

/* Loads the operand's part of a stage, to the one at %stage; zeros beyond %k where that is no
 * multiple of a stage. */
void cuda_fma_load(kit_text *t, const cuda_gemm_key *key, const cuda_fma_operand *o);

/* Loads the last stage again and again. */
void cuda_fma_load_stay(kit_text *t, const cuda_fma_operand *o);

#endif
