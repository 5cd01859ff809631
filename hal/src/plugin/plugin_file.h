/* A look at a plugin's file before the system's loader maps it. Used by the loader. */
#ifndef HAL_SRC_PLUGIN_PLUGIN_FILE_H
#define HAL_SRC_PLUGIN_PLUGIN_FILE_H

#include <hal/status.h>

/* Refuses what the system's loader would hang or crash on, or has no good words for: what is not
 * there, no regular file (a folder, a pipe), an ELF file of another machine, or one that ends
 * before its segments do. Other faults are left to the loader.
 * Threads: any. Errors: NOT_FOUND, BAD_PLUGIN, with the path. */
hal_status hal_plugin_file_check(const char *path);

#endif
