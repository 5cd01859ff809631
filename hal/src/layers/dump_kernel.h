/* The source of a kernel as a record of HAL_DUMP=batch. */
#ifndef HAL_SRC_LAYERS_DUMP_KERNEL_H
#define HAL_SRC_LAYERS_DUMP_KERNEL_H

#include "dump_file.h"
#include "core/kernel.h"

#define HAL_DUMP_GEMM_WORKSPACE 3u /* binding of a matrix product whose contents have no meaning */

/* Appends form, name and source to a HAL_DUMP_KERNEL record. */
void hal_dump_describe(hal_payload *record, const hal_kernel_source *source);

#endif
