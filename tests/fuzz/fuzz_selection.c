/* Fuzz target: HAL_BACKEND and HAL_PLUGIN_PATH. The first byte chooses the path: existing folders
 * and files, with which devices are opened as the text selects; or the text itself, for the search
 * alone. With the mock plugins a simple model computes the selected device. Run by ./dev check as
 * the ctest fuzz_selection. */
#include <ctype.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/search.h"
#include "plugin/selection.h"

enum { TEXT_BYTES = 1024, PLUGINS = 2, DEVICES = 2 };

static const char *const names[PLUGINS] = {"mock", "mock_two"};

/* The plugins that a search path reaches, in its order. */
typedef struct reach {
    uint32_t count;
    uint32_t plugins[PLUGINS];
} reach;

typedef struct choice {
    int is_found;
    uint32_t plugin, index;
} choice;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        fprintf(stderr, "The last message of hal: %s\n", hal_status_message());
        abort();
    }
}

/* The files that a path names are listed; none is opened, as they may be anything. */
static void search(const char *path)
{
    hal_strings paths = {0}, files = {0};
    setenv("HAL_PLUGIN_PATH", path, 1);
    must(hal_search_paths(&paths) == HAL_OK && paths.count >= 1);
    must(hal_search_files(&paths, NULL, &files) == HAL_OK);
    for (uint32_t i = 0; i < paths.count; i++) {
        must(paths.items[i][0] != 0);
    }
    hal_strings_free(&files);
    must(hal_search_files(&paths, "mock", &files) == HAL_OK);
    hal_strings_free(&files);
    hal_strings_free(&paths);
}

static void add(reach *reached, uint32_t plugin)
{
    if (reached->count == 0 || (reached->count == 1 && reached->plugins[0] != plugin)) {
        reached->plugins[reached->count++] = plugin;
    }
}

static void make_path(uint32_t bits, reach *reached)
{
    static const char *const places[] = {"",           TEST_PLUGINS "/mock/hal_mock_two.so",
                                         "/nowhere",   TEST_PLUGINS "/mock",
                                         "/dev/null",  TEST_PLUGINS "/short",
                                         TEST_PLUGINS, TEST_PLUGINS "/no_device/hal_no_device.so"};
    char path[3 * TEXT_BYTES] = "";
    for (uint32_t i = 0; i < 2; i++, bits >>= 3) {
        strcat(strcat(path, places[bits % 8]), ":");
        if (bits % 8 == 1) {
            add(reached, 1);
        } else if (bits % 8 == 3) {
            add(reached, 0);
            add(reached, 1);
        }
    }
    setenv("HAL_PLUGIN_PATH", path, 1);
}

static choice model_id(const char *id, const reach *reached)
{
    for (uint32_t i = 0; i < reached->count; i++) {
        for (uint32_t d = 0; d < DEVICES; d++) {
            char text[64];
            snprintf(text, sizeof text, "%s-id-%u", names[reached->plugins[i]], d);
            if (strcasecmp(text, id) == 0) {
                return (choice){1, reached->plugins[i], d};
            }
        }
    }
    return (choice){0};
}

static choice model_item(char *item, const reach *reached)
{
    const choice nothing = {0};
    while (isspace((unsigned char)*item)) {
        item++;
    }
    size_t length = strlen(item);
    while (length > 0 && isspace((unsigned char)item[length - 1])) {
        item[--length] = 0;
    }
    if (length >= HAL_SELECTION_ITEM_BYTES) {
        return nothing;
    }
    if (strcmp(item, "auto") == 0 && reached->count > 0) {
        return (choice){1, reached->plugins[0], 0};
    }
    if (strncmp(item, "id:", 3) == 0) {
        return model_id(item + 3, reached);
    }
    for (uint32_t i = 0; i < reached->count; i++) {
        const uint32_t plugin = reached->plugins[i];
        const size_t name_length = strlen(names[plugin]);
        if (strncmp(item, names[plugin], name_length) != 0) {
            continue;
        }
        const char *which = item + name_length;
        if (*which == 0) {
            return (choice){1, plugin, 0};
        }
        if (*which++ != ':' || *which == 0) {
            continue;
        }
        for (uint32_t d = 0; d < DEVICES; d++) {
            char text[64];
            snprintf(text, sizeof text, "Mock device %u of %s", d, names[plugin]);
            const int is_number = which[strspn(which, "0123456789")] == 0;
            if (is_number ? strtoull(which, NULL, 10) == d
                          : strcasestr(text, which)) {
                return (choice){1, plugin, d};
            }
        }
    }
    return nothing;
}

/* The device of the first item that means one. */
static choice model(const char *selection, const reach *reached)
{
    char copy[TEXT_BYTES];
    snprintf(copy, sizeof copy, "%s", selection);
    for (char *item = copy; item;) {
        char *comma = strchr(item, ',');
        if (comma) {
            *comma = 0;
        }
        const choice found = model_item(item, reached);
        if (found.is_found) {
            return found;
        }
        item = comma ? comma + 1 : NULL;
    }
    return (choice){0};
}

static void open_one(const char *selection, const reach *reached, int by_variable)
{
    hal_device *device = NULL;
    setenv("HAL_BACKEND", by_variable ? selection : "mock_two:1", 1);
    const hal_status status = hal_device_open(by_variable ? NULL : selection, &device);
    const choice meant =
        model(by_variable && !selection[0] ? "auto" : selection, reached);
    if (meant.is_found) {
        must(status == HAL_OK);
        must(strcmp(hal_device_get_plugin_name(device), names[meant.plugin]) == 0);
        must(hal_device_get_index(device) == meant.index);
    } else if (status != HAL_OK) {
        must(!device && hal_status_message()[0] != 0);
    } else {
        /* Only what is next to the library, of which the model knows nothing. */
        must(strncmp(hal_device_get_plugin_name(device), "mock", 4) != 0);
    }
    hal_device_release(device);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_BYTES];
    if (size < 2 || size > TEXT_BYTES) {
        return 0;
    }
    memcpy(text, data + 2, size - 2);
    text[size - 2] = 0;
    if (data[0] % 8 == 7) {
        search(text);
    } else {
        reach reached = {0};
        make_path(data[1], &reached);
        open_one(text, &reached, data[0] % 2);
    }
    return 0;
}
