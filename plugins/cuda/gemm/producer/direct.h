/* The producer of a wgmma kernel whose A and B no tensor map describes: lines of 16-bit elements
 * that begin anywhere.
 *
 * Each of the four warps copies its own lines of a stage, by the aligned pieces of 16 bytes that
 * they meet, into a ring of `raw` stages that no other warp uses (cp.async), waits for the oldest
 * one, and writes that one shifted into the stage of the ring that the units read. */
#ifndef PLUGINS_CUDA_GEMM_PRODUCER_DIRECT_H
#define PLUGINS_CUDA_GEMM_PRODUCER_DIRECT_H

#include "gemm/tile/key.h"

#include <kit/text.h>

bool cuda_gemm_direct_is_supported(const cuda_gemm_key *key);

/* Declares registers, and computes what is the same for all stages. */
void cuda_gemm_direct_begin(kit_text *t, const cuda_gemm_key *key);

/* Copies the stage at %row, %column, %batch and %depth, beyond the matrices zeros. */
void cuda_gemm_direct_load(kit_text *t, const cuda_gemm_key *key);

/* Ends the copies of a stage, which may be none, and writes the stage that was copied some turns
 * ago into the ring at %slot; jumps to `load` where there is none yet. */
void cuda_gemm_direct_store(kit_text *t, const cuda_gemm_key *key, const char *load);

#endif
