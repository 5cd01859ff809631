/* Structures that begin with their own size: what hal accepts from programs and plugins that were
 * compiled with another minor version. docs/plugin-abi.md has the rules. */
#ifndef HAL_SRC_BASE_SIZED_H
#define HAL_SRC_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>

#define HAL_BYTES_UP_TO(structure, field) \
    (offsetof(structure, field) + sizeof(((structure *)0)->field))

/* The sizes of minor 0, by its last field, so that appended fields do not change them. hal refuses
 * smaller structures. A device's record may lack the reserved fields. */
#define HAL_DEVICE_INFO_LEAST_BYTES HAL_BYTES_UP_TO(hal_device_info, max_loop_iterations)
#define HAL_GEMM_DESCRIPTION_LEAST_BYTES HAL_BYTES_UP_TO(hal_gemm_description, epilogue)
#define HAL_ATTENTION_DESCRIPTION_LEAST_BYTES HAL_BYTES_UP_TO(hal_attention_description, y)
#define HAL_IR_KERNEL_LEAST_BYTES HAL_BYTES_UP_TO(hal_ir_kernel, names)
#define HAL_MEMORY_HANDLE_LEAST_BYTES HAL_BYTES_UP_TO(hal_memory_handle, reserved)
#define HAL_IR_LEAST_VERSION 1u

/* A structure that states a larger size does not begin with its size. */
#define HAL_SIZED_MAX_BYTES 4096u

/* Copies a structure of any size to `own`, which has `bytes`, and zeroes the fields that it lacks.
 * Returns 0 when it is shorter than `least`, or has another byte than 0 after `bytes`. */
bool hal_sized_take(void *own, size_t bytes, const void *given, size_t least);

#endif
