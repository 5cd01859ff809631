/* Search paths of plugins, and plugin files found there. Needs the registry's lock. */
#ifndef HAL_SRC_PLUGIN_SEARCH_H
#define HAL_SRC_PLUGIN_SEARCH_H

#include <hal/status.h>
#include <stddef.h>
#include <stdint.h>

/* A list of copied strings; begins as {0}. */
typedef struct hal_strings {
    char **items;
    uint32_t count;
    uint32_t capacity;
} hal_strings;

/* Appends a copy. Errors: OUT_OF_MEMORY. */
hal_status hal_strings_add(hal_strings *strings, const char *item, size_t bytes);
void hal_strings_free(hal_strings *strings);

/* The folders and files to search: those of HAL_PLUGIN_PATH, unless the process is set-uid, then
 * the folder next to the library. Errors: OUT_OF_MEMORY. */
hal_status hal_search_paths(hal_strings *paths);

/* The path of a file in the folder halyard next to the library, for the caller to free; null
 * without memory. */
char *hal_search_own_file(const char *name);

/* Bytes of the plugin's name in the name of a file, hal_<name>.so or, as on macOS,
 * hal_<name>.dylib; 0: no plugin. */
size_t hal_plugin_name_bytes(const char *file);

/* The plugin files there, in order: of a folder hal_<name>.so, else hal_<name>.dylib, or for a null
 * name all plugin files by name; and each path that is a file itself. Errors: OUT_OF_MEMORY. */
hal_status hal_search_files(const hal_strings *paths, const char *name, hal_strings *files);

#endif
