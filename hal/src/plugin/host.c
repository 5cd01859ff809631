/* Services for plugins, and translation of their answers. */
#include "host.h"

#include "cache.h"
#include "queue_table.h"
#include "base/log.h"
#include "base/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* A plugin has set a message on this thread since its last failure was translated. */
static _Thread_local bool has_plugin_message;

/* Null without validation. */
static void (*_Atomic validation_report)(const char *message);

/* What a plugin said last on this thread. It becomes part of the thread's message only when hal
 * reports a failure. */
static _Thread_local char plugin_message[HAL_MESSAGE_BYTES];

_Atomic uint32_t hal_host_forks;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

static void forked(void)
{
    atomic_fetch_add(&hal_host_forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static void *host_allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    (void)host;
    void *memory = NULL;
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    return posix_memalign(&memory, alignment, bytes ? bytes : 1) == 0 ? memory : NULL;
}

static void host_release(const hal_host *host, void *memory)
{
    (void)host;
    free(memory);
}

static void host_log(const hal_host *host, uint32_t level, const char *message)
{
    (void)host;
    if (level < HAL_LOG_ERROR) {
        level = HAL_LOG_ERROR;
    }
    if (message) {
        hal_log(level < HAL_LOG_DEBUG ? level : HAL_LOG_DEBUG, "%s", message);
    }
}

static hal_status host_fail(hal_status status, const char *message)
{
    if (message && message[0]) {
        has_plugin_message = true;
        hal_fail(status, "%s", message);
    }
    return status;
}

static void host_report(const hal_host *host, const char *message)
{
    (void)host;
    void (*report)(const char *) = atomic_load(&validation_report);
    if (message && report) {
        report(message);
    }
}

static hal_status host_keep_message(const hal_host *host, hal_status status, const char *message)
{
    (void)host;
    if (message && message[0]) {
        has_plugin_message = true;
        snprintf(plugin_message, sizeof plugin_message, "%s", message);
    }
    return status;
}

static hal_status host_cache_load(const hal_host *host, const char *device_id,
                                  const uint64_t key[2], void **data, uint64_t *bytes)
{
    (void)host;
    return hal_cache_load(device_id, key, data, bytes);
}

static hal_status host_cache_store(const hal_host *host, const char *device_id,
                                   const uint64_t key[2], const void *data, uint64_t bytes)
{
    (void)host;
    return hal_cache_store(device_id, key, data, bytes);
}

static void host_queue_reached(const hal_host *host, hal_plugin_queue *queue, uint64_t value)
{
    (void)host;
    hal_queue_table_complete(queue, value);
}

static void host_queue_failed(const hal_host *host, hal_plugin_queue *queue, const char *message)
{
    (void)host;
    hal_queue_table_fail(queue, message);
}

/* One for all instances: what they tell is found by device and queue. */
static hal_host services = {
    .size = sizeof services,
    .abi = HAL_PLUGIN_ABI,
    .allocate = host_allocate,
    .release = host_release,
    .log = host_log,
    .fail = host_keep_message,
    .cache_load = host_cache_load,
    .cache_store = host_cache_store,
    .report = host_report,
    .queue_reached = host_queue_reached,
    .queue_failed = host_queue_failed,
};

const hal_host *hal_host_services(void)
{
    pthread_once(&watching, watch_forks);
    return &services;
}

void hal_host_start_validation(void (*report)(const char *message))
{
    atomic_store(&validation_report, report);
    services.flags |= HAL_HOST_VALIDATE;
}

void hal_host_clear_error(void)
{
    has_plugin_message = false;
}

bool hal_host_has_message(void)
{
    return has_plugin_message;
}

void hal_host_take_queue_message(const hal_plugin_queue *queue)
{
    char message[HAL_MESSAGE_BYTES];
    if (!has_plugin_message && hal_queue_table_message(queue, message, sizeof message)) {
        plugin_message[0] = 0;
        host_fail(HAL_ERROR_DEVICE_LOST, message);
    }
}

hal_status hal_host_failed(hal_status status, const char *format, ...)
{
    char what[HAL_MESSAGE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    if (has_plugin_message && plugin_message[0]) {
        hal_fail(status, "%s", plugin_message);
    }
    va_end(arguments);

    const char *words = has_plugin_message ? hal_status_message() : hal_status_name(status);
    has_plugin_message = false;
    if (status <= HAL_OK || status >= HAL_STATUS_COUNT) {
        return hal_fail(HAL_ERROR_INTERNAL, "%s: expected a status of the plugin, got %d", what,
                        (int)status);
    }
    return hal_fail(status, "%s: %s", what, words);
}

hal_status hal_host_made(hal_status status, const void *object)
{
    if (status != HAL_OK || object) {
        return status;
    }
    plugin_message[0] = 0;
    return host_fail(HAL_ERROR_INTERNAL,
                     "expected an object of the plugin, got success without one");
}
