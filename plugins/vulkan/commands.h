/* Records batches into a slot. */
#ifndef PLUGINS_VULKAN_COMMANDS_H
#define PLUGINS_VULKAN_COMMANDS_H

#include "slot.h"

hal_status vulkan_commands_begin(hal_plugin_device *device, vulkan_slot *slot);
/* Whether the slot has room for the arguments of a batch. */
bool vulkan_commands_fit(const hal_plugin_device *device, const vulkan_slot *slot,
                         const hal_batch *batch);
/* What fails has appended nothing. */
hal_status vulkan_commands_append(hal_plugin_queue *queue, vulkan_slot *slot,
                                  const hal_batch *batch, uint64_t value);
hal_status vulkan_commands_end(hal_plugin_device *device, vulkan_slot *slot);

#endif
