/* The names of quirks, and HAL_METAL_QUIRKS. */
#include "quirks.h"

#include "status.h"

#include <kit/environment.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t quirk;
} known[] = {
    {"slow_half", METAL_QUIRK_SLOW_HALF},     {"no_subgroups", METAL_QUIRK_NO_SUBGROUPS},
    {"no_matrices", METAL_QUIRK_NO_MATRICES}, {"no_archives", METAL_QUIRK_NO_ARCHIVES},
    {"in_order", METAL_QUIRK_IN_ORDER},       {"staged_memory", METAL_QUIRK_STAGED_MEMORY},
};

/* Returns the quirk of the next name, 0 for an unknown one, and advances the list past it. */
static uint32_t list_next(const char **list)
{
    const size_t length = strcspn(*list, ",");
    uint32_t quirk = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].name) == length && strncmp(*list, known[i].name, length) == 0) {
            quirk = known[i].quirk;
        }
    }
    *list += length + ((*list)[length] == ',');
    return quirk;
}

uint32_t metal_quirks(void)
{
    const char *list = secure_getenv("HAL_METAL_QUIRKS");
    uint32_t quirks = 0;
    while (list && *list != '\0') {
        quirks |= list_next(&list);
    }
    return quirks;
}

void metal_quirk_at(uint32_t quirks, uint32_t index, hal_quirk *quirk)
{
    for (size_t i = 0, seen = 0; i < sizeof known / sizeof known[0]; i++) {
        if (quirks & known[i].quirk && seen++ == index) {
            quirk->name = known[i].name;
            quirk->reason = "HAL_METAL_QUIRKS says so";
            quirk->is_active = 1;
        }
    }
}

hal_status metal_quirks_check(void)
{
    const char *list = secure_getenv("HAL_METAL_QUIRKS");
    for (const char *rest = list; rest && *rest != '\0';) {
        if (list_next(&rest) == 0) {
            return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "HAL_METAL_QUIRKS: expected names separated by commas, got %.100s; "
                            "the names are slow_half, no_subgroups, no_matrices, no_archives, "
                            "in_order, staged_memory",
                            list);
        }
    }
    return HAL_OK;
}
