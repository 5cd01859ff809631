/* Creation of engines, see engine_create.h. Each rank posts on the board what its plugin offers,
 * then whether its part was created. All ranks decide by the same posts: either all have an engine
 * or none. Called by the sources that create groups. */
#include "engine_create.h"

#include "core/held.h"
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

enum { WAITING, DECIDED }; /* whether a rank has an engine */

static int plugin_has_engine(const hal_plugin *plugin)
{
    return plugin->group_engine && plugin->group_id && plugin->group_create && plugin->group_poll &&
           plugin->group_abort && plugin->group_destroy;
}

/* Batches that are written to files have to be such that hal-replay can run them anywhere. */
static int dump_is_on(void)
{
    const char *dump = secure_getenv("HAL_DUMP");
    return dump && hal_list_has(dump, "batch");
}

static int offer_none(const hal_group *group, const char *reason)
{
    hal_log(HAL_LOG_INFO, "group: rank %u of %u: no engine: %s", group->rank, group->count, reason);
    return 0;
}

/* Returns whether the device offers an engine, and what it is; else why not as the thread's
 * message. */
static int engine_find(const hal_device *device, hal_plugin_group_engine *engine)
{
    const hal_plugin *plugin = device->plugin;
    *engine = (hal_plugin_group_engine){.size = sizeof *engine};
    if (!plugin_has_engine(plugin) || !*device->info.id) {
        hal_fail(HAL_ERROR_UNSUPPORTED, "the plugin %s has none", plugin->name);
        return 0;
    }
    if (dump_is_on()) {
        hal_fail(HAL_ERROR_UNSUPPORTED, "HAL_DUMP=batch is set");
        return 0;
    }
    hal_host_clear_error();
    const hal_status status = plugin->group_engine(engine);
    if (status != HAL_OK) {
        hal_host_failed(status, "%s", plugin->name);
        return 0;
    }
    engine->name[sizeof engine->name - 1] = 0;
    engine->description[sizeof engine->description - 1] = 0;
    return 1;
}

static void offer_post(const hal_group *group, hal_plugin_group_engine *engine)
{
    hal_board_offer offer = {.compares =
                                 hal_log_is_enabled(HAL_LOG_DEBUG) || hal_hooks_on(HAL_HOOK_CALLS)};
    hal_plugin_group_id id = {0};
    int offered = engine_find(group->device, engine);
    if (!offered && plugin_has_engine(group->device->plugin)) {
        offer_none(group, hal_status_message());
    }
    if (offered && group->rank == 0) {
        hal_host_clear_error();
        const hal_status status = group->device->plugin->group_id(&id);
        if (status != HAL_OK) {
            hal_host_failed(status, "%s", group->device->plugin->name);
            offered = offer_none(group, hal_status_message());
        }
    }
    if (offered) {
        const char *device = group->device->info.id;
        offer.library = XXH3_64bits_withSeed(engine->name, strlen(engine->name), engine->version);
        offer.library += offer.library == 0;
        offer.device = XXH3_64bits(device, strlen(device));
    }
    hal_board_post_offer(group->board, group->rank, &offer,
                         offered && group->rank == 0 ? &id : NULL);
}

static uint32_t engine_state(const hal_group *group, uint32_t rank)
{
    return atomic_load_explicit(&hal_board_rank_at(group->board, rank)->engine,
                                memory_order_acquire);
}

/* Whether the rank has posted a library. */
static int rank_offers(const hal_group *group)
{
    return hal_board_rank_at(group->board, group->rank)->offer.library != 0;
}

/* Waits until all ranks have posted. A rank that offers nothing knows that there is no engine. */
static hal_status offers_await(hal_group *group, const char *function)
{
    const uint64_t begin = hal_clock_ns();
    for (uint32_t q = 0; rank_offers(group) && q < group->count;) {
        const hal_status status = hal_board_check(group->board, function);
        if (status != HAL_OK) {
            return status;
        }
        if (engine_state(group, q) != HAL_BOARD_ENGINE_UNKNOWN) {
            q++;
            continue;
        }
        const int is_dead = hal_board_is_rank_dead(group->board, q);
        if (is_dead || atomic_load(&hal_board_rank_at(group->board, q)->left)) {
            hal_board_fail(group->board, q, HAL_ERROR_INVALID_STATE,
                           is_dead ? "its process ended without leaving the group"
                                   : "it left the group while others created it");
        } else if (hal_clock_ns() - begin > group->time_limit_ns) {
            hal_board_fail(group->board, q, HAL_ERROR_TIMEOUT,
                           "it did not offer what moves its data within the time limit");
        }
        hal_held_advance();
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

/* Whether all ranks offer the same library on different devices. */
static int offers_agree(const hal_group *group, int *compares)
{
    const hal_board_offer *own = &hal_board_rank_at(group->board, group->rank)->offer;
    *compares = 0;
    for (uint32_t q = 0; rank_offers(group) && q < group->count; q++) {
        const hal_board_offer *one = &hal_board_rank_at(group->board, q)->offer;
        *compares |= one->compares != 0;
        if (one->library != own->library) {
            return offer_none(group, "not all ranks have the same library");
        }
        for (uint32_t p = 0; p < q; p++) {
            if (hal_board_rank_at(group->board, p)->offer.device == one->device) {
                return offer_none(group, "two ranks are on one device");
            }
        }
    }
    return rank_offers(group);
}

/* The rank's own part cannot be created. */
static void engine_refuse(const hal_group *group, hal_status status)
{
    hal_device_failed(group->device, status, "creating an engine");
    hal_log(HAL_LOG_WARN, "group: rank %u of %u: %s", group->rank, group->count,
            hal_status_message());
    hal_board_post_engine(group->board, group->rank, HAL_BOARD_ENGINE_REFUSED);
}

/* Begins to create the rank's part. */
static void engine_begin(hal_group *group, const hal_plugin_group_engine *is)
{
    int compares = 0;
    if (!offers_agree(group, &compares)) {
        return;
    }
    hal_engine *engine = calloc(1, sizeof *engine);
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (engine) {
        engine->is = *is;
        engine->compares = compares;
        hal_host_clear_error();
        status = group->device->plugin->group_create(group->device->handle,
                                                     &group->board->header->engine_id, group->rank,
                                                     group->count, &engine->handle);
    }
    if (status != HAL_OK) {
        free(engine);
        engine_refuse(group, status);
        return;
    }
    group->engine = engine;
}

/* The plugin does not wait for other ranks of a group that is aborted. */
static void engine_end(hal_group *group, int aborts)
{
    if (aborts) {
        group->device->plugin->group_abort(group->engine->handle);
    }
    group->device->plugin->group_destroy(group->engine->handle);
    free(group->engine);
    group->engine = NULL;
}

/* Whether it is decided if the ranks have an engine. */
static int engine_decide(hal_group *group, uint64_t begin_ns)
{
    const hal_plugin *plugin = group->device->plugin;
    uint32_t created = 0;
    if (engine_state(group, group->rank) == HAL_BOARD_ENGINE_OFFERED) {
        hal_host_clear_error();
        hal_status status = plugin->group_poll(group->engine->handle);
        if (status == HAL_OK) {
            hal_board_post_engine(group->board, group->rank, HAL_BOARD_ENGINE_CREATED);
        } else if (status != HAL_ERROR_TIMEOUT ||
                   hal_clock_ns() - begin_ns > group->time_limit_ns) {
            engine_refuse(group, status);
        }
    }
    for (uint32_t q = 0; q < group->count; q++) {
        const uint32_t state = engine_state(group, q);
        created += state == HAL_BOARD_ENGINE_CREATED;
        if (state == HAL_BOARD_ENGINE_REFUSED) {
            engine_end(group, 1);
            return DECIDED;
        }
    }
    return created == group->count ? DECIDED : WAITING;
}

/* Waits until it is decided for all. A failed group keeps its engine until it is destroyed. */
static hal_status engines_await(hal_group *const *groups, uint32_t count, const char *function)
{
    const uint64_t begin = hal_clock_ns();
    uint8_t decided[HAL_GROUP_MAX_RANKS] = {0};
    uint32_t left = count;
    while (left > 0) {
        left = 0;
        for (uint32_t i = 0; i < count; i++) {
            hal_group *group = groups[i];
            decided[i] |= !group || !group->engine;
            if (decided[i]) {
                continue;
            }
            const hal_status status = hal_board_check(group->board, function);
            if (status != HAL_OK) {
                return status;
            }
            decided[i] = (uint8_t)engine_decide(group, begin);
            left += !decided[i];
        }
        if (left > 0) {
            hal_held_advance();
            hal_pause_ns(PAUSE_NS);
        }
    }
    return HAL_OK;
}

hal_status hal_group_get_engine(hal_device *device, uint64_t bytes, char *text)
{
    hal_plugin_group_engine engine;
    if (!text || bytes == 0) {
        return hal_null_argument("hal_group_get_engine", text ? "bytes" : "text");
    }
    const hal_status status = hal_group_check_device(device, "hal_group_get_engine");
    if (status != HAL_OK) {
        return status;
    }
    if (engine_find(device, &engine)) {
        snprintf(text, bytes, "%s: %s", engine.name, engine.description);
    } else {
        snprintf(text, bytes, "host: %s", hal_status_message());
    }
    return HAL_OK;
}

void hal_engine_destroy(hal_group *group)
{
    if (group->engine) {
        engine_end(group, atomic_load(&group->board->header->failure) != 0);
    }
}

hal_status hal_engine_create(hal_group *const *groups, uint32_t count, const char *function)
{
    hal_plugin_group_engine *engines = calloc(count, sizeof *engines);
    hal_status status = HAL_OK;
    if (!engines) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (groups[i] && groups[i]->board) {
            offer_post(groups[i], &engines[i]);
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (groups[i] && groups[i]->board) {
            status = offers_await(groups[i], function);
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (groups[i] && groups[i]->board) {
            engine_begin(groups[i], &engines[i]);
        }
    }
    if (status == HAL_OK) {
        status = engines_await(groups, count, function);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (groups[i] && groups[i]->engine) {
            hal_log(HAL_LOG_INFO, "group: rank %u of %u: engine %s", groups[i]->rank,
                    groups[i]->count, engines[i].description);
        }
    }
    free(engines);
    return status;
}
