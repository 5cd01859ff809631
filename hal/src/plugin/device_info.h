/* Checks descriptions of devices against the contract. */
#ifndef HAL_SRC_PLUGIN_DEVICE_INFO_H
#define HAL_SRC_PLUGIN_DEVICE_INFO_H

#include "entries.h"
#include <hal/status.h>

/* Converts `count` records of `enumerate`, which have the size of the plugin's headers, to hal's
 * size: missing fields are 0, further fields are dropped. Strings become printable UTF-8 with a
 * closing zero, limits are cut to hal's, unknown bits are cleared, and so are features without an
 * entry in the plugin's table.
 * Ownership: *infos is the caller's, to free. Threads: any.
 * Errors: BAD_PLUGIN with device and field, OUT_OF_MEMORY. */
hal_status hal_device_infos_take(const hal_plugin_entries *plugin, const char *records,
                                 uint32_t count, hal_device_info **infos);

#endif
