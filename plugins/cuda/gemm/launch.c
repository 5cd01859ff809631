/* Parameter blocks of native matrix products, see gemm/launch.h. */
#include "gemm/launch.h"

#include "memory.h"

#include <stddef.h>
#include <string.h>

static cuda_address binding_address(const hal_binding *binding)
{
    return binding->memory ? binding->memory->address + binding->offset : 0;
}

static void set_strict_addresses(cuda_fma_block *block, const hal_binding *bindings,
                                 cuda_address flags)
{
    block->a = binding_address(&bindings[0]);
    block->b = binding_address(&bindings[1]);
    block->partials = binding_address(&bindings[3]);
    block->flags = flags;
}

/* In maps, and in sources. */
static void set_addresses(struct cuda_gemm_launch *launch, const hal_binding *bindings)
{
    for (uint32_t i = 0; i < 3; i++) {
        const hal_binding *matrix = &bindings[launch->swapped && i < 2 ? 1 - i : i];
        const cuda_address address = matrix->memory->address + matrix->offset;
        if (launch->mapped[i]) {
            cuda_functions()->cuTensorMapReplaceAddress(launch->block.maps[i],
                                                        (void *)(uintptr_t)address);
        } else if (i < 2) {
            memcpy(launch->block.maps[i] + offsetof(cuda_gemm_source, address), &address,
                   sizeof address);
        }
    }
}

uint32_t cuda_gemm_parameters(const hal_plugin_kernel *kernel, const hal_plugin_queue *queue,
                              const hal_batch *batch, const hal_command *command, uint8_t *block)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    const struct cuda_gemm_launch *launch = kernel->gemm;
    struct cuda_gemm_launch filled = *launch;
    double scalars[2];
    if (launch->strict) {
        set_strict_addresses(&filled.block.fma, bindings, queue->flags);
    } else {
        set_addresses(&filled, bindings);
    }
    filled.block.parts = queue->parts;
    filled.block.c = bindings[2].memory->address + bindings[2].offset;
    memcpy(scalars, batch->scalars + command->scalar_first, sizeof scalars);
    if (launch->of_integers) {
        filled.block.factors[0] = (uint32_t)(int64_t)scalars[0];
        filled.block.factors[1] = (uint32_t)(int64_t)scalars[1];
    } else {
        filled.block.alpha = (float)scalars[0];
        filled.block.beta = (float)scalars[1];
    }
    for (uint32_t i = 0; i < launch->input_count; i++) {
        filled.block.inputs[i].address = binding_address(&bindings[4 + i]);
    }
    const uint32_t bytes =
        (uint32_t)(sizeof filled.block -
                   (HAL_GEMM_MAX_INPUTS - launch->input_count) * sizeof(cuda_gemm_input));
    memcpy(block, &filled.block, bytes);
    return bytes;
}
