/* The registry of plugin files and its report. Called by core/device_lifecycle.c, the selection,
 * and programs such as hal-info. */
#include "registry.h"

#include "selection.h"
#include "base/status.h"
#include "base/text.h"

#include <hal/device.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct report {
    hal_registry_report public;
    hal_strings paths;
    hal_strings texts; /* other strings of the report */
    hal_plugin_report *plugins;
} report;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hal_module *modules_known;

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

static hal_status report_add_text(report *made, const char *text, const char **kept)
{
    const hal_status status = hal_strings_add(&made->texts, text, strlen(text));
    if (status == HAL_OK) {
        *kept = made->texts.items[made->texts.count - 1];
    }
    return status;
}

static hal_status report_add_plugin(report *made, const hal_modules *modules, uint32_t index)
{
    const hal_module *module = modules->items[index];
    hal_plugin_report *plugin = &made->plugins[index];
    plugin->name = module->loaded ? module->table.name : "";
    plugin->version = module->loaded ? module->table.version : "";
    plugin->status = module->status;
    plugin->device_count = module->status == HAL_OK ? module->info_count : 0;
    plugin->devices = module->infos;

    const char *message = module->message ? module->message : "";
    const hal_module *other = hal_registry_hidden_by(modules, index);
    hal_text hidden = {0};
    if (other) {
        hal_text_add(&hidden, "plugin %s: not used: plugin %s is %s", module->path,
                     other->table.name, other->path);
        message = hal_text_get(&hidden);
        plugin->status = HAL_ERROR_INVALID_STATE;
        plugin->device_count = 0;
    }
    hal_status status = report_add_text(made, module->path, &plugin->path);
    if (status == HAL_OK) {
        status = report_add_text(made, message, &plugin->message);
    }
    hal_text_free(&hidden);
    return status;
}

static hal_status report_fill(report *made, hal_modules *modules)
{
    made->plugins = calloc(modules->count ? modules->count : 1, sizeof *made->plugins);
    if (!made->plugins) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_registry_report_create: no host memory");
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < modules->count; i++) {
        if (!hal_registry_hidden_by(modules, i)) {
            hal_module_enumerate(modules->items[i]); /* the module keeps a failure */
        }
        status = report_add_plugin(made, modules, i);
    }
    hal_text choice = {0};
    hal_text reasoning = {0};
    if (status == HAL_OK) {
        hal_selection_explain(modules, &choice, &reasoning);
        status = report_add_text(made, hal_text_get(&choice), &made->public.choice);
    }
    if (status == HAL_OK) {
        status = report_add_text(made, hal_text_get(&reasoning), &made->public.reasoning);
    }
    hal_text_free(&choice);
    hal_text_free(&reasoning);
    made->public.plugin_count = modules->count;
    made->public.plugins = made->plugins;
    made->public.path_count = made->paths.count;
    made->public.paths = (const char *const *)made->paths.items;
    return status;
}

void hal_registry_lock(void)
{
    pthread_mutex_lock(&lock);
}

void hal_registry_unlock(void)
{
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
        int twice = 0;
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

hal_status hal_registry_report_create(hal_registry_report **out)
{
    if (!out) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_registry_report_create: report: expected a valid pointer, got null");
    }
    *out = NULL;
    report *made = calloc(1, sizeof *made);
    hal_modules modules = {0};
    hal_status status =
        made ? HAL_OK
             : hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_registry_report_create: no host memory");
    hal_registry_lock();
    if (status == HAL_OK) {
        status = hal_registry_find(NULL, &made->paths, &modules);
    }
    if (status == HAL_OK) {
        status = report_fill(made, &modules);
    }
    hal_registry_unlock();
    free(modules.items);
    if (status != HAL_OK) {
        hal_registry_report_destroy(made ? &made->public : NULL);
        return status;
    }
    *out = &made->public;
    return HAL_OK;
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

void hal_registry_report_destroy(hal_registry_report *out)
{
    report *made = (report *)(void *)out; /* its first member */
    if (made) {
        hal_strings_free(&made->paths);
        hal_strings_free(&made->texts);
        free(made->plugins);
        free(made);
    }
}
