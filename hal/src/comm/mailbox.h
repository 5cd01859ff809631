/* The mailbox of a communicator: memory that all of its ranks see, of one process or shared between
 * processes of a host. It has the progress of each rank, two slots of data per rank, and the first
 * failure.
 *
 * Steps of a communicator are numbered from 1. A rank publishes step s in its message and slot s
 * mod 2 once all ranks have consumed step s - 2, so neither is overwritten while a rank still reads
 * it.
 *
 * Ranks without common memory have a mailbox each, without slots, and a transport (transport.h)
 * that keeps the mailboxes equal by messages. */
#ifndef HAL_SRC_COMM_MAILBOX_H
#define HAL_SRC_COMM_MAILBOX_H

#include "mailbox_state.h"
#include "transport.h"

#include <stdbool.h>

typedef struct hal_mailbox {
    struct hal_mailbox *next; /* among the local mailboxes that are not complete */
    hal_mailbox_header *header;
    uint64_t bytes;      /* of the mapping */
    uint64_t slot_bytes; /* of a slot, and so of a piece; a multiple of 256 */
    hal_comm_id id;
    uint32_t count;
    uint32_t own;             /* the rank of this process on shared memory */
    int file;                 /* of shared memory; -1: within the process */
    hal_transport *transport; /* null: the ranks see this memory */
    _Atomic uint32_t references;
} hal_mailbox;

/* Opens the mailbox of an id, or creates it for the first rank that comes, and joins it as `rank`.
 * `shared`: between processes. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, IO, UNSUPPORTED. */
hal_status hal_mailbox_open(const hal_comm_id *id, uint32_t rank, uint32_t count, bool shared,
                            uint64_t time_limit_ns, const char *function, hal_mailbox **mailbox);

/* Creates the mailbox of a rank with a transport to the others, which all exist. Errors:
 * OUT_OF_MEMORY; the transport is closed. */
hal_status hal_mailbox_create_linked(hal_transport *transport, const char *function,
                                     hal_mailbox **mailbox);

/* Waits until all ranks have joined. Errors: TIMEOUT with the ranks that did not. */
hal_status hal_mailbox_wait_joined(hal_mailbox *mailbox, uint64_t time_limit_ns,
                                   const char *function);

/* Leaves the mailbox as `rank`. */
void hal_mailbox_close(hal_mailbox *mailbox, uint32_t rank);

/* Records the first failure of the communicator, by `rank`, for all ranks. Threads: any. */
void hal_mailbox_fail(hal_mailbox *mailbox, uint32_t rank, hal_status status, const char *message);

/* Brings the mailbox up to date and returns the failure with its message as the thread's, HAL_OK
 * without one. Threads: any. */
hal_status hal_mailbox_check(hal_mailbox *mailbox, const char *function);

/* Tells the others what the rank offers; `id` is null but for rank 0 with a backend. Once, before
 * hal_mailbox_post_backend. */
void hal_mailbox_post_offer(hal_mailbox *mailbox, uint32_t rank, const hal_mailbox_offer *offer,
                            const hal_plugin_comm_id *id);

/* Tells the others whether the rank's backend was created: HAL_MAILBOX_BACKEND_CREATED or _REFUSED.
 * */
void hal_mailbox_post_backend(hal_mailbox *mailbox, uint32_t rank, uint32_t state);

/* Whether a rank's process ended without leaving; never the caller's. Threads: any. */
bool hal_mailbox_is_rank_dead(const hal_mailbox *mailbox, uint32_t rank);

static inline hal_mailbox_rank *hal_mailbox_rank_at(const hal_mailbox *mailbox, uint32_t rank)
{
    return &mailbox->header->ranks[rank];
}

/* Whether the rank has published the step, or a later one; then its message is that of the step
 * until the caller has consumed it. */
static inline bool hal_mailbox_has_published(const hal_mailbox *mailbox, uint32_t rank,
                                             uint64_t step)
{
    const hal_mailbox_message *message = &hal_mailbox_rank_at(mailbox, rank)->messages[step % 2];
    return atomic_load_explicit(&message->step, memory_order_acquire) >= step;
}

/* Moves the data of collectives that no backend of a plugin runs: "host", "shared" or "mpi". */
const char *hal_mailbox_backend(const hal_mailbox *mailbox);

/* The slot of a rank for a step; of a mailbox without a transport. */
uint8_t *hal_mailbox_slot(const hal_mailbox *mailbox, uint32_t rank, uint64_t step);

#endif
