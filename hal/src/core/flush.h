/* Flushes the batch in recording: submits it, or defers that until what it waits for is there. */
#ifndef HAL_SRC_CORE_FLUSH_H
#define HAL_SRC_CORE_FLUSH_H

#include "queue.h"

/* As hal_queue_flush, but a batch that has only waits is flushed too. Threads: the queue's.
 * Errors: as hal_queue_flush. */
hal_status hal_flush_waits(hal_queue *queue, hal_point *point);

/* As hal_queue_flush, for a point that no program receives: hal_point_get_elapsed is not asked for
 * it. Threads: the queue's. Errors: as hal_queue_flush. */
hal_status hal_flush_untimed(hal_queue *queue, hal_point *point);

/* Flushes a batch that is full and raises the limit of the next. Threads: the queue's.
 * Errors: as hal_queue_flush. */
hal_status hal_flush_full(hal_queue *queue);

/* Makes room for one command. Threads: the queue's. Errors: as hal_queue_flush. */
static inline hal_status hal_flush_if_full(hal_queue *queue)
{
    return hal_recorder_is_full(&queue->recorder) ? hal_flush_full(queue) : HAL_OK;
}

#endif
