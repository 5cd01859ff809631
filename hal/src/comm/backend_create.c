/* Creation of backends, see engine_create.h. Each rank posts on the mailbox what its plugin offers,
 * then whether its part was created. All ranks decide by the same posts: either all have a backend
 * or none. */
#include "backend_create.h"

#include "core/deferred.h"
#include "core/hooks.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/status.h"
#include "base/list.h"

#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#define PAUSE_NS 50000

enum { WAITING, DECIDED }; /* whether a rank has a backend */

static bool plugin_has_backend(const hal_plugin_entries *plugin)
{
    return plugin->comm_backend && plugin->comm_id && plugin->comm_create && plugin->comm_poll &&
           plugin->comm_abort && plugin->comm_destroy;
}

/* Batches that are written to files have to be such that hal-replay can run them anywhere. */
static bool dump_is_on(void)
{
    const char *dump = secure_getenv("HAL_DUMP");
    return dump && hal_list_has(dump, "batch");
}

static bool offer_none(const hal_comm *comm, const char *reason)
{
    hal_log(HAL_LOG_INFO, "communicator: rank %u of %u: no backend: %s", comm->rank, comm->count,
            reason);
    return false;
}

/* Returns whether the device offers a backend, and what it is; else why not as the thread's
 * message. */
static bool backend_find(const hal_device *device, hal_plugin_comm_backend *backend)
{
    const hal_plugin_entries *plugin = device->plugin;
    *backend = (hal_plugin_comm_backend){.size = sizeof *backend};
    if (!plugin_has_backend(plugin) || !*device->info.id) {
        hal_fail(HAL_ERROR_UNSUPPORTED, "the plugin %s has none", plugin->name);
        return false;
    }
    if (dump_is_on()) {
        hal_fail(HAL_ERROR_UNSUPPORTED, "HAL_DUMP=batch is set");
        return false;
    }
    hal_host_clear_error();
    const hal_status status = plugin->comm_backend(plugin->instance, backend);
    if (status != HAL_OK) {
        hal_host_failed(status, "%s", plugin->name);
        return false;
    }
    backend->name[sizeof backend->name - 1] = 0;
    backend->description[sizeof backend->description - 1] = 0;
    return true;
}

static void offer_post(const hal_comm *comm, hal_plugin_comm_backend *backend)
{
    hal_mailbox_offer offer = {.compares = hal_log_is_enabled(HAL_LOG_DEBUG) ||
                                           hal_hooks_on(HAL_HOOK_CALLS)};
    hal_plugin_comm_id id = {0};
    hal_saved_message before; /* a rank without a backend is no failure */
    hal_message_save(&before);
    bool offered = backend_find(comm->device, backend);
    if (!offered && plugin_has_backend(comm->device->plugin)) {
        offer_none(comm, hal_status_message());
    }
    if (offered && comm->rank == 0) {
        hal_host_clear_error();
        const hal_status status =
            comm->device->plugin->comm_id(comm->device->plugin->instance, &id);
        if (status != HAL_OK) {
            hal_host_failed(status, "%s", comm->device->plugin->name);
            offered = offer_none(comm, hal_status_message());
        }
    }
    hal_message_restore(&before);
    if (offered) {
        const char *device = comm->device->info.id;
        offer.library =
            XXH3_64bits_withSeed(backend->name, strlen(backend->name), backend->version);
        offer.library += offer.library == 0;
        offer.device = XXH3_64bits(device, strlen(device));
    }
    hal_mailbox_post_offer(comm->mailbox, comm->rank, &offer,
                           offered && comm->rank == 0 ? &id : NULL);
}

static uint32_t backend_state(const hal_comm *comm, uint32_t rank)
{
    return atomic_load_explicit(&hal_mailbox_rank_at(comm->mailbox, rank)->backend,
                                memory_order_acquire);
}

/* Whether the rank has posted a library. */
static bool rank_offers(const hal_comm *comm)
{
    return hal_mailbox_rank_at(comm->mailbox, comm->rank)->offer.library != 0;
}

/* Waits until all ranks have posted. A rank that offers nothing knows that there is no backend. */
static hal_status offers_await(hal_comm *comm, const char *function)
{
    const uint64_t begin = hal_clock_ns();
    for (uint32_t q = 0; rank_offers(comm) && q < comm->count;) {
        HAL_TRY(hal_mailbox_check(comm->mailbox, function));
        if (backend_state(comm, q) != HAL_MAILBOX_BACKEND_UNKNOWN) {
            q++;
            continue;
        }
        const bool is_dead = hal_mailbox_is_rank_dead(comm->mailbox, q);
        if (is_dead || atomic_load(&hal_mailbox_rank_at(comm->mailbox, q)->left)) {
            hal_mailbox_fail(comm->mailbox, q, HAL_ERROR_INVALID_STATE,
                             is_dead ? "its process ended without leaving the communicator"
                                     : "it left the communicator while others created it");
        } else if (hal_clock_ns() - begin > comm->time_limit_ns) {
            hal_mailbox_fail(comm->mailbox, q, HAL_ERROR_TIMEOUT,
                             "it did not offer what moves its data within the time limit");
        }
        hal_deferred_advance();
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

/* Whether all ranks offer the same library on different devices. */
static bool offers_agree(const hal_comm *comm, bool *compares)
{
    const hal_mailbox_offer *own = &hal_mailbox_rank_at(comm->mailbox, comm->rank)->offer;
    *compares = false;
    for (uint32_t q = 0; rank_offers(comm) && q < comm->count; q++) {
        const hal_mailbox_offer *one = &hal_mailbox_rank_at(comm->mailbox, q)->offer;
        *compares |= one->compares != 0;
        if (one->library != own->library) {
            return offer_none(comm, "not all ranks have the same library");
        }
        for (uint32_t p = 0; p < q; p++) {
            if (hal_mailbox_rank_at(comm->mailbox, p)->offer.device == one->device) {
                return offer_none(comm, "two ranks are on one device");
            }
        }
    }
    return rank_offers(comm);
}

/* The rank's own part cannot be created. */
static void backend_refuse(const hal_comm *comm, hal_status status)
{
    hal_saved_message before;
    hal_message_save(&before);
    hal_device_failed(comm->device, status, "creating a backend");
    hal_log(HAL_LOG_WARN, "communicator: rank %u of %u: %s", comm->rank, comm->count,
            hal_status_message());
    hal_message_restore(&before);
    hal_mailbox_post_backend(comm->mailbox, comm->rank, HAL_MAILBOX_BACKEND_REFUSED);
}

/* Begins to create the rank's part. */
static void backend_begin(hal_comm *comm, const hal_plugin_comm_backend *is)
{
    bool compares = false;
    if (!offers_agree(comm, &compares)) {
        return;
    }
    hal_backend *backend = calloc(1, sizeof *backend);
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (backend) {
        backend->is = *is;
        backend->compares = compares;
        hal_host_clear_error();
        status = comm->device->plugin->comm_create(comm->device->handle,
                                                   &comm->mailbox->header->backend_id, comm->rank,
                                                   comm->count, &backend->handle);
    }
    if (status != HAL_OK) {
        free(backend);
        backend_refuse(comm, status);
        return;
    }
    comm->backend = backend;
}

/* The plugin does not wait for other ranks of a communicator that is aborted. */
static void backend_end(hal_comm *comm, bool aborts)
{
    if (aborts) {
        comm->device->plugin->comm_abort(comm->backend->handle);
    }
    comm->device->plugin->comm_destroy(comm->backend->handle);
    free(comm->backend);
    comm->backend = NULL;
}

/* Whether it is decided if the ranks have a backend. */
static bool backend_decide(hal_comm *comm, uint64_t begin_ns)
{
    const hal_plugin_entries *plugin = comm->device->plugin;
    uint32_t created = 0;
    if (backend_state(comm, comm->rank) == HAL_MAILBOX_BACKEND_OFFERED) {
        hal_host_clear_error();
        hal_status status = plugin->comm_poll(comm->backend->handle);
        if (status == HAL_OK) {
            hal_mailbox_post_backend(comm->mailbox, comm->rank, HAL_MAILBOX_BACKEND_CREATED);
        } else if (status != HAL_ERROR_TIMEOUT || hal_clock_ns() - begin_ns > comm->time_limit_ns) {
            backend_refuse(comm, status);
        }
    }
    for (uint32_t q = 0; q < comm->count; q++) {
        const uint32_t state = backend_state(comm, q);
        created += state == HAL_MAILBOX_BACKEND_CREATED;
        if (state == HAL_MAILBOX_BACKEND_REFUSED) {
            backend_end(comm, true);
            return DECIDED;
        }
    }
    return created == comm->count ? DECIDED : WAITING;
}

/* Waits until it is decided for all. A failed communicator keeps its backend until it is destroyed.
 * */
static hal_status backends_await(hal_comm *const *comms, uint32_t count, const char *function)
{
    const uint64_t begin = hal_clock_ns();
    uint8_t decided[HAL_COMM_MAX_RANKS] = {0};
    uint32_t left = count;
    while (left > 0) {
        left = 0;
        for (uint32_t i = 0; i < count; i++) {
            hal_comm *comm = comms[i];
            decided[i] |= !comm || !comm->backend;
            if (decided[i]) {
                continue;
            }
            HAL_TRY(hal_mailbox_check(comm->mailbox, function));
            decided[i] = (uint8_t)backend_decide(comm, begin);
            left += !decided[i];
        }
        if (left > 0) {
            hal_deferred_advance();
            hal_pause_ns(PAUSE_NS);
        }
    }
    return HAL_OK;
}

hal_status hal_comm_get_backend(hal_device *device, uint64_t bytes, char *text)
{
    hal_plugin_comm_backend backend;
    if (!text || bytes == 0) {
        return hal_null_argument("hal_comm_get_backend", text ? "bytes" : "text");
    }
    HAL_TRY(hal_comm_check_device(device, "hal_comm_get_backend"));
    hal_saved_message before;
    hal_message_save(&before);
    if (backend_find(device, &backend)) {
        snprintf(text, bytes, "%s: %s", backend.name, backend.description);
    } else {
        snprintf(text, bytes, "host: %s", hal_status_message());
    }
    hal_message_restore(&before);
    return HAL_OK;
}

void hal_backend_destroy(hal_comm *comm)
{
    if (comm->backend) {
        backend_end(comm, atomic_load(&comm->mailbox->header->failure) != 0);
    }
}

hal_status hal_backend_create(hal_comm *const *comms, uint32_t count, const char *function)
{
    hal_plugin_comm_backend *backends = calloc(count, sizeof *backends);
    hal_status status = HAL_OK;
    if (!backends) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (comms[i] && comms[i]->mailbox) {
            offer_post(comms[i], &backends[i]);
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (comms[i] && comms[i]->mailbox) {
            status = offers_await(comms[i], function);
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (comms[i] && comms[i]->mailbox) {
            backend_begin(comms[i], &backends[i]);
        }
    }
    if (status == HAL_OK) {
        status = backends_await(comms, count, function);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (comms[i] && comms[i]->backend) {
            hal_log(HAL_LOG_INFO, "communicator: rank %u of %u: backend %s", comms[i]->rank,
                    comms[i]->count, backends[i].description);
        }
    }
    free(backends);
    return status;
}
