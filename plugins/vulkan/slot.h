/* Slots: command buffers and argument memory. */
#ifndef PLUGINS_VULKAN_SLOT_H
#define PLUGINS_VULKAN_SLOT_H

#include "queue.h"

/* Command buffers and argument memory. A slot is released with the value of its batch, or
 * with 0 where nothing was submitted. Acquiring one releases the caller's lock while it waits. */
hal_status vulkan_slot_acquire(hal_plugin_queue *queue, vulkan_slot **slot);
void vulkan_slot_release(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t value);
hal_status vulkan_slot_arguments(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t bytes);
/* The value that the submission with the batch of `value` signals. The timeline goes from one such
 * value to the next; the validation layer (1.3.239) misunderstands waits for those between. */
uint64_t vulkan_slot_end(const hal_plugin_queue *queue, uint64_t value);
void vulkan_slot_destroy_all(hal_plugin_queue *queue);

#endif
