/* See site.h. */
#include "site.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64 };

static uint32_t site_hash(const char *file, uint32_t line)
{
    uint32_t hash = line * UINT32_C(0x9e3779b1);
    for (const char *c = file; *c; c++) {
        hash = (hash ^ (uint8_t)*c) * UINT32_C(0x01000193);
    }
    return hash ^ hash >> 15;
}

/* The slot that has the site, or the free one where it belongs. */
static uint32_t *site_slot(const ops_sites *sites, const char *file, uint32_t line)
{
    uint32_t i = site_hash(file, line);
    for (;; i++) {
        uint32_t *slot = &sites->slots[i & (sites->slot_count - 1)];
        const ops_kept_site *item = *slot ? &sites->items[*slot - 1] : NULL;
        if (!item || (item->line == line && strcmp(item->file, file) == 0)) {
            return slot;
        }
    }
}

/* Makes room for one more. At most half of the slots are taken. */
static bool sites_grow(ops_sites *sites)
{
    if (sites->count == sites->capacity) {
        const uint32_t capacity = sites->capacity ? 2 * sites->capacity : FIRST_SLOTS / 2;
        ops_kept_site *items = realloc(sites->items, capacity * sizeof *items);
        if (!items) {
            return false;
        }
        sites->items = items;
        sites->capacity = capacity;
    }
    if (2 * (sites->count + 1) <= sites->slot_count) {
        return true;
    }
    const uint32_t count = sites->slot_count ? 2 * sites->slot_count : FIRST_SLOTS;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(sites->slots);
    sites->slots = slots;
    sites->slot_count = count;
    for (uint32_t i = 0; i < sites->count; i++) {
        *site_slot(sites, sites->items[i].file, sites->items[i].line) = i + 1;
    }
    return true;
}

/* The kept text of a file, or a copy. */
static char *file_keep(const ops_sites *sites, const char *file, bool *owns)
{
    for (uint32_t i = sites->count; i-- > 0;) {
        if (strcmp(sites->items[i].file, file) == 0) {
            *owns = false;
            return sites->items[i].file;
        }
    }
    *owns = true;
    return strdup(file);
}

uint32_t ops_sites_number(ops_sites *sites, ops_site site)
{
    if (!site.file || !sites_grow(sites)) {
        return 0;
    }
    uint32_t *slot = site_slot(sites, site.file, site.line);
    if (*slot) {
        return *slot;
    }
    ops_kept_site made = {.line = site.line};
    made.file = file_keep(sites, site.file, &made.owns_file);
    if (!made.file) {
        return 0;
    }
    sites->items[sites->count++] = made;
    return *slot = sites->count;
}

ops_site ops_sites_get(const ops_sites *sites, uint32_t number)
{
    if (number == 0) {
        return (ops_site){NULL, 0};
    }
    const ops_kept_site *item = &sites->items[number - 1];
    const char *slash = strrchr(item->file, '/');
    return (ops_site){slash ? slash + 1 : item->file, item->line};
}

void ops_sites_free(ops_sites *sites)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        if (sites->items[i].owns_file) {
            free(sites->items[i].file);
        }
    }
    free(sites->items);
    free(sites->slots);
    *sites = (ops_sites){0};
}
