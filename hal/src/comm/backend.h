/* Collectives that the engine of a rank runs (engine_create.h), in place of steps. Used by
 * collective.c and ordered.c. */
#ifndef HAL_SRC_GROUP_ENGINE_H
#define HAL_SRC_GROUP_ENGINE_H

#include "engine_create.h"

/* Whether the engine computes a collective with the bits that the program asks for. The answer is
 * the same on all ranks. */
int hal_engine_takes(const hal_group *group, const hal_board_call *call);

/* Whether the order of additions is not that of the ranks there. */
int hal_engine_varies(const hal_group *group, const hal_board_call *call);

/* Compares the calls of the ranks before data moves, where a rank's layers or log ask for it.
 * Threads: the queue's. Errors: those of hal_step_record. */
hal_status hal_engine_compare(hal_group *group, hal_queue *queue, const hal_board_call *call,
                              uint64_t since);

/* Records a collective, which hal_engine_takes. Ranges have exact lengths or are {0}. Flushes the
 * batches before it, of which those from `since` on belong to it. Threads: the queue's.
 * Errors: OUT_OF_MEMORY, those of the flush. */
hal_status hal_engine_record(hal_group *group, hal_queue *queue, const hal_board_call *call,
                             hal_range send, hal_range recv, uint64_t since);

#endif
