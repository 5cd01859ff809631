/* What the texts of all matrix products have in common: the module around a kernel's body, and the
 * order of tiles. */
#ifndef PLUGINS_CUDA_GEMM_TILE_MODULE_H
#define PLUGINS_CUDA_GEMM_TILE_MODULE_H

#include "gemm/tile/key.h"
#include "lower/text.h"

/* Writes of a kernel: its body, and then what comes before it, which depends on the body. */
typedef struct cuda_gemm_writers {
    void (*body)(cuda_lowering *l, const cuda_gemm_key *key);
    void (*header)(const cuda_lowering *l, const cuda_gemm_key *key, kit_text *text);
    uint32_t sums; /* registers that the sums take */
} cuda_gemm_writers;

/* Appends the module of a kernel to `text`. Errors: OUT_OF_MEMORY, those of the body. */
hal_status cuda_gemm_module_write(const cuda_gemm_key *key, const cuda_gemm_writers *writers,
                                  kit_text *text);

/* Sets %x1 and %x0 to the row and column of tiles of tile %x1 of a matrix: tiles go down %raster
 * rows, then one column on: those of one wave share rows of A and columns of B in the L2. */
void cuda_gemm_module_order(kit_text *t);

#endif
