/* Search paths of plugins, see search.h. */
#include "search.h"

#include "base/cancel.h"
#include "base/array.h"
#include "base/place.h"
#include "base/platform.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const suffixes[] = {".so", ".dylib"};

/* dlopen would search a name without a slash elsewhere. */
static hal_status paths_add(hal_strings *paths, const char *name, size_t length)
{
    char *named = strndup(name, length);
    errno = 0;
    char *whole = named ? realpath(named, NULL) : NULL;
    const char *path = whole ? whole : errno != ENOMEM ? named : NULL;
    const hal_status status =
        path ? hal_strings_add(paths, path, strlen(path))
             : hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for HAL_PLUGIN_PATH");
    free(whole);
    free(named);
    return status;
}

static hal_status paths_add_variable(hal_strings *paths)
{
    const char *rest = getenv("HAL_PLUGIN_PATH");
    while (rest && *rest) {
        const size_t length = strcspn(rest, ":");
        if (length > 0) {
            HAL_TRY(paths_add(paths, rest, length));
        }
        rest += length + (rest[length] == ':');
    }
    return HAL_OK;
}

char *hal_search_own_file(const char *name)
{
    char *path = NULL;
    const char *folder = hal_place_library();
    return folder && asprintf(&path, "%s/halyard/%s", folder, name) >= 0 ? path : NULL;
}

static hal_status paths_add_own_folder(hal_strings *paths)
{
    if (!hal_place_library()) {
        return HAL_OK;
    }
    char *folder = hal_search_own_file("plugins");
    const hal_status status =
        folder ? hal_strings_add(paths, folder, strlen(folder))
               : hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the folder of plugins");
    free(folder);
    return status;
}

static hal_status files_add(const char *folder, const char *file, hal_strings *files)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, file) < 0) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the path of %s", file);
    }
    const hal_status status = hal_strings_add(files, path, strlen(path));
    free(path);
    return status;
}

static int is_plugin_file(const struct dirent *entry)
{
    return hal_plugin_name_bytes(entry->d_name) > 0;
}

/* The first of the plugin's possible files that is there. */
static hal_status add_named(const char *folder, const char *name, hal_strings *files)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char file[128];
        char *path = NULL;
        struct stat what;
        snprintf(file, sizeof file, "hal_%s%s", name, suffixes[i]);
        if (asprintf(&path, "%s/%s", folder, file) < 0) {
            return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the path of %s", file);
        }
        const bool there = lstat(path, &what) == 0;
        free(path);
        if (there) {
            return files_add(folder, file, files);
        }
    }
    return HAL_OK;
}

/* alphasort follows the locale. */
static int entries_compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static hal_status files_add_folder(const char *folder, const char *name, hal_strings *files)
{
    HAL_UNCANCELLED;
    struct dirent **entries = NULL;
    if (name) {
        return add_named(folder, name, files);
    }
    errno = 0;
    const int count = scandir(folder, &entries, is_plugin_file, entries_compare);
    hal_status status = count < 0 && errno == ENOMEM
                            ? hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to list %s", folder)
                            : HAL_OK;
    for (int i = 0; i < count; i++) {
        if (status == HAL_OK) {
            status = files_add(folder, entries[i]->d_name, files);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Whether a path that is not there was meant as a file. */
static bool names_file(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const size_t bytes = strlen(suffixes[i]);
        if (length > bytes && strcmp(path + length - bytes, suffixes[i]) == 0) {
            return true;
        }
    }
    return false;
}

size_t hal_plugin_name_bytes(const char *file)
{
    const size_t length = strlen(file);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const size_t rest = strlen("hal_") + strlen(suffixes[i]);
        if (length > rest && strncmp(file, "hal_", 4) == 0 &&
            strcmp(file + length - strlen(suffixes[i]), suffixes[i]) == 0) {
            return length - rest;
        }
    }
    return 0;
}

hal_status hal_strings_add(hal_strings *strings, const char *item, size_t bytes)
{
    if (!HAL_ARRAY_RESERVE(strings->items, strings->capacity, (uint64_t)strings->count + 1)) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a list of %u names",
                        strings->count + 1);
    }
    char *copy = strndup(item, bytes);
    if (!copy) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a name of %zu bytes", bytes);
    }
    strings->items[strings->count++] = copy;
    return HAL_OK;
}

void hal_strings_free(hal_strings *strings)
{
    for (uint32_t i = 0; i < strings->count; i++) {
        free(strings->items[i]);
    }
    free(strings->items);
    memset(strings, 0, sizeof *strings);
}

hal_status hal_search_paths(hal_strings *paths)
{
    const hal_status status = hal_process_is_secure() ? HAL_OK : paths_add_variable(paths);
    return status == HAL_OK ? paths_add_own_folder(paths) : status;
}

hal_status hal_search_files(const hal_strings *paths, const char *name, hal_strings *files)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        struct stat what;
        const bool exists = stat(path, &what) == 0;
        if (exists && S_ISDIR(what.st_mode)) {
            HAL_TRY(files_add_folder(path, name, files));
        } else if (exists || names_file(path)) {
            /* A named file that is missing is reported. */
            HAL_TRY(hal_strings_add(files, path, strlen(path)));
        }
    }
    return HAL_OK;
}
