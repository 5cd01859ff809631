/* hal_registry_report: all plugins and devices, and the reasons of the default choice. */
#include "registry.h"
#include "selection.h"

#include "base/status.h"
#include "base/text.h"

#include <hal/device.h>
#include <stdlib.h>
#include <string.h>

typedef struct registry_report {
    hal_registry_report public;
    hal_strings paths;
    hal_strings texts; /* other strings of the report */
    hal_plugin_report *plugins;
} registry_report;

static hal_status report_add_text(registry_report *made, const char *text, const char **kept)
{
    HAL_TRY(hal_strings_add(&made->texts, text, strlen(text)));
    *kept = made->texts.items[made->texts.count - 1];
    return HAL_OK;
}

static hal_status report_add_plugin(registry_report *made, const hal_modules *modules,
                                    uint32_t index)
{
    const hal_module *module = modules->items[index];
    hal_plugin_report *plugin = &made->plugins[index];
    plugin->name = module->loaded ? module->table.name : "";
    plugin->version = module->loaded ? module->table.version : "";
    plugin->extensions = module->loaded && module->extensions ? module->extensions : "";
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

static hal_status report_fill(registry_report *made, hal_modules *modules)
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

hal_status hal_registry_report_create(hal_registry_report **out)
{
    if (!out) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_registry_report_create: report: expected a valid pointer, got null");
    }
    *out = NULL;
    registry_report *made = calloc(1, sizeof *made);
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

void hal_registry_report_destroy(hal_registry_report *out)
{
    registry_report *made = (registry_report *)(void *)out; /* its first member */
    if (made) {
        hal_strings_free(&made->paths);
        hal_strings_free(&made->texts);
        free(made->plugins);
        free(made);
    }
}
