/* The compile caches of hal and of the known drivers: figures of first calls need empty ones. */
#ifndef BENCH_HARNESS_CACHES_H
#define BENCH_HARNESS_CACHES_H

#include <stdbool.h>

/* Sets the variables, before a device is opened, so that all caches are in a folder; hal's in
 * `hal_cache`, "off" for none, or null for the folder as well. */
void caches_use_folder(const char *folder, const char *hal_cache);

/* No cache keeps anything, except those of drivers that have no switch: they are in a new folder,
 * whose name `folder` receives, for caches_remove. False where there is no room for one. */
bool caches_disable(char folder[64]);

/* Makes a new folder in /tmp. False where that fails. */
bool caches_make_folder(char folder[64]);

/* Deletes a folder and all in it; an empty name does nothing. */
void caches_remove(const char *folder);

#endif
