/* Waits of the kernels of native matrix products, which HAL_CUDA_GEMM_WAIT bounds. */
#ifndef PLUGINS_CUDA_GEMM_TILE_WAIT_H
#define PLUGINS_CUDA_GEMM_TILE_WAIT_H

#include "gemm/tile/key.h"

#include <kit/text.h>

/* What a module with waits declares. */
void cuda_gemm_write_wait_header(kit_text *text, const cuda_gemm_key *key);

/* A wait: what is between begin and end is repeated until predicate %done is true. `name` is a
 * label that no other wait has. If the key bounds waits, one that takes longer ends the kernel: the
 * driver writes the name, the group and the work-item to stderr. */
void cuda_gemm_write_wait_begin(kit_text *t, const cuda_gemm_key *key, const char *name);
void cuda_gemm_write_wait_end(kit_text *t, const cuda_gemm_key *key, const char *name);

#endif
