/* What a launch of a native matrix product needs. */
#ifndef PLUGINS_CUDA_GEMM_LAUNCH_H
#define PLUGINS_CUDA_GEMM_LAUNCH_H

#include "gemm/tile/key.h"
#include "kernel.h"

_Static_assert(sizeof(cuda_gemm_block) <= CUDA_MAX_PARAMETERS, "a launch has room for the block");

/* A launch: the parameter block without addresses and scalars, and the number of groups. */
struct cuda_gemm_launch {
    _Alignas(64) cuda_gemm_block block;
    uint32_t input_count;
    uint32_t groups;
    bool mapped[3];   /* whether a tensor map describes A, B and C */
    bool swapped;     /* A of the kernel is binding 1, and B binding 0 */
    bool strict;      /* the block has that of strict F32 in the place of maps */
    bool of_integers; /* alpha and beta are whole numbers */
    bool in_memory;   /* parts of k are added in the queue's memory */
};

/* Writes the parameter block of a dispatch to a queue. Returns its bytes. */
uint32_t cuda_gemm_parameters(const hal_plugin_kernel *kernel, const hal_plugin_queue *queue,
                              const hal_batch *batch, const hal_command *command, uint8_t *block);

#endif
