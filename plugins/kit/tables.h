/* What the file of a plugin fills in: main table, extensions, entries that the kit completes. */
#ifndef PLUGINS_KIT_TABLES_H
#define PLUGINS_KIT_TABLES_H

#include <hal/plugin.h>

/* The first member of a plugin's hal_plugin_device, hal_plugin_queue and hal_plugin_comm is
 * `const hal_host *host`, which the kit sets when the object is created. */
typedef struct kit_plugin {
    hal_plugin table;

    /* Describes the devices, as the table's entry does. */
    hal_status (*enumerate)(hal_device_info *infos, uint32_t capacity, uint32_t *count);

    /* Opens the device of record `index`. */
    hal_status (*device_open)(uint32_t index, hal_plugin_device **device);

    /* hal_extension_NAME NAME, of each extension; it is offered if the needed entry is there. */
#define KIT_EXTENSION(extension, name, needed) hal_extension_##extension extension;
    HAL_EXTENSIONS(KIT_EXTENSION)
#undef KIT_EXTENSION
} kit_plugin;

#endif
