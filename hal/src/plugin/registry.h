/* The registry: all plugin files that the process has found, under one lock. */
#ifndef HAL_SRC_PLUGIN_REGISTRY_H
#define HAL_SRC_PLUGIN_REGISTRY_H

#include "loader.h"
#include "search.h"

/* Guards registry, loader, selection, and opening and closing of devices. */
void hal_registry_lock(void);
void hal_registry_unlock(void);

/* Modules in search order; begins as {0}. */
typedef struct hal_modules {
    hal_module **items;
    uint32_t count;
} hal_modules;

/* Finds the modules for a plugin's name, or all for null, without loading them. Needs the lock.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_registry_find(const char *name, hal_strings *paths, hal_modules *modules);

/* The earlier loaded module with the name of module `index`, which is used instead; null if there
 * is none. */
const hal_module *hal_registry_hidden_by(const hal_modules *modules, uint32_t index);

#endif
