/* One element of C: alpha, beta, and the epilogue's fragment. */
#ifndef PLUGINS_CUDA_GEMM_END_ELEMENT_H
#define PLUGINS_CUDA_GEMM_END_ELEMENT_H

#include "gemm/end/inputs.h"
#include "gemm/tile/key.h"
#include "lower/text.h"

/* Registers with an element's row and column of C, and with the numbers of rows and columns. */
typedef struct cuda_gemm_place {
    const char *row, *column, *rows, *columns;
    const cuda_gemm_inputs *inputs; /* or null; of those that are loaded, the values at... */
    uint32_t pair, second, down;    /* ...a pair, its first element or the second; row 0 or 1 */
} cuda_gemm_place;

/* Whether the further inputs have types that are loaded here, and the fragment is short enough to
 * be written `copies` times. */
bool cuda_gemm_element_is_supported(const cuda_gemm_key *key, uint32_t copies);

/* Declares registers and loads scalars, for A and B of a type; then what is computed for each tile:
 * %origin. */
void cuda_gemm_element_begin(cuda_lowering *l, hal_type type);
void cuda_gemm_element_tile(kit_text *t);

/* Writes the value to store for a sum. Sets %inside: whether the element is in C, if C or further
 * inputs are read. */
cuda_operand cuda_gemm_element(cuda_lowering *l, const cuda_gemm_key *key,
                               const cuda_gemm_place *place, cuda_operand sum);

/* Writes: %at is the address of the element in C. */
void cuda_gemm_element_address(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_place *place);

/* Writes: %inside is whether the element is in C. */
void cuda_gemm_element_inside(kit_text *t, const cuda_gemm_place *place);

#endif
