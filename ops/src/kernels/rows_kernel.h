/* The kernel of a row program, as IR. */
#ifndef OPS_SRC_KERNELS_ROWS_KERNEL_H
#define OPS_SRC_KERNELS_ROWS_KERNEL_H

#include "rows_pass.h"

/* Bytes of an emitter. */
size_t ops_row_emitter_bytes(void);

/* Emits the kernel; `pass` is an ops_row_pass. Writes the scalars that the kernel declares. */
void ops_row_emit(hal_ir_builder *b, const void *pass);
void ops_row_put(const ops_row_pass *pass, ops_block *block);

#endif
