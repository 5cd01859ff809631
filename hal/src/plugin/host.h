/* hal's side of the plugin contract: the services that plugins are handed, and how what they
 * answer becomes a status with a sentence. */
#ifndef HAL_SRC_PLUGIN_HOST_H
#define HAL_SRC_PLUGIN_HOST_H

#include <hal/plugin.h>
#include <stdatomic.h>

/* The one table of services, valid for the life of the process. */
const hal_host *hal_host_services(void);

/* Plugins see HAL_HOST_VALIDATE, and their findings go to `report`, which any thread may call.
 * Threads: under the registry's lock, before a device is open. */
void hal_host_start_validation(void (*report)(const char *message));

/* Forgets what plugins have said on this thread: one is about to be asked, and its answer alone
 * counts. Threads: any. */
void hal_host_clear_error(void);

/* Makes a plugin's failure the thread's: "<what>: <the plugin's own words, or the status name>".
 * Gives `status` back; a number that is no status becomes INTERNAL. Threads: any. */
hal_status hal_host_failed(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

/* What a call that makes an object has answered: HAL_OK with none is INTERNAL, in words. */
hal_status hal_host_made(hal_status status, const void *object);

/* A number that changes in each forked child, where nothing of the parent's may be used. */
extern _Atomic uint32_t hal_host_forks;
static inline uint32_t hal_host_generation(void)
{
    return atomic_load_explicit(&hal_host_forks, memory_order_relaxed);
}

#endif
