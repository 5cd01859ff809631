/* The registry: the plugin files that the process has met, behind one lock. */
#ifndef HAL_SRC_PLUGIN_REGISTRY_H
#define HAL_SRC_PLUGIN_REGISTRY_H

#include "loader.h"
#include "search.h"

/* The lock of registry, loader and selection, and of opening and closing devices. */
void hal_registry_lock(void);
void hal_registry_unlock(void);

/* Modules in the order of the search; begins as {0}. */
typedef struct hal_modules {
    hal_module **items;
    uint32_t count;
} hal_modules;

/* The modules of what a search finds for a plugin's name, or for null all of them; nothing is
 * loaded. Needs the lock. Errors: OUT_OF_MEMORY. */
hal_status hal_registry_find(const char *name, hal_strings *paths, hal_modules *modules);

/* The first module of the list that has the name of module `index` and is loaded, when it is
 * another one: that one counts. Null otherwise. */
const hal_module *hal_registry_hidden_by(const hal_modules *modules, uint32_t index);

#endif
