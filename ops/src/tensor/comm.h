/* Collectives over lists of tensors. Used by array/group.c, which reduces arrays. */
#ifndef OPS_SRC_TENSOR_GROUP_H
#define OPS_SRC_TENSOR_GROUP_H

#include "context.h"

#include <ops/group.h>

/* Whether a collective reads and writes the tensor where it is. */
int ops_group_takes_tensor(const ops_tensor *tensor);

/* The all_reduce that the options, which may be null, describe. */
hal_collective ops_group_reduction(uint32_t reduction, const ops_group_options *options);

/* Checks the arguments that all lists have. *is_alone: the group has one rank, and nothing is to be
 * done. Errors: INVALID_ARGUMENT, those of hal_group_get_status. */
hal_status ops_group_check(const char *function, const ops_context *context, hal_group *group,
                           const ops_group_options *options, int *is_alone);

/* Records a collective from each source to its result, which may be the same tensor; the options
 * are checked. A failure ends the group. */
hal_status ops_group_record(ops_context *context, hal_group *group, hal_collective what,
                            const ops_tensor *sources, const ops_tensor *results, uint32_t count,
                            const ops_group_options *options);

#endif
