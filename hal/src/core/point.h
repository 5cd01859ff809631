/* Points that one queue waits for on another device: batches behind them are held by hal. */
#ifndef HAL_SRC_CORE_POINT_H
#define HAL_SRC_CORE_POINT_H

#include "queue.h"

/* Keeps a flushed batch until its waits allow to hand it over. Takes the recording. */
void hal_point_hold(hal_queue *queue, hal_recording *recording, uint64_t value);

/* Drops what is held of a queue that ends without its work having run, as on a lost device. */
void hal_point_drop_held(hal_queue *queue);

/* Hands over what is held and may go now, on all queues. Cheap when nothing is held. */
void hal_point_advance(void);

/* A late failure of a held batch of this queue, reported once. */
hal_status hal_point_take_failure(hal_queue *queue);

/* An empty recording for the queue: one that was held before, or a new one; null when memory is
 * out. Threads: the queue's. */
hal_recording *hal_point_spare(hal_queue *queue);

#endif
