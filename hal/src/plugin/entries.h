/* All entries of a plugin in one structure: those of its main table and of its extensions, and null
 * where it has none. */
#ifndef HAL_SRC_PLUGIN_ENTRIES_H
#define HAL_SRC_PLUGIN_ENTRIES_H

#include <hal/plugin.h>
#include <string.h>

typedef struct hal_plugin_entries {
    hal_plugin_instance *instance;
    uint32_t size, abi; /* as the plugin states them */
    uint32_t ir_version;
    uint32_t extensions; /* bit i: extension i of HAL_EXTENSIONS is there */
    const char *name, *version, *build_id;
    const void *(*query_extension)(hal_plugin_instance *, const char *, uint32_t);
#define HAL_FIELD(entry) __typeof__(((hal_plugin *)0)->entry) entry;
    HAL_REQUIRED_ENTRIES(HAL_FIELD)
#undef HAL_FIELD
#define HAL_FIELD(extension, entry) __typeof__(((hal_extension_##extension *)0)->entry) entry;
    HAL_EXTENSION_ENTRIES(HAL_FIELD)
#undef HAL_FIELD
} hal_plugin_entries;

/* Reads the main table, as far as its size goes. */
static inline void hal_plugin_entries_read(hal_plugin_entries *entries, const hal_plugin *table,
                                           hal_plugin_instance *instance)
{
    *entries = (hal_plugin_entries){.instance = instance, .size = table->size, .abi = table->abi};
#define HAL_READ(entry) entries->entry = HAL_PLUGIN_HAS(table, entry) ? table->entry : 0;
    HAL_READ(name)
    HAL_READ(version)
    HAL_READ(build_id)
    HAL_READ(ir_version)
    HAL_READ(query_extension)
    HAL_REQUIRED_ENTRIES(HAL_READ)
#undef HAL_READ
}

/* Asks for the extensions and reads their tables. Returns null, or the name of an extension whose
 * table is of another major version. */
static inline const char *hal_plugin_entries_extend(hal_plugin_entries *entries)
{
    const char *wrong = 0;
    uint32_t bit = 0;
    if (!entries->query_extension) {
        return 0;
    }
#define HAL_ASK(extension, name, needed)                                                          \
    const hal_extension_##extension *extension =                                                  \
        (const hal_extension_##extension *)entries->query_extension(entries->instance, name, 1);  \
    if (extension && (extension->size < 2 * sizeof(uint32_t) || extension->version >> 16 != 1)) { \
        wrong = name;                                                                             \
        extension = 0;                                                                            \
    }                                                                                             \
    entries->extensions |= (uint32_t)(extension != 0) << bit++;
    HAL_EXTENSIONS(HAL_ASK)
#undef HAL_ASK
#define HAL_READ(extension, entry) \
    entries->entry = extension && HAL_PLUGIN_HAS(extension, entry) ? extension->entry : 0;
    HAL_EXTENSION_ENTRIES(HAL_READ)
#undef HAL_READ
    return wrong;
}

#endif
