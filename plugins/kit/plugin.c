/* Instances and tables of a plugin, see plugin.h. */
#include "plugin.h"

#include "build_id.h"
#include "guard.h"
#include "host.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of a function of minor 0 that the host lacks, or null. Plugins call them without asking,
 * some only after a failure and on a thread of their own, where a null pointer would end the
 * process. */
static const char *missing_function(const hal_host *host)
{
    const char *missing = NULL;
#define REQUIRE(name) missing = HAL_PLUGIN_HAS(host, name) ? missing : #name;
    REQUIRE(allocate)
    REQUIRE(release)
    REQUIRE(log)
    REQUIRE(fail)
    REQUIRE(cache_load)
    REQUIRE(cache_store)
    REQUIRE(report)
    REQUIRE(queue_reached)
    REQUIRE(queue_failed)
#undef REQUIRE
    return missing;
}

static bool host_is_complete(const hal_host *host)
{
    char message[128];
    const char *missing = missing_function(host);
    if (missing && HAL_PLUGIN_HAS(host, fail)) {
        snprintf(message, sizeof message,
                 "expected a host with all functions of ABI %u.0, got one without %s",
                 HAL_PLUGIN_ABI_MAJOR, missing);
        host->fail(host, HAL_ERROR_INVALID_ARGUMENT, message);
    }
    return !missing;
}

/* What an entry reads first is its host, as of all objects. */
struct hal_plugin_instance {
    const hal_host *host;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const kit_plugin *the_plugin;

static void instance_destroy(hal_plugin_instance *instance)
{
    free(instance);
}

static const void *query_extension(hal_plugin_instance *instance, const char *name, uint32_t major)
{
    (void)instance;
#define FIND(extension, is, needed)                                              \
    if (strcmp(name, is) == 0 && the_plugin->extension.version >> 16 == major) { \
        return &the_plugin->extension;                                           \
    }
    HAL_EXTENSIONS(FIND)
#undef FIND
    return NULL;
}

/* Under the lock. Sets what all plugins have alike. */
static void plugin_complete(kit_plugin *plugin)
{
    if (the_plugin) {
        return;
    }
    plugin->table.size = sizeof plugin->table;
    plugin->table.abi = HAL_PLUGIN_ABI;
    plugin->table.ir_version = HAL_IR_VERSION;
    plugin->table.build_id = kit_build_id();
    plugin->table.instance_destroy = instance_destroy;
    plugin->table.query_extension = query_extension;
#define COMPLETE(extension, is, needed)                          \
    if (plugin->extension.needed) {                              \
        plugin->extension.size = sizeof plugin->extension;       \
        plugin->extension.version = HAL_EXTENSION_VERSION(1, 0); \
    }
    HAL_EXTENSIONS(COMPLETE)
#undef COMPLETE
    kit_guard_plugin(plugin);
    the_plugin = plugin;
}

const hal_plugin *kit_plugin_create(kit_plugin *plugin, uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    if (!host || !instance || host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR || !host_is_complete(host)) {
        return NULL;
    }
    hal_plugin_instance *made = calloc(1, sizeof *made);
    if (!made) {
        host->fail(host, HAL_ERROR_OUT_OF_MEMORY, "no host memory for an instance");
        return NULL;
    }
    made->host = host;
    kit_host_enter(host);
    pthread_mutex_lock(&lock);
    plugin_complete(plugin);
    pthread_mutex_unlock(&lock);
    *instance = made;
    return &plugin->table;
}
