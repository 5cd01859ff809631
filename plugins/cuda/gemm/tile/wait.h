/* Waits of the kernels of native matrix products, which HAL_CUDA_GEMM_WAIT bounds. */
#ifndef PLUGINS_CUDA_GEMM_TILE_WAIT_H
#define PLUGINS_CUDA_GEMM_TILE_WAIT_H

#include <hal/plugin.h>

#include <kit/text.h>

/* What a module with waits declares; seconds: 0 for waits without a bound. */
void cuda_gemm_write_wait_header(kit_text *text, uint8_t seconds);

/* A wait: what is between begin and end is repeated until predicate %done is true. `name` is a
 * label that no other wait has. With `seconds` above 0 a wait that takes longer ends the kernel:
 * the driver writes the name, the group and the work-item to stderr. */
void cuda_gemm_write_wait_begin(kit_text *t, uint8_t seconds, const char *name);
void cuda_gemm_write_wait_end(kit_text *t, uint8_t seconds, const char *name);

#endif
