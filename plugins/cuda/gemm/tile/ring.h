/* The ring of stages of the wgmma kernels: its geometry, and the PTX that moves through it.
 *
 * A stage: the tile of A (cuda_gemm_rows lines), the tile of B, and what the converting warps make
 * of B where F32 needs it: B along k if it is not, and the small parts of three-term products. All
 * are in the 128-byte swizzle. An operand that is contiguous along k has lines along k; one that is
 * contiguous along m or n consists of boxes of one line along them, each as many lines high as a
 * stage is deep. Barriers: `full` of a stage completes when its bytes have arrived, `converted`
 * when what is made of B is there, `empty` when all warps that multiply it have read it. Two more
 * serve the staged epilogue: `partial` completes when all groups of a cluster that share the tile
 * have written their sums (of parts through memory: when it is known whether all have begun),
 * `drained` when their sums were read and the ring is free again.
 *
 * Fences of clusters order shared memory alone (.sync_restrict, PTX 8.6): those of all memory wait
 * for the device's, half a microsecond each. */
#ifndef PLUGINS_CUDA_GEMM_TILE_RING_H
#define PLUGINS_CUDA_GEMM_TILE_RING_H

#include "gemm/tile/key.h"

#include <kit/text.h>

enum {
    CUDA_GEMM_MULTIPLIERS = 8, /* warps */
    CUDA_GEMM_CONVERTERS = 3,  /* warps */
    CUDA_GEMM_ALIGNMENT =
        1024 /* bytes: of the ring, as the 128-byte swizzle repeats every 8 lines */
};

/* Rows of the boxes in which C leaves, and boxes of a warpgroup that take turns. */
uint32_t cuda_gemm_store_rows(const cuda_gemm_key *key);
uint32_t cuda_gemm_store_boxes(const cuda_gemm_key *key);

/* Stages of the ring, and bytes of shared memory of a group. */
uint32_t cuda_gemm_stages(const cuda_gemm_key *key);
uint32_t cuda_gemm_shared_bytes(const cuda_gemm_key *key);

/* Whether F32 is multiplied as three products of parts. */
static inline bool cuda_gemm_has_parts(const cuda_gemm_key *key)
{
    return key->type == HAL_TYPE_F32 && key->flushes;
}

/* Whether B is written again along k, as the units take F32 and bytes in no other layout. */
static inline bool cuda_gemm_transposes_b(const cuda_gemm_key *key)
{
    return hal_type_size(key->type) != 2 && !key->transpose_b;
}

static inline bool cuda_gemm_converts(const cuda_gemm_key *key)
{
    return cuda_gemm_has_parts(key) || cuda_gemm_transposes_b(key);
}

/* Bytes that arrive. */
uint32_t cuda_gemm_tile_a_bytes(const cuda_gemm_key *key);
uint32_t cuda_gemm_tile_b_bytes(const cuda_gemm_key *key);
/* Offsets in a stage: of B as the units read it, and of its small parts. */
uint32_t cuda_gemm_units_b(const cuda_gemm_key *key);
uint32_t cuda_gemm_small_b(const cuda_gemm_key *key);
uint32_t cuda_gemm_stage_bytes(const cuda_gemm_key *key);

/* The tile of C as the staged epilogue has it in shared memory: rows of C, elements from one row to
 * the next, and rows of the slice that one group of the cluster stores. */
uint32_t cuda_gemm_staged_rows(const cuda_gemm_key *key);
uint32_t cuda_gemm_staged_columns(const cuda_gemm_key *key);
uint32_t cuda_gemm_staged_pitch(const cuda_gemm_key *key);
uint32_t cuda_gemm_slice_rows(const cuda_gemm_key *key);
uint32_t cuda_gemm_slice_bytes(const cuda_gemm_key *key);

/* Offsets from the first barrier, of stage 0 or alone. */
uint32_t cuda_gemm_empty_barrier(const cuda_gemm_key *key);
uint32_t cuda_gemm_converted_barrier(const cuda_gemm_key *key);
uint32_t cuda_gemm_partial_barrier(const cuda_gemm_key *key);
uint32_t cuda_gemm_drained_barrier(const cuda_gemm_key *key);
/* A word after the barriers: the slices of a tile that a group adds, see gemm/end/partial.c. */
uint32_t cuda_gemm_slices_word(const cuda_gemm_key *key);
/* Of the boxes of C, and of the barriers, from register %base. */
uint32_t cuda_gemm_store_offset(const cuda_gemm_key *key);
uint32_t cuda_gemm_barrier_offset(const cuda_gemm_key *key);

/* Of a kernel without tensor maps of A and B: bytes of a line of a raw stage (128 that begin at any
 * byte of 16), bytes and number of the raw stages, and their offset from register %base. */
enum { CUDA_GEMM_RAW_LINE = CUDA_GEMM_LINE + 16 };
uint32_t cuda_gemm_raw_bytes(const cuda_gemm_key *key);
uint32_t cuda_gemm_raw_stages(const cuda_gemm_key *key);
uint32_t cuda_gemm_raw_offset(const cuda_gemm_key *key);

/* Arrivals that complete `full` of a stage: of the copying thread, or of warps that write it. */
static inline uint32_t cuda_gemm_full_arrivals(const cuda_gemm_key *key)
{
    return key->direct ? 4 : 1;
}

/* Arrivals that complete `empty` of a stage: of the warps that multiply it. */
static inline uint32_t cuda_gemm_empty_arrivals(const cuda_gemm_key *key)
{
    return (key->alternates ? CUDA_GEMM_MULTIPLIERS / 2 : CUDA_GEMM_MULTIPLIERS) *
           cuda_gemm_pairs(key);
}

/* Waits for a phase of a barrier (gemm/tile/wait.h). `cluster`: what other groups wrote before they
 * arrived is visible. */
void cuda_gemm_write_wait(kit_text *t, const cuda_gemm_key *key, const char *name,
                          const char *barrier, const char *parity, bool cluster);

/* Of a staged kernel: waits until the sums of the tile before have been read, which replace the
 * stages. */
void cuda_gemm_write_wait_drained(kit_text *t, const cuda_gemm_key *key);

/* The next stage of the ring; the parity changes at its end. */
void cuda_gemm_write_next_slot(kit_text *t, const cuda_gemm_key *key);

/* Tells the producers that fill it, where predicate `guard` is true, that this warp has read stage
 * %previous. */
void cuda_gemm_write_release(kit_text *t, const cuda_gemm_key *key, const char *guard);

#endif
