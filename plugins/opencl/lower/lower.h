/* From IR to OpenCL C. */
#ifndef PLUGINS_OPENCL_LOWER_LOWER_H
#define PLUGINS_OPENCL_LOWER_LOWER_H

#include "card.h"

#include <kit/text.h>

/* The size of the group as the driver gets it: kernels that use subgroups have
 * groups of one dimension. */
void opencl_group_size(const hal_ir_kernel *ir, size_t group[3]);
/* The source of a kernel. `in_buffer` as in hal_plugin_kernel. */
hal_status opencl_lower(const opencl_card *card, const hal_ir_kernel *ir, bool in_buffer,
                        kit_text *text);
/* Bytes of the block of offsets and scalars in the layout of the device. */
uint32_t opencl_argument_bytes(const hal_ir_kernel *ir);

/* HAL_TYPE_BIT of the types that OpenCL C has a spelling for in memory. */
uint32_t opencl_lower_storage_types(void);

#endif
