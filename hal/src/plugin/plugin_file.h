/* Checks a plugin's file before dlopen. */
#ifndef HAL_SRC_PLUGIN_PLUGIN_FILE_H
#define HAL_SRC_PLUGIN_PLUGIN_FILE_H

#include <hal/status.h>

/* Refuses files on which dlopen hangs, crashes or has an unclear message: missing files, folders
 * and pipes, ELF files of another machine, truncated files. dlopen reports other faults.
 * Threads: any. Errors: NOT_FOUND, BAD_PLUGIN, with the path. */
hal_status hal_plugin_file_check(const char *path);

#endif
