/* One plugin file: opened, its table checked and copied, its devices counted. Used by the
 * registry, under its lock. */
#ifndef HAL_SRC_PLUGIN_LOADER_H
#define HAL_SRC_PLUGIN_LOADER_H

#include <hal/plugin.h>
#include <stddef.h>

#define HAL_PLUGIN_NAME_BYTES 48

typedef struct hal_module {
    struct hal_module *next;
    char *path;
    const char *file_name; /* the <name> of a file hal_<name>.so; null for others */
    size_t file_name_bytes;
    hal_status status; /* of the last attempt to load or to enumerate */
    char *message;     /* why not; null when all is well */
    int loaded;        /* `table` is filled */
    hal_plugin table;  /* zero beyond what the plugin states */
    int enumerated;    /* `infos` are filled */
    hal_device_info *infos;
    uint32_t info_count;
} hal_module;

/* A module for a file that nobody has opened yet; null when memory is out. Never freed. */
hal_module *hal_module_create(const char *path);

/* Opens the file and takes its table; a success is kept, a failure tried anew at the next call.
 * Errors: NOT_FOUND, LIBRARY_MISSING, BAD_PLUGIN, TOO_NEW, TOO_OLD; kept in the module too. */
hal_status hal_module_load(hal_module *module);

/* The part of loading that comes after the file: asks for the table, checks and keeps it. */
hal_status hal_module_ask(hal_module *module, hal_plugin_query_function query);

/* Loads and asks for the devices; kept likewise. Errors: as load, and what the plugin answers. */
hal_status hal_module_enumerate(hal_module *module);

#endif
