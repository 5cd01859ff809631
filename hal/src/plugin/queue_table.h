/* The open queues of plugins by their handle, for reports of plugins from their threads: a value
 * is reached, work has failed. */
#ifndef HAL_SRC_PLUGIN_QUEUE_TABLE_H
#define HAL_SRC_PLUGIN_QUEUE_TABLE_H

#include <hal/plugin.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Adds a queue. `reached` is raised to base + value when the plugin says that `value` is reached.
 * Without memory for the entry the plugin's words are lost, nothing else. Threads: any. */
void hal_queue_table_add(hal_plugin_queue *queue, _Atomic uint64_t *reached, uint64_t base);

/* Removes a queue: `reached` is not written afterwards. Threads: any. */
void hal_queue_table_remove(hal_plugin_queue *queue);

/* host->queue_reached and host->queue_failed. Threads: any. */
void hal_queue_table_complete(hal_plugin_queue *queue, uint64_t value);
void hal_queue_table_fail(hal_plugin_queue *queue, const char *message);

/* Copies the first message of host->queue_failed; returns 0 if there is none. Threads: any. */
bool hal_queue_table_message(const hal_plugin_queue *queue, char *message, size_t bytes);

#endif
