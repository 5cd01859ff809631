/* A plugin file with its table and devices. Needs the registry's lock. */
#ifndef HAL_SRC_PLUGIN_LOADER_H
#define HAL_SRC_PLUGIN_LOADER_H

#include "entries.h"

#include <stdbool.h>
#include <stddef.h>

#define HAL_PLUGIN_NAME_BYTES 48

typedef struct hal_module {
    struct hal_module *next;
    char *path;
    const char *file_name; /* the <name> of hal_<name>.so; null for other files */
    size_t file_name_bytes;
    hal_status status;        /* of the last attempt to load or to enumerate */
    char *message;            /* of that failure; null after success */
    char *excluded;           /* why it is never loaded; null: it may be */
    bool loaded;              /* `table` is set */
    hal_plugin_entries table; /* of its instance */
    char *extensions;         /* their names, with commas; null: none */
    bool enumerated;          /* `infos` are set */
    hal_device_info *infos;
    uint32_t info_count;
} hal_module;

/* A module for a file that is not open yet; null if memory is out. Never freed. */
hal_module *hal_module_create(const char *path);

/* Opens the file and copies its table, once; retries after a failure.
 * Errors: NOT_FOUND, LIBRARY_MISSING, BAD_PLUGIN, TOO_NEW, TOO_OLD; the module keeps them. */
hal_status hal_module_load(hal_module *module);

/* Whether the file is hal_<name>.so. */
bool hal_module_file_is(const hal_module *module, const char *name);

/* The part of loading after dlopen: makes an instance, checks and copies its tables. */
hal_status hal_module_ask(hal_module *module, hal_plugin_create_function create);

/* Loads and reads the devices, once. Errors: as load, and those of the plugin. */
hal_status hal_module_enumerate(hal_module *module);

#endif
