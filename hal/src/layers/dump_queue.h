/* The file of a queue in HAL_DUMP=batch: its batches, with the contents of memory before and after
 * each. All calls are under the layer's lock. */
#ifndef HAL_SRC_LAYERS_DUMP_QUEUE_H
#define HAL_SRC_LAYERS_DUMP_QUEUE_H

#include "dump_objects.h"

/* The folder of the files; a string that stays valid. */
void hal_dump_queue_set_folder(const char *folder);

/* Before a batch is submitted: writes it, and memory as it is after all earlier work.
 * Errors: OUT_OF_MEMORY, IO, errors of the plugin; the batch is not submitted. */
hal_status hal_dump_queue_submitting(const hal_event *event);

/* After the plugin's answer: writes what the batch has changed. The next batch reports errors. */
void hal_dump_queue_submitted(const hal_event *event, hal_status status);

/* The calls that the next values of a queue come from. */
void hal_dump_queue_set_calls(const hal_queue *queue, const char *calls);

/* Writes a value when what was recorded on the queue so far has ended. A file that cannot take it
 * does without. Threads: the queue's. */
void hal_dump_queue_note_value(const hal_queue *queue, const hal_range *range, hal_type type,
                               uint64_t number, const char *call);

/* Before a memory is freed: its contents are forgotten in all files. */
void hal_dump_queue_memory_freeing(const hal_dump_memory *memory);

/* Before a device is closed: ends the files of its queues. */
void hal_dump_queue_device_closing(const hal_device *device);

#endif
