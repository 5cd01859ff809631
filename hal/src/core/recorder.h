/* The batch that a queue's thread is recording: commands, limits and hazards. Threads: the queue's.
 * */
#ifndef HAL_SRC_CORE_RECORDER_H
#define HAL_SRC_CORE_RECORDER_H

#include "batch.h"
#include "hazard.h"

#include <stdbool.h>

typedef struct hal_recorder {
    hal_timeline *timeline; /* of the queue */
    hal_recording *recording;
    uint64_t serial;       /* of the batch, unique in the process */
    uint64_t memory_bytes; /* size of the blocks that the batch uses */
    uint64_t memory_limit; /* bytes; a batch that uses as many is full */
    uint32_t batch_limit;  /* commands; a batch that has as many is full */
    uint32_t batch_first;  /* limit of the first batch after a wait */
    uint32_t batch_most;   /* limit that later batches double up to */
    hal_hazards hazards;
} hal_recorder;

/* Starts an empty batch. Waits that were recorded stay. */
void hal_recorder_start_batch(hal_recorder *recorder);

/* Sets the command limit of the batch, which is empty. */
void hal_recorder_limit_batch(hal_recorder *recorder, uint32_t commands);

/* Makes the batch run after a point. Errors: OUT_OF_MEMORY. */
hal_status hal_recorder_add_wait(hal_recorder *recorder, hal_last_use use);

/* Counts a block that the batch did not use before. */
void hal_recorder_count_memory(hal_recorder *recorder, uint64_t bytes);

static inline bool hal_recorder_is_full(const hal_recorder *recorder)
{
    const hal_recording *recording = recorder->recording;
    const uint32_t count = recording->command_count;
    /* One that would wait for compilers takes more commands, so that theirs are compiled too. */
    const bool is_long = count >= recorder->batch_limit &&
                         (recording->pending_count == 0 || count >= recorder->batch_most);
    return is_long || (recorder->memory_bytes >= recorder->memory_limit && count > 0);
}

/* The point of the batch as a use. */
static inline hal_last_use hal_recorder_use(const hal_recorder *recorder)
{
    return (hal_last_use){recorder->timeline, hal_timeline_next_value(recorder->timeline)};
}

#endif
