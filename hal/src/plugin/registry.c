/* All plugin files that the process has found. */
#include "registry.h"

#include "base/fork.h"
#include "base/status.h"

#include <hal/device.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hal_module *modules_known;

/* The thread that holds the lock; meaningful to that thread only. */
static pthread_t owner;
static atomic_bool is_owned;

static bool is_own(void)
{
    return atomic_load(&is_owned) && pthread_equal(owner, pthread_self());
}

__attribute__((constructor)) static void guard_lock(void)
{
    hal_fork_guard(&lock, HAL_FORK_REGISTRY, is_own);
}

static hal_module *module_find(const char *path)
{
    for (hal_module *module = modules_known; module; module = module->next) {
        if (strcmp(module->path, path) == 0) {
            return module;
        }
    }
    hal_module *module = hal_module_create(path);
    if (module) {
        module->next = modules_known;
        modules_known = module;
    }
    return module;
}

void hal_registry_lock(void)
{
    pthread_mutex_lock(&lock);
    owner = pthread_self();
    atomic_store(&is_owned, true);
}

void hal_registry_unlock(void)
{
    atomic_store(&is_owned, false);
    pthread_mutex_unlock(&lock);
}

hal_status hal_registry_find(const char *name, hal_strings *paths, hal_modules *modules)
{
    hal_strings files = {0};
    hal_status status = hal_search_paths(paths);
    if (status == HAL_OK) {
        status = hal_search_files(paths, name, &files);
    }
    if (status == HAL_OK && files.count > 0) {
        modules->items = calloc(files.count, sizeof *modules->items);
    }
    for (uint32_t i = 0; status == HAL_OK && i < files.count; i++) {
        hal_module *module = modules->items ? module_find(files.items[i]) : NULL;
        if (!module) {
            status = hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for the list of plugins");
            break;
        }
        bool twice = false;
        for (uint32_t j = 0; j < modules->count; j++) {
            twice |= modules->items[j] == module;
        }
        if (!twice) {
            modules->items[modules->count++] = module;
        }
    }
    hal_strings_free(&files);
    return status;
}

const hal_module *hal_registry_hidden_by(const hal_modules *modules, uint32_t index)
{
    const hal_module *module = modules->items[index];
    for (uint32_t i = 0; i < index; i++) {
        const hal_module *other = modules->items[i];
        if (!other->loaded) {
            continue;
        }
        const char *name = other->table.name;
        if (module->loaded ? strcmp(module->table.name, name) == 0
                           : hal_module_file_is(module, name)) {
            return other;
        }
    }
    return NULL;
}

hal_status hal_registry_exclude(const char *path, const char *message)
{
    if (!path || !message) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_registry_exclude: %s: expected a string, got null",
                        path ? "message" : "path");
    }
    char *words = strdup(message);
    hal_registry_lock();
    hal_module *module = words ? module_find(path) : NULL;
    if (module) {
        free(module->excluded);
        module->excluded = words;
    }
    hal_registry_unlock();
    if (!module) {
        free(words);
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_registry_exclude: no host memory");
    }
    return HAL_OK;
}
