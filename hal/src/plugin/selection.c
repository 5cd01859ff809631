/* Selection of devices: the grammar of HAL_BACKEND and the default choice. Needs the registry's
 * lock. */
#include "selection.h"

#include "base/array.h"
#include "base/status.h"

#include <hal/device.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* isspace and strcasestr follow the locale: in a Turkish one i and I are different letters. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether `text` begins with `word`, in letters of either case. */
static bool begins_with(const char *text, const char *word)
{
    while (*word && lower(*text) == lower(*word)) {
        text++;
        word++;
    }
    return !*word;
}

static bool contains(const char *text, const char *word)
{
    while (*text && !begins_with(text, word)) {
        text++;
    }
    return begins_with(text, word);
}

static hal_status candidates_add(hal_candidates *found, hal_module *module, uint32_t index)
{
    if (!HAL_ARRAY_RESERVE(found->items, found->capacity, (uint64_t)found->count + 1)) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a list of devices");
    }
    found->items[found->count++] = (hal_candidate){module, index};
    return HAL_OK;
}

static void text_add_paths(hal_text *text, const hal_strings *paths)
{
    hal_text_add(text, "searched");
    for (uint32_t i = 0; i < paths->count; i++) {
        hal_text_add(text, "%s %s", i ? "," : "", paths->items[i]);
    }
}

static void text_add_failures(hal_text *text, const hal_modules *modules)
{
    for (uint32_t i = 0; i < modules->count; i++) {
        if (modules->items[i]->message) {
            hal_text_add(text, "; %s", modules->items[i]->message);
        }
    }
}

/* Software devices are slower than the cpu plugin. */
static uint32_t candidate_rank(const hal_candidate *candidate)
{
    const uint32_t kind = candidate->module->infos[candidate->index].kind;
    return kind == HAL_DEVICE_SOFTWARE ? HAL_DEVICE_CPU + 1u : kind;
}

/* Stable: devices of one kind keep the search order. */
static void candidates_sort(hal_candidates *found)
{
    for (uint32_t i = 1; i < found->count; i++) {
        const hal_candidate item = found->items[i];
        const uint32_t rank = candidate_rank(&item);
        uint32_t at = i;
        while (at > 0 && candidate_rank(&found->items[at - 1]) > rank) {
            found->items[at] = found->items[at - 1];
            at--;
        }
        found->items[at] = item;
    }
}

/* Every device of every plugin, by kind; or, if `id` is not null, those with this id. */
static hal_status match_all(const char *id, hal_candidates *found)
{
    hal_strings paths = {0};
    hal_modules modules = {0};
    hal_text seen = {0};
    hal_status status = hal_registry_find(NULL, &paths, &modules);
    for (uint32_t i = 0; status == HAL_OK && i < modules.count; i++) {
        hal_module *module = modules.items[i];
        if (hal_registry_hidden_by(&modules, i) || hal_module_enumerate(module) != HAL_OK) {
            continue;
        }
        for (uint32_t d = 0; status == HAL_OK && d < module->info_count; d++) {
            hal_text_add(&seen, "%s%s:%u is id:%s", seen.length ? ", " : "", module->table.name, d,
                         module->infos[d].id);
            if (!id || (strlen(id) == strlen(module->infos[d].id) &&
                        begins_with(module->infos[d].id, id))) {
                status = candidates_add(found, module, d);
            }
        }
    }
    if (status == HAL_OK && found->count == 0) {
        if (!id) {
            text_add_paths(&seen, &paths);
        }
        text_add_failures(&seen, &modules);
        status = id ? hal_fail(HAL_ERROR_NOT_FOUND, "expected the id of a device, got \"%s\"; %s",
                               id, seen.length ? hal_text_get(&seen) : "there are no devices")
                    : hal_fail(HAL_ERROR_NO_DEVICE, "expected a device, got none; %s",
                               hal_text_get(&seen));
    }
    if (!id) {
        candidates_sort(found);
    }
    hal_text_free(&seen);
    free(modules.items);
    hal_strings_free(&paths);
    return status;
}

/* The first device of the best kind: drivers may list processors before cards. */
static uint32_t preferred_device(hal_module *module)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < module->info_count; i++) {
        if (candidate_rank(&(hal_candidate){module, i}) <
            candidate_rank(&(hal_candidate){module, best})) {
            best = i;
        }
    }
    return best;
}

static hal_status fail_device(const hal_module *module, const char *which, bool by_index)
{
    hal_text text = {0};
    for (uint32_t i = 0; i < module->info_count; i++) {
        hal_text_add(&text, "%s%u \"%s\"", i ? ", " : "", i, module->infos[i].name);
    }
    const hal_status status = hal_fail(
        HAL_ERROR_NOT_FOUND, "plugin %s: expected %s, got \"%s\"; its devices are %s",
        module->table.name, by_index ? "the index of a device" : "a part of a device's name", which,
        hal_text_get(&text));
    hal_text_free(&text);
    return status;
}

static hal_status match_device(hal_module *module, const char *which, hal_candidates *found)
{
    if (!which) {
        return candidates_add(found, module, preferred_device(module));
    }
    if (which[strspn(which, "0123456789")] == 0) {
        const unsigned long long index = strtoull(which, NULL, 10);
        return index < module->info_count ? candidates_add(found, module, (uint32_t)index)
                                          : fail_device(module, which, true);
    }
    for (uint32_t i = 0; i < module->info_count; i++) {
        if (contains(module->infos[i].name, which)) {
            return candidates_add(found, module, i);
        }
    }
    return fail_device(module, which, false);
}

static hal_status fail_plugin(const char *name, const hal_strings *paths)
{
    hal_text text = {0};
    hal_strings files = {0};
    text_add_paths(&text, paths);
    hal_search_files(paths, NULL, &files);
    hal_text_add(&text, "; found%s", files.count ? "" : " no plugin");
    for (uint32_t i = 0; i < files.count; i++) {
        const char *slash = strrchr(files.items[i], '/');
        hal_text_add(&text, "%s %s", i ? "," : "", slash ? slash + 1 : files.items[i]);
    }
    const hal_status status = hal_fail(HAL_ERROR_NOT_FOUND,
                                       "expected the name of a plugin, got "
                                       "\"%s\": no file hal_%s.so; %s",
                                       name, name, hal_text_get(&text));
    hal_strings_free(&files);
    hal_text_free(&text);
    return status;
}

static hal_status match_plugin(const char *name, const char *which, hal_candidates *found)
{
    hal_strings paths = {0};
    hal_modules modules = {0};
    hal_status status = hal_registry_find(name, &paths, &modules);
    hal_status first = HAL_OK;
    char *first_message = NULL;
    bool found_plugin = false;
    for (uint32_t i = 0; status == HAL_OK && found->count == 0 && i < modules.count; i++) {
        hal_module *module = modules.items[i];
        const bool by_file_name = hal_module_file_is(module, name);
        if (module->file_name && !by_file_name) {
            continue;
        }
        /* Only the table has the name of a plugin whose file HAL_PLUGIN_PATH names. */
        hal_status module_status = hal_module_load(module);
        if (module_status == HAL_OK && strcmp(module->table.name, name) != 0) {
            continue;
        }
        if (module_status != HAL_OK && !by_file_name) {
            continue;
        }
        found_plugin = true;
        if (module_status == HAL_OK) {
            module_status = hal_module_enumerate(module);
        }
        if (module_status == HAL_OK) {
            module_status = match_device(module, which, found);
        }
        if (module_status != HAL_OK && first == HAL_OK) {
            first = module_status;
            first_message = strdup(hal_status_message());
        }
    }
    if (status == HAL_OK && found->count == 0) {
        status = found_plugin ? hal_fail(first, "%s", first_message ? first_message : "")
                              : fail_plugin(name, &paths);
    }
    free(first_message);
    free(modules.items);
    hal_strings_free(&paths);
    return status;
}

static const char *rejection_reason(const hal_candidate *candidate, const hal_candidate *chosen)
{
    static const char *const reasons[] = {
        [HAL_DEVICE_INTEGRATED] = "an integrated device comes after the chosen kind",
        [HAL_DEVICE_VIRTUAL] = "a virtual device comes after the chosen kind",
        [HAL_DEVICE_CPU] = "the processor comes after the chosen kind",
        [HAL_DEVICE_SOFTWARE] = "software devices come last",
    };
    const hal_device_info *info = &candidate->module->infos[candidate->index];
    const hal_device_info *best = &chosen->module->infos[chosen->index];
    if (info->id[0] && strcmp(info->id, best->id) == 0) {
        return "the same card as the chosen one";
    }
    if (info->kind != best->kind) {
        return reasons[info->kind];
    }
    return candidate->module == chosen->module ? "a device with a smaller number is as good"
                                               : "a plugin found earlier has one as good";
}

const char *hal_selection_text(const char *selection, const char **origin)
{
    const char *variable = getenv("HAL_BACKEND");
    if (selection) {
        *origin = "selection";
        return selection;
    }
    if (variable && *variable) {
        *origin = "HAL_BACKEND";
        return variable;
    }
    *origin = "default choice";
    return "auto";
}

hal_status hal_selection_next(const char **rest, char item[HAL_SELECTION_ITEM_BYTES])
{
    item[0] = 0;
    if (!*rest) {
        return HAL_OK;
    }
    const char *begin = *rest;
    const char *end = begin + strcspn(begin, ",");
    *rest = *end ? end + 1 : NULL;
    while (begin < end && is_blank(*begin)) {
        begin++;
    }
    while (end > begin && is_blank(end[-1])) {
        end--;
    }
    const size_t length = (size_t)(end - begin);
    if (length == 0 || length >= HAL_SELECTION_ITEM_BYTES) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        length
                            ? "expected an item of up to %d characters, got a longer one"
                            : "expected plugin, plugin:index, plugin:text, id:text or auto (up to "
                              "%d characters), got an empty item",
                        HAL_SELECTION_ITEM_BYTES - 1);
    }
    memcpy(item, begin, length);
    item[length] = 0;
    return HAL_OK;
}

hal_status hal_selection_match(const char *item, hal_candidates *found)
{
    const size_t length = strspn(item, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (length == 0 || length >= HAL_PLUGIN_NAME_BYTES || (item[length] && item[length] != ':')) {
        return hal_fail(
            HAL_ERROR_INVALID_ARGUMENT,
            "expected a plugin's name of lower case letters, digits and underscores, got "
            "\"%s\"",
            item);
    }
    char name[HAL_PLUGIN_NAME_BYTES];
    memcpy(name, item, length);
    name[length] = 0;
    const char *which = item[length] ? item + length + 1 : NULL;
    if (which && !*which) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "expected an index, a part of a name or an id after the colon, got \"%s\"",
                        item);
    }
    if (strcmp(name, "auto") == 0) {
        return which ? hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                                "expected auto without an index, got \"%s\"", item)
                     : match_all(NULL, found);
    }
    if (strcmp(name, "id") == 0) {
        return which ? match_all(which, found)
                     : hal_fail(HAL_ERROR_INVALID_ARGUMENT, "expected id:text, got \"id\"");
    }
    return match_plugin(name, which, found);
}

void hal_selection_explain(const hal_modules *modules, hal_text *choice, hal_text *reasoning)
{
    const char *origin;
    const char *rest = hal_selection_text(NULL, &origin);
    char item[HAL_SELECTION_ITEM_BYTES];
    hal_candidates found = {0};
    while (found.count == 0) {
        const hal_status status = hal_selection_next(&rest, item);
        if (status == HAL_OK && !item[0]) {
            break;
        }
        if (status != HAL_OK || hal_selection_match(item, &found) != HAL_OK) {
            hal_text_add(reasoning, "%s: %s\n", origin, hal_status_message());
        }
    }
    const hal_candidate *chosen = found.count ? &found.items[0] : NULL;
    if (chosen) {
        hal_text_add(choice, "%s:%u", chosen->module->table.name, chosen->index);
    }
    const bool by_default = strcmp(item, "auto") == 0;
    for (uint32_t i = 0; i < modules->count; i++) {
        hal_module *module = modules->items[i];
        if (hal_registry_hidden_by(modules, i)) {
            continue;
        }
        for (uint32_t d = 0; module->enumerated && d < module->info_count; d++) {
            const hal_candidate candidate = {module, d};
            const bool taken = chosen && chosen->module == module && chosen->index == d;
            hal_text_add(reasoning, "%s:%u: ", module->table.name, d);
            if (taken) {
                hal_text_add(reasoning, "chosen by %s%s%s\n", origin, by_default ? "" : ", item ",
                             by_default ? "" : item);
            } else if (by_default && chosen) {
                hal_text_add(reasoning, "not chosen: %s\n", rejection_reason(&candidate, chosen));
            } else {
                hal_text_add(reasoning, "not chosen: %s names another\n", origin);
            }
        }
    }
    free(found.items);
}
