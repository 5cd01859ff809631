/* The sums of a tile by wgmma, in registers, and the small parts of F32 that three-term products
 * need. */
#ifndef PLUGINS_CUDA_GEMM_TILE_SUMS_H
#define PLUGINS_CUDA_GEMM_TILE_SUMS_H

#include "gemm/tile/key.h"
#include "lower/text.h"

/* Registers that the sums of a work-item take, the first ones of their class: floats, of integers
 * words. */
uint32_t cuda_gemm_sum_registers(const cuda_gemm_key *key);
uint32_t cuda_gemm_sum_class(const cuda_gemm_key *key);
cuda_operand cuda_gemm_sum(const cuda_gemm_key *key, uint32_t number);

/* Adds a part of a sum to it. */
void cuda_gemm_sum_add(cuda_lowering *l, const cuda_gemm_key *key, cuda_operand sum,
                       cuda_operand part);

/* Writes what a multiplying work-item computes once; the sums of one tile over %count stages. */
void cuda_gemm_sums_begin(kit_text *t, const cuda_gemm_key *key);
void cuda_gemm_sums_tile(kit_text *t, const cuda_gemm_key *key);

/* Writes: %x0 is the row of the tile that a work-item's first sums have; its others are that many
 * rows further down. */
void cuda_gemm_write_row(kit_text *t, const cuda_gemm_key *key);
uint32_t cuda_gemm_row_step(const cuda_gemm_key *key);

/* The role of the converting warps, for the stages of one tile: %slot and %parity go on. */
void cuda_gemm_convert_tile(kit_text *t, const cuda_gemm_key *key);

#endif
