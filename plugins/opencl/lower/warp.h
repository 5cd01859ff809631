/* Warps, matrix units and asynchronous copies of NVIDIA's GPUs, with OPENCL_QUIRK_WARPS. */
#ifndef PLUGINS_OPENCL_LOWER_WARP_H
#define PLUGINS_OPENCL_LOWER_WARP_H

#include <hal/ir.h>
#include <kit/c_text.h>
#include <kit/text.h>

/* The words of a kernel with subgroups, whose functions are
 * appended to the text; the variables of a work-item that they use. */
void opencl_lower_warps(const hal_ir_kernel *ir, kit_c_dialect *words, kit_text *text);
/* The same of a kernel with asynchronous copies. */
void opencl_lower_copies(kit_c_dialect *words, kit_text *text);
void opencl_lower_lanes(const hal_ir_kernel *ir, kit_text *text);

#endif
