/* hal's side of the plugin contract: services for plugins, and translation of their answers to a
 * status with a message. */
#ifndef HAL_SRC_PLUGIN_HOST_H
#define HAL_SRC_PLUGIN_HOST_H

#include <hal/plugin.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The table of services; never freed. */
const hal_host *hal_host_services(void);

/* Sets HAL_HOST_VALIDATE for plugins and passes their findings to `report`, on any thread.
 * Threads: under the registry's lock, before a device is open. */
void hal_host_start_validation(void (*report)(const char *message));

/* Forgets messages of plugins on this thread. Called before each call into a plugin. Threads:
 * any. */
void hal_host_clear_error(void);

/* Whether the plugin has set a message on this thread since then. */
bool hal_host_has_message(void);

/* Sets the thread's message after a plugin's failure: "<what>: <message of the plugin, or name of
 * the status>". Returns `status`; an unknown number becomes INTERNAL. Threads: any. */
hal_status hal_host_failed(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

/* Takes the message of host->queue_failed as that of a failure on this thread that has none.
 * Called before hal_host_failed for a call that names the queue. Threads: any. */
void hal_host_take_queue_message(const hal_plugin_queue *queue);

/* The status of a call that creates an object: INTERNAL for HAL_OK without one. */
hal_status hal_host_made(hal_status status, const void *object);

/* A number that changes in forked children, where the parent's objects are unusable. */
extern _Atomic uint32_t hal_host_forks;
static inline uint32_t hal_host_generation(void)
{
    return atomic_load_explicit(&hal_host_forks, memory_order_relaxed);
}

#endif
