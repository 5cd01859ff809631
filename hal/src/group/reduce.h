/* The reduction of the ranks' contributions by a kernel, in the order of the ranks. Used by
 * collective.c. */
#ifndef HAL_SRC_GROUP_REDUCE_H
#define HAL_SRC_GROUP_REDUCE_H

#include "group.h"

/* Creates the kernels of a type and reduction for the rank. Errors: UNSUPPORTED, INVALID_ARGUMENT
 * for the mean of BOOL, COMPILE, OUT_OF_MEMORY. */
hal_status hal_reduce_prepare(hal_group *group, hal_type type, uint32_t reduction);

/* Records result[i] = own[i] reduced with inbox[q * stride + i] of all other ranks q, for `count`
 * elements; `stride` in elements. `own` and `result` are the same range or disjoint, at any offset.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
hal_status hal_reduce_record(hal_group *group, hal_queue *queue, hal_group_stage *stage,
                             hal_type type, uint32_t reduction, uint64_t stride, hal_range own,
                             hal_range result, uint64_t count);

/* Records a copy between two ranges of equal length at any offsets; nothing if they are the same
 * or empty. Threads: the queue's. Errors: as hal_queue_copy. */
hal_status hal_reduce_copy(hal_queue *queue, hal_range source, hal_range target);

#endif
