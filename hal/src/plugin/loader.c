/* Opens plugin files and checks them against the contract. */
#include "loader.h"

#include "device_info.h"
#include "host.h"
#include "base/cancel.h"
#include "base/log.h"
#include "plugin_file.h"
#include "search.h"
#include "base/status.h"
#include "base/text.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 4096u /* of a plugin */
#define DRAFT_SYMBOL \
    "hal_plugin_"    \
    "query" /* of drafts before 1.0 */

/* The message of dlopen is about the file itself, or about a library that it needs. */
static hal_status fail_dlopen(const hal_module *module, const char *words)
{
    if (strstr(words, "annot allocate memory")) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "plugin %s: %s", module->path, words);
    }
    const size_t length = strlen(module->path);
    const bool own = strncmp(words, module->path, length) == 0 && words[length] == ':';
    if (own || !strstr(words, "cannot open shared object file")) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN, "plugin %s: expected a loadable file, got: %s",
                        module->path, words);
    }
    return hal_fail(HAL_ERROR_LIBRARY_MISSING, "plugin %s: a library that it needs is missing: %s",
                    module->path, words);
}

static hal_status module_open(hal_module *module, hal_plugin_create_function *create)
{
    HAL_UNCANCELLED;
    const hal_status there = hal_plugin_file_check(module->path);
    if (there != HAL_OK) {
        return there;
    }
    /* The last line of the log names the file that crashes here, or in its query. */
    hal_log(HAL_LOG_DEBUG, "opening plugin %s", module->path);
    void *library = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *words = dlerror();
        return fail_dlopen(module, words ? words : "no reason given");
    }
    /* Never closed: drivers leave threads and handlers that would be unmapped. */
    const bool is_draft = dlsym(library, DRAFT_SYMBOL) != NULL;
    void *symbol = dlsym(library, HAL_PLUGIN_CREATE_SYMBOL);
    if (!symbol && is_draft) {
        return hal_fail(HAL_ERROR_TOO_OLD,
                        "plugin %s: expected %s, got %s of a draft of the plugin ABI; build it "
                        "again with the headers of this release",
                        module->path, HAL_PLUGIN_CREATE_SYMBOL, DRAFT_SYMBOL);
    }
    if (!symbol) {
        const char *words = dlerror(); /* of the last call; valid until the next one */
        return hal_fail(HAL_ERROR_BAD_PLUGIN, "plugin %s: does not export %s: %s", module->path,
                        HAL_PLUGIN_CREATE_SYMBOL, words ? words : "the symbol is null");
    }
    memcpy(create, &symbol, sizeof *create);
    return HAL_OK;
}

static void module_set_status(hal_module *module, hal_status status)
{
    free(module->message);
    module->message = status == HAL_OK ? NULL : strdup(hal_status_message());
    module->status = status;
    if (status != HAL_OK) {
        hal_log(HAL_LOG_INFO, "%s", hal_status_message());
    }
}

static hal_status check_entries(const hal_module *module)
{
#define ENTRY(entry) {#entry, module->table.entry != NULL},
    const struct {
        const char *name;
        bool is_set;
    } required[] = {ENTRY(name) HAL_REQUIRED_ENTRIES(ENTRY)};
#undef ENTRY
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!required[i].is_set) {
            return hal_fail(HAL_ERROR_BAD_PLUGIN,
                            "plugin %s: %s: expected a required entry, got none in a table of %u "
                            "bytes",
                            module->path, required[i].name, module->table.size);
        }
    }
    return HAL_OK;
}

static bool is_plugin_name(const char *name)
{
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length < HAL_PLUGIN_NAME_BYTES && name[length] == 0 &&
           strcmp(name, "auto") != 0 && strcmp(name, "id") != 0;
}

bool hal_module_file_is(const hal_module *module, const char *name)
{
    return module->file_name && strlen(name) == module->file_name_bytes &&
           strncmp(name, module->file_name, module->file_name_bytes) == 0;
}

/* Asks for the extensions and keeps the names of those that hal knows. */
static hal_status extensions_copy(hal_module *module)
{
    const char *wrong = hal_plugin_entries_extend(&module->table);
    if (wrong) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: extension %s: expected a table of major 1, got another",
                        module->path, wrong);
    }
    hal_text names = {0};
    const uint32_t found = module->table.extensions;
    uint32_t bit = 0;
#define ADD(extension, is, needed)                                  \
    if (found >> bit++ & 1) {                                       \
        hal_text_add(&names, "%s%s", names.length ? ", " : "", is); \
    }
    HAL_EXTENSIONS(ADD)
#undef ADD
    free(module->extensions);
    module->extensions = names.length ? strdup(hal_text_get(&names)) : NULL;
    hal_text_free(&names);
    return HAL_OK;
}

static hal_status table_copy(hal_module *module, const hal_plugin *table,
                             hal_plugin_instance *instance)
{
    if (table->size < offsetof(hal_plugin, name)) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: size: expected a plugin table, got %u bytes", module->path,
                        table->size);
    }
    if (table->abi >> 16 != HAL_PLUGIN_ABI_MAJOR) {
        return hal_fail(table->abi > HAL_PLUGIN_ABI ? HAL_ERROR_TOO_NEW : HAL_ERROR_TOO_OLD,
                        "plugin %s: expected plugin ABI %u.%u, got %u.%u", module->path,
                        HAL_PLUGIN_ABI_MAJOR, HAL_PLUGIN_ABI_MINOR, table->abi >> 16,
                        table->abi & 0xffff);
    }
    hal_plugin_entries_read(&module->table, table, instance);
    HAL_TRY(check_entries(module));
    const char *name = module->table.name;
    if (!is_plugin_name(name)) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: name: expected lower case letters, digits and underscores, and "
                        "no keyword of HAL_BACKEND, got \"%s\"",
                        module->path, name);
    }
    if (module->file_name && !hal_module_file_is(module, name)) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: name: expected \"%.*s\", as in the file's name, got \"%s\"; "
                        "rename the file to hal_%s.so, or change the name in the plugin's table",
                        module->path, (int)module->file_name_bytes, module->file_name, name, name);
    }
    if (!module->table.version) {
        module->table.version = "";
    }
    if (!module->table.build_id) {
        module->table.build_id = module->table.version;
    }
    if (module->table.ir_version == 0) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN,
                        "plugin %s: ir_version: expected HAL_IR_VERSION of its headers, got 0",
                        module->path);
    }
    if (!instance) {
        return hal_fail(HAL_ERROR_BAD_PLUGIN, "plugin %s: expected an instance, got none",
                        module->path);
    }
    return extensions_copy(module);
}

/* The plugin does not know hal's version. Finds the version that it knows, for the message. */
static hal_status fail_version(const hal_module *module, hal_plugin_create_function create)
{
    for (uint32_t major = 0; major < HAL_PLUGIN_ABI_MAJOR + 16; major++) {
        hal_plugin_instance *instance = NULL;
        const hal_plugin *table = major == HAL_PLUGIN_ABI_MAJOR
                                      ? NULL
                                      : create(major << 16, hal_host_services(), &instance);
        if (table && table->size >= offsetof(hal_plugin, name)) {
            return hal_fail(table->abi > HAL_PLUGIN_ABI ? HAL_ERROR_TOO_NEW : HAL_ERROR_TOO_OLD,
                            "plugin %s: expected plugin ABI %u.%u, got %u.%u", module->path,
                            HAL_PLUGIN_ABI_MAJOR, HAL_PLUGIN_ABI_MINOR, table->abi >> 16,
                            table->abi & 0xffff);
        }
    }
    return hal_fail(HAL_ERROR_TOO_NEW, "plugin %s: expected a table for plugin ABI %u.%u, got none",
                    module->path, HAL_PLUGIN_ABI_MAJOR, HAL_PLUGIN_ABI_MINOR);
}

/* The number of devices may change between two calls. */
static hal_status module_read_devices(hal_module *module)
{
    const char *name = module->table.name;
    uint32_t capacity = 16;
    uint32_t count = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        char *records = calloc(capacity, HAL_DEVICE_INFO_MAX_BYTES);
        if (!records) {
            return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "plugin %s: no host memory for its devices",
                            name);
        }
        count = 0;
        hal_status status = module->table.enumerate(
            module->table.instance, (hal_device_info *)(void *)records, capacity, &count);
        if (status != HAL_OK) {
            status = hal_host_failed(status, "plugin %s", name);
        } else if (count == 0) {
            status = hal_fail(HAL_ERROR_NO_DEVICE, "plugin %s: no device found", name);
        } else if (count <= capacity) {
            status = hal_device_infos_take(&module->table, records, count, &module->infos);
            module->info_count = status == HAL_OK ? count : 0;
        }
        free(records);
        if (status != HAL_OK || count <= capacity) {
            return status;
        }
        capacity = count < MAX_DEVICES ? count : MAX_DEVICES;
    }
    return hal_fail(HAL_ERROR_BAD_PLUGIN,
                    "plugin %s: enumerate: expected a constant number of devices up to %u, got %u",
                    name, MAX_DEVICES, count);
}

hal_module *hal_module_create(const char *path)
{
    hal_module *module = calloc(1, sizeof *module);
    if (!module || !(module->path = strdup(path))) {
        free(module);
        return NULL;
    }
    const char *slash = strrchr(module->path, '/');
    const char *base = slash ? slash + 1 : module->path;
    const size_t bytes = hal_plugin_name_bytes(base);
    if (bytes > 0) {
        module->file_name = base + 4;
        module->file_name_bytes = bytes;
    }
    return module;
}

hal_status hal_module_load(hal_module *module)
{
    if (module->loaded) {
        return HAL_OK;
    }
    hal_plugin_create_function create = NULL;
    const hal_status status = module->excluded
                                  ? hal_fail(HAL_ERROR_BAD_PLUGIN, "%s", module->excluded)
                                  : module_open(module, &create);
    if (status != HAL_OK) {
        module_set_status(module, status);
        return status;
    }
    return hal_module_ask(module, create);
}

hal_status hal_module_ask(hal_module *module, hal_plugin_create_function create)
{
    hal_host_clear_error();
    hal_plugin_instance *instance = NULL;
    const hal_plugin *table = create(HAL_PLUGIN_ABI, hal_host_services(), &instance);
    hal_status status = HAL_OK;
    if (table) {
        status = table_copy(module, table, instance);
    } else if (hal_host_has_message()) {
        status = hal_host_failed(HAL_ERROR_INVALID_STATE, "plugin %s", module->path);
    } else {
        status = fail_version(module, create);
    }
    module_set_status(module, status);
    if (status == HAL_OK) {
        module->loaded = true;
        hal_log(HAL_LOG_INFO, "plugin %s %s loaded from %s", module->table.name,
                module->table.version, module->path);
    }
    return status;
}

hal_status hal_module_enumerate(hal_module *module)
{
    hal_status status = hal_module_load(module);
    if (status != HAL_OK || module->enumerated) {
        return status;
    }
    hal_log(HAL_LOG_DEBUG, "opening plugin %s", module->path);
    status = module_read_devices(module);
    module_set_status(module, status);
    module->enumerated = status == HAL_OK;
    return status;
}
