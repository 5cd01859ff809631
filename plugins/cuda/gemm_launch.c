/* Parameter blocks of native matrix products, see gemm_launch.h. */
#include "gemm_launch.h"

#include <stddef.h>
#include <string.h>

uint32_t cuda_gemm_parameters(const struct cuda_gemm_launch *launch, const hal_batch *batch,
                              const hal_command *command, uint8_t *block)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    struct cuda_gemm_launch filled = *launch;
    double scalars[2];
    for (uint32_t i = 0; i < 3; i++) {
        const hal_binding *matrix = &bindings[launch->swapped && i < 2 ? 1 - i : i];
        const cuda_address address = matrix->memory->address + matrix->offset;
        if (launch->mapped[i]) {
            cuda_functions()->cuTensorMapReplaceAddress(filled.block.maps[i],
                                                        (void *)(uintptr_t)address);
        } else if (i < 2) {
            memcpy(filled.block.maps[i] + offsetof(cuda_gemm_source, address), &address,
                   sizeof address);
        }
    }
    filled.block.c = bindings[2].memory->address + bindings[2].offset;
    memcpy(scalars, batch->scalars + command->scalar_first, sizeof scalars);
    filled.block.alpha = (float)scalars[0];
    filled.block.beta = (float)scalars[1];
    for (uint32_t i = 0; i < launch->input_count; i++) {
        const hal_binding *input = &bindings[4 + i];
        filled.block.inputs[i].address =
            input->memory != NULL ? input->memory->address + input->offset : 0;
    }
    const uint32_t bytes =
        (uint32_t)(sizeof filled.block -
                   (HAL_GEMM_MAX_INPUTS - launch->input_count) * sizeof(cuda_gemm_input));
    memcpy(block, &filled.block, bytes);
    return bytes;
}
