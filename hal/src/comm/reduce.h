/* The reduction of the ranks' contributions by a kernel, in the order of the ranks. */
#ifndef HAL_SRC_COMM_REDUCE_H
#define HAL_SRC_COMM_REDUCE_H

#include "rank.h"

#include <stdbool.h>

/* Creates the kernels of a type and reduction for the rank: those of hal_reduce_record or, if
 * `padded`, of hal_reduce_record_padded. Errors: UNSUPPORTED, INVALID_ARGUMENT for the mean of
 * BOOL, COMPILE, OUT_OF_MEMORY. */
hal_status hal_reduce_prepare(hal_comm *comm, hal_type type, hal_reduction reduction, bool padded);

/* Records result[i] = own[i] reduced with others[q * stride + i] of all other ranks q, for `count`
 * elements; `stride` in elements. `others` begins where a binding may. `own` and `result` are the
 * same range or disjoint, at any offset.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
hal_status hal_reduce_record(hal_comm *comm, hal_queue *queue, hal_comm_stage *stage, hal_type type,
                             hal_reduction reduction, hal_range others, uint64_t stride,
                             hal_range own, hal_range result, uint64_t count);

/* `count` rounded up to whole work-groups. */
uint64_t hal_reduce_padded_count(const hal_device *device, uint64_t count);

/* The same where inbox[rank * stride + i] is the own contribution, and every segment of the inbox
 * has hal_reduce_padded_count(count) elements, of which those after `count` have any value. All
 * work-groups are whole, which on processors is faster than one with a guard. */
hal_status hal_reduce_record_padded(hal_comm *comm, hal_queue *queue, hal_comm_stage *stage,
                                    hal_type type, hal_reduction reduction, uint64_t stride,
                                    hal_range result, uint64_t count);

/* Records a copy between two ranges of equal length at any offsets; nothing if they are the same
 * or empty. Threads: the queue's. Errors: as hal_queue_copy. */
hal_status hal_reduce_copy(hal_queue *queue, hal_range source, hal_range target);

#endif
