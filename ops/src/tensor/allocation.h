/* Device memory for tensors and temporaries. */
#ifndef OPS_SRC_TENSOR_ALLOCATION_H
#define OPS_SRC_TENSOR_ALLOCATION_H

#include "context.h"

/* Allocates device memory. While a plan is recorded, the buffer is one of its temporaries. */
hal_status ops_buffer_create(ops_context *context, uint64_t bytes, hal_buffer **buffer);

#endif
