/* Selections such as "plugin:1,id:xyz,auto": read, and matched with the devices that there are. */
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

/* The text that counts for a call: its own, else HAL_BACKEND, else "auto"; *origin says which in
 * words for messages. */
const char *hal_selection_text(const char *selection, const char **origin);

/* Takes the next item of a comma list, without spaces around it, and moves *rest after it. At the
 * end `item` is empty. Errors: INVALID_ARGUMENT for an empty list or item, or one too long. */
hal_status hal_selection_next(const char **rest, char item[HAL_SELECTION_ITEM_BYTES]);

/* The devices that an item stands for; initialises the plugins that it asks for and no other.
 * Needs the registry's lock.
 * Errors: INVALID_ARGUMENT for an item that cannot be read, NOT_FOUND, what loading met. */
hal_status hal_selection_match(const char *item, hal_candidates *found);

/* What a null selection would open, "plugin:index" or nothing, and a line for each device that
 * says why it is, or is not, the choice. All modules have been enumerated. Needs the lock. */
void hal_selection_explain(const hal_modules *modules, hal_text *choice, hal_text *reasoning);

#endif
