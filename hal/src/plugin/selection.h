/* Parses selections such as "plugin:1,id:xyz,auto" and matches them with devices. */
#ifndef HAL_SRC_PLUGIN_SELECTION_H
#define HAL_SRC_PLUGIN_SELECTION_H

#include "registry.h"
#include "base/text.h"

typedef struct hal_candidate {
    hal_module *module;
    uint32_t index;
} hal_candidate;

/* Devices in order of preference; begins as {0}. */
typedef struct hal_candidates {
    hal_candidate *items;
    uint32_t count;
    uint32_t capacity;
} hal_candidates;

#define HAL_SELECTION_ITEM_BYTES 192

/* The selection of a call: its argument, else HAL_BACKEND, else "auto". *origin is its name in
 * messages. */
const char *hal_selection_text(const char *selection, const char **origin);

/* Copies the next item of a comma list without spaces around it, and moves *rest after it. `item`
 * is empty at the end. Errors: INVALID_ARGUMENT for an empty list or item, or one too long. */
hal_status hal_selection_next(const char **rest, char item[HAL_SELECTION_ITEM_BYTES]);

/* Finds the devices of an item; loads only the plugins that it names. Needs the registry's lock.
 * Errors: INVALID_ARGUMENT for a syntax error, NOT_FOUND, errors of loading. */
hal_status hal_selection_match(const char *item, hal_candidates *found);

/* The choice of a null selection, "plugin:index" or nothing, and a line per device with the reason
 * for or against it. All modules have been enumerated. Needs the lock. */
void hal_selection_explain(const hal_modules *modules, hal_text *choice, hal_text *reasoning);

#endif
