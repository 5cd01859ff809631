/* gemm.c: faults of a plugin's own matrix product. */
#include "mutant.h"

/* C is not added where both operands are transposed. */
static void gemm_beta(hal_gemm_description *description)
{
    if (description->transpose_a && description->transpose_b) {
        description->beta_is_zero = 1;
    }
}

/* The last column is left out where their number is odd and more than 64. */
static void gemm_column(hal_gemm_description *description)
{
    description->n -= description->n > 64 && description->n % 2 == 1;
}

/* The last term is left out where their number is 15 modulo 16. */
static void gemm_depth(hal_gemm_description *description)
{
    description->k -= description->k % 16 == 15;
}

/* In a batch of more than two all take the first one's B. */
static void gemm_batch(hal_gemm_description *description)
{
    if (description->batch > 2) {
        description->stride_b = 0;
    }
}

/* The last of more than eight groups is left out. */
static void gemm_group(hal_gemm_description *description)
{
    description->batch -= description->type_offsets != HAL_TYPE_NONE && description->batch > 8;
}

/* The epilogue is skipped for rows after the last whole tile of 64. */
static void gemm_epilogue(hal_gemm_description *description)
{
    if (description->m > 64 && description->m % 64 != 0 && description->transpose_b) {
        description->epilogue = NULL;
    }
}

const mutant mutants_gemm[] = {{.name = "gemm_beta", .gemm = gemm_beta},
                               {.name = "gemm_column", .gemm = gemm_column},
                               {.name = "gemm_depth", .gemm = gemm_depth},
                               {.name = "gemm_batch", .gemm = gemm_batch},
                               {.name = "gemm_epilogue", .gemm = gemm_epilogue},
                               {.name = "gemm_group", .gemm = gemm_group},
                               {.name = NULL}};
