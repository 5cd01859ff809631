/* From IR to Metal Shading Language. */
#ifndef PLUGINS_METAL_LOWER_LOWER_H
#define PLUGINS_METAL_LOWER_LOWER_H

#include <hal/ir.h>
#include <hal/status.h>
#include <kit/text.h>
#include <stdbool.h>

/* The source of a kernel, whose name in it is hal_ and the kernel's. */
hal_status metal_lower(const hal_ir_kernel *ir, uint32_t quirks, kit_text *text);
/* Bytes of the structure of scalars. */
uint32_t metal_argument_bytes(const hal_ir_kernel *ir);
/* HAL_TYPE_BIT of the types that the language has a spelling for in memory. */
uint32_t metal_lower_storage_types(void);
/* Such kernels have groups of one dimension, and need simdgroups of METAL_SUBGROUP_WIDTH lanes. */
bool metal_uses_subgroups(const hal_ir_kernel *ir);

#endif
