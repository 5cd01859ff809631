/* Structures that begin with their own size, as their maker was compiled: what hal takes of those
 * that programs and plugins of other minors hand over. docs/plugin-abi.md has the rules. */
#ifndef HAL_SRC_BASE_SIZED_H
#define HAL_SRC_BASE_SIZED_H

#include <stddef.h>

#define HAL_BYTES_UP_TO(structure, field) \
    (offsetof(structure, field) + sizeof(((structure *)0)->field))

/* What interface 1.0 had, by its last field, so that what is appended changes none of them. Smaller
 * ones were never written; of devices, what 1.0 reserved may be missing. */
#define HAL_DEVICE_INFO_BYTES_1_0 HAL_BYTES_UP_TO(hal_device_info, item_register_bytes)
#define HAL_GEMM_DESCRIPTION_BYTES_1_0 HAL_BYTES_UP_TO(hal_gemm_description, epilogue)
#define HAL_IR_KERNEL_BYTES_1_0 HAL_BYTES_UP_TO(hal_ir_kernel, names)
#define HAL_IR_VERSION_1_0 2u

/* No size is above this: what states more has no size in its first bytes. */
#define HAL_SIZED_MAX_BYTES 4096u

/* Makes `own`, a structure of `bytes`, of one of another minor: what that does not have is 0. Gives
 * 0 when it is shorter than `least`, or has something behind `bytes`, which hal cannot know. */
int hal_sized_take(void *own, size_t bytes, const void *given, size_t least);

#endif
