/* What poolings with windows and adaptive ones share. */
#ifndef OPS_SRC_COMPOSED_POOLING_H
#define OPS_SRC_COMPOSED_POOLING_H

#include "compose.h"

/* Adds each element of dy, [N, C, places], to that of its place (I64) among `lengths`, in an array
 * of zeros [N, C, lengths] of `rank` spatial axes. Null, and an error, for places of another shape
 * or type. */
ops_array *ops_pool_scatter(const char *function, uint32_t rank, const int64_t *lengths,
                            ops_array *dy, ops_array *places);

#endif
