/* What a plugin says of its devices, held to the contract. Used by the loader. */
#ifndef HAL_SRC_PLUGIN_DEVICE_INFO_H
#define HAL_SRC_PLUGIN_DEVICE_INFO_H

#include <hal/plugin.h>
#include <hal/status.h>

/* Makes infos of hal's own size out of `count` records as `enumerate` left them, of whatever size
 * the plugin was built with: what older ones lack is 0, what newer ones have more is dropped.
 * Strings are ended and hold printable UTF-8 alone, limits that are more than hal can use
 * are cut down to that, bits that hal does not know are cleared, and so is an ability whose entry
 * the plugin's table lacks.
 * Ownership: *infos is the caller's, to free. Threads: any.
 * Errors: BAD_PLUGIN with device and field for what cannot be, OUT_OF_MEMORY. */
hal_status hal_device_infos_take(const hal_plugin *plugin, const char *records, uint32_t count,
                                 hal_device_info **infos);

#endif
