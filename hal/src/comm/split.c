/* Division of communicators. All ranks write color and key to the mailbox, wait for each other, and
 * find their new communicator without further messages. */
#include "comm.h"

#include "core/deferred.h"
#include "core/hooks.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define PAUSE_NS 50000

typedef struct split_place {
    uint32_t rank, count;                 /* of the new communicator */
    uint32_t members[HAL_COMM_MAX_RANKS]; /* old ranks in the order of the new ones */
} split_place;

static hal_status split_post(hal_comm *comm, int32_t color, int32_t key)
{
    hal_mailbox_rank *own = hal_mailbox_rank_at(comm->mailbox, comm->rank);
    const uint64_t number = ++comm->last_split;
    own->colors[number % 2] = color;
    own->keys[number % 2] = key;
    atomic_store_explicit(&own->split, number, memory_order_release);
    if (comm->mailbox->transport &&
        hal_transport_send_split(comm->mailbox->transport, number, color, key) != HAL_OK) {
        return hal_mailbox_check(comm->mailbox, "hal_comm_split"); /* sees the error of the
                                                                    * transport */
    }
    return HAL_OK;
}

/* Waits until all ranks have posted. The ranks of this process may have collectives in flight that
 * others wait for. Errors: TIMEOUT, those of the communicator. */
static hal_status split_await(hal_comm *comm)
{
    hal_mailbox *mailbox = comm->mailbox;
    const uint64_t begin = hal_clock_ns();
    for (uint32_t q = 0; q < comm->count;) {
        HAL_TRY(hal_mailbox_check(mailbox, "hal_comm_split"));
        if (atomic_load_explicit(&hal_mailbox_rank_at(mailbox, q)->split, memory_order_acquire) >=
            comm->last_split) {
            q++;
            continue;
        }
        if (hal_mailbox_is_rank_dead(mailbox, q) || hal_clock_ns() - begin > comm->time_limit_ns) {
            char message[128];
            snprintf(message, sizeof message,
                     "it did not call hal_comm_split number %llu within %s s, or has ended",
                     (unsigned long long)comm->last_split,
                     HAL_NUMBER((double)comm->time_limit_ns / 1e9, 3));
            hal_mailbox_fail(comm->mailbox, q, HAL_ERROR_TIMEOUT, message);
        }
        hal_deferred_advance();
        hal_pause_ns(PAUSE_NS);
    }
    return HAL_OK;
}

/* Whether rank p precedes rank q in a new communicator: by key, then by old rank. */
static bool split_precedes(const hal_comm *comm, uint32_t p, uint32_t q)
{
    const uint64_t side = comm->last_split % 2;
    const int32_t one = hal_mailbox_rank_at(comm->mailbox, p)->keys[side];
    const int32_t other = hal_mailbox_rank_at(comm->mailbox, q)->keys[side];
    return one < other || (one == other && p < q);
}

/* The rank's place among those of its color. */
static void split_find(const hal_comm *comm, split_place *place)
{
    const uint64_t side = comm->last_split % 2;
    const hal_mailbox_rank *own = hal_mailbox_rank_at(comm->mailbox, comm->rank);
    *place = (split_place){0};
    for (uint32_t q = 0; q < comm->count; q++) {
        if (hal_mailbox_rank_at(comm->mailbox, q)->colors[side] == own->colors[side]) {
            uint32_t at = place->count++;
            for (; at > 0 && split_precedes(comm, q, place->members[at - 1]); at--) {
                place->members[at] = place->members[at - 1];
            }
            place->members[at] = q;
        }
    }
    while (place->members[place->rank] != comm->rank) {
        place->rank++;
    }
}

/* The id of the new communicator, from that of the old one, the number of the split and the color.
 * */
static hal_comm_id split_id(const hal_comm *comm)
{
    const uint64_t side = comm->last_split % 2;
    const uint32_t color = (uint32_t)hal_mailbox_rank_at(comm->mailbox, comm->rank)->colors[side];
    hal_comm_id id = comm->mailbox->id;
    for (uint32_t word = 0; word < sizeof id.bytes / 8; word++) {
        uint64_t value;
        memcpy(&value, id.bytes + 8 * word, 8);
        value ^= (comm->last_split << 32 | color) + word;
        value *= UINT64_C(0x9e3779b97f4a7c15);
        value ^= value >> 29;
        value *= UINT64_C(0xbf58476d1ce4e5b9);
        value ^= value >> 32;
        memcpy(id.bytes + 8 * word, &value, 8);
    }
    return id;
}

/* Joins the new mailbox; does not wait for its other ranks. */
static hal_status split_join(hal_comm *comm, hal_comm **split)
{
    const hal_comm_id id = split_id(comm);
    split_place place;
    hal_mailbox *mailbox = NULL;
    hal_status status = HAL_OK;
    split_find(comm, &place);
    if (place.count > 1 && comm->mailbox->transport) {
        hal_transport *transport = NULL;
        status = hal_transport_divide(comm->mailbox->transport, place.members, place.rank,
                                      place.count, comm->last_split, &transport);
        if (status == HAL_OK) {
            status = hal_mailbox_create_linked(transport, "hal_comm_split", &mailbox);
        }
    } else if (place.count > 1) {
        status = hal_mailbox_open(&id, place.rank, place.count, comm->mailbox->file >= 0,
                                  comm->time_limit_ns, "hal_comm_split", &mailbox);
    }
    return status == HAL_OK ? hal_comm_make(comm->device, mailbox, place.rank, place.count,
                                            comm->time_limit_ns, "hal_comm_split", split)
                            : status;
}

static hal_status split_check(hal_comm *const *comms, uint32_t count, const int32_t *colors,
                              const int32_t *keys, hal_comm **split)
{
    if (!comms || !colors || !keys || !split || count == 0) {
        return hal_null_argument("hal_comm_split", !comms    ? "comms"
                                                   : !colors ? "colors"
                                                   : !keys   ? "keys"
                                                   : !split  ? "split"
                                                             : "count");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!comms[i]) {
            return hal_null_argument("hal_comm_split", "comms");
        }
        if (comms[i]->count != comms[0]->count ||
            (comms[i]->mailbox &&
             (comms[i]->mailbox->transport != comms[0]->mailbox->transport ||
              memcmp(&comms[i]->mailbox->id, &comms[0]->mailbox->id, sizeof(hal_comm_id)) != 0))) {
            return hal_fail(
                HAL_ERROR_INVALID_ARGUMENT,
                "hal_comm_split: comms: expected ranks of one communicator, got another in "
                "comms[%u]",
                i);
        }
        split[i] = NULL;
    }
    return HAL_OK;
}

/* A communicator of one rank. */
static hal_status split_single(hal_comm *comm, int32_t color, hal_comm **split)
{
    const hal_status status = hal_comm_check(comm, "hal_comm_split");
    return status != HAL_OK || color < 0
               ? status
               : hal_comm_make(comm->device, NULL, 0, 1, comm->time_limit_ns, "hal_comm_split",
                               split);
}

hal_status hal_comm_split(hal_comm *const *comms, uint32_t count, const int32_t *colors,
                          const int32_t *keys, hal_comm **split)
{
    HAL_UNCANCELLED;
    HAL_TRY(split_check(comms, count, colors, keys, split));
    if (!comms[0]->mailbox) {
        return split_single(comms[0], colors[0], split);
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = split_post(comms[i], colors[i], keys[i]);
    }
    status = status == HAL_OK ? split_await(comms[0]) : status;
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (colors[i] >= 0) {
            status = split_join(comms[i], &split[i]);
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        if (split[i] && split[i]->mailbox) {
            status = hal_mailbox_wait_joined(split[i]->mailbox, split[i]->time_limit_ns,
                                             "hal_comm_split");
        }
    }
    if (status == HAL_OK) {
        status = hal_comm_start(split, count, "hal_comm_split");
    }
    for (uint32_t i = 0; status != HAL_OK && i < count; i++) {
        hal_comm_destroy(split[i]);
        split[i] = NULL;
    }
    return status == HAL_OK ? HAL_OK : hal_comm_fail(comms[0], status);
}
