/* The kernel of one shape of direct.c, and the start and the end of general ones. */
#ifndef OPS_SRC_KERNELS_DIRECT_KERNEL_H
#define OPS_SRC_KERNELS_DIRECT_KERNEL_H

#include "direct_task.h"

/* The kernel of an ops_direct_task. Scalars: the number of the first group of channels, over all
 * images, and indices of the first elements of x, w, y and the bias. */
void ops_direct_emit(hal_ir_builder *b, const void *user);

#endif
