/* The mailbox of a communicator: memory that all of its ranks see, of one process or shared between
 * processes of a host. It has the progress of each rank, two slots of data per rank, and the first
 * failure. Used by the sources of this folder.
 *
 * Steps of a communicator are numbered from 1. A rank publishes step s in its message and slot s
 * mod 2 once all ranks have consumed step s - 2, so neither is overwritten while a rank still reads
 * it.
 *
 * Ranks without common memory have a mailbox each, without slots, and a transport (transport.h)
 * that keeps the mailboxes equal by messages. */
#ifndef HAL_SRC_COMM_MAILBOX_H
#define HAL_SRC_COMM_MAILBOX_H

#include "transport.h"

#include <hal/plugin.h>
#include <stdalign.h>
#include <stdatomic.h>

#define HAL_MAILBOX_MESSAGE_BYTES 480
#define HAL_MAILBOX_LINE_BYTES 64
#define HAL_MAILBOX_SHORT_BYTES 40

/* Where a rank is in the creation of the backends of the plugins (backend.h). */
enum {
    HAL_MAILBOX_BACKEND_UNKNOWN,
    HAL_MAILBOX_BACKEND_OFFERED, /* `offer` is there, and of rank 0 the id */
    HAL_MAILBOX_BACKEND_CREATED,
    HAL_MAILBOX_BACKEND_REFUSED
};

/* How others recognise the memory of a rank's process, see direct.h. */
typedef struct hal_mailbox_process {
    uint64_t id;          /* of the process; 0: its memory is not read */
    uint64_t key_address; /* where its memory has the key */
    uint64_t key[2];
} hal_mailbox_process;

/* What a rank publishes in a step: memory of its process, or what is in its slot. */
typedef struct hal_mailbox_source {
    _Atomic uint64_t address; /* of the data for rank 0; 0: in the slot */
    uint64_t stride;          /* bytes between the data for two ranks; 0: the same for all */
} hal_mailbox_source;

/* What a rank offers; ranks with a backend agree in all but `device` and `compares`. */
typedef struct hal_mailbox_offer {
    uint64_t library;  /* a hash of name and version; 0: no backend */
    uint64_t device;   /* a hash of the device's id; all ranks differ */
    uint64_t compares; /* 1: the rank wants calls to be compared before data moves */
} hal_mailbox_offer;

/* What a rank publishes in a step, in one cache line, so that others wait for one line only. */
typedef struct hal_mailbox_message {
    alignas(HAL_MAILBOX_LINE_BYTES) _Atomic uint64_t step; /* 0: none */
    hal_mailbox_call call;
    uint8_t data[HAL_MAILBOX_SHORT_BYTES]; /* of a short step, which uses no slot */
} hal_mailbox_message;

_Static_assert(sizeof(hal_mailbox_message) == HAL_MAILBOX_LINE_BYTES, "a message is a cache line");

/* Other ranks seldom read what follows the messages, so that the rank need not wait for its cache
 * lines when it writes there. */
typedef struct hal_mailbox_rank {
    hal_mailbox_message messages[2];                           /* of steps s mod 2 */
    alignas(HAL_MAILBOX_LINE_BYTES) _Atomic uint64_t consumed; /* last step that needs nothing from
                                                              * other ranks */
    _Atomic uint32_t joined, left;
    _Atomic uint64_t split; /* last split that the rank has called */
    int32_t colors[2], keys[2];
    _Atomic uint32_t backend; /* HAL_MAILBOX_BACKEND_* */
    hal_mailbox_offer offer;
    _Atomic uint64_t backend_calls; /* collectives that the rank has submitted to its backend; not
                                    * known of ranks behind a transport */
    /* Of steps of large calls, see direct.h. */
    _Atomic uint64_t read;         /* last one whose data the rank has copied */
    _Atomic uint32_t needs_slots;  /* 1: the rank cannot read memory of all others */
    hal_mailbox_source sources[2]; /* of steps s mod 2 */
    hal_mailbox_process process;
} hal_mailbox_rank;

/* At the beginning of the memory; `ranks` and the slots follow. */
typedef struct hal_mailbox_header {
    _Atomic uint64_t ready; /* the version, once the header is complete */
    uint32_t count;
    _Atomic uint32_t joined;
    _Atomic uint32_t failure; /* 0: none, 1: a rank is writing it, 2: there is one */
    uint32_t failed_rank;
    int32_t failed_status;
    char message[HAL_MAILBOX_MESSAGE_BYTES];
    hal_plugin_comm_id backend_id; /* of rank 0 */
    hal_mailbox_rank ranks[];
} hal_mailbox_header;

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
hal_status hal_mailbox_open(const hal_comm_id *id, uint32_t rank, uint32_t count, int shared,
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

/* Writes the first failure into a header; returns whether this one is it. Threads: any. */
int hal_mailbox_header_fail(hal_mailbox_header *header, uint32_t rank, hal_status status,
                            const char *text);

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
int hal_mailbox_is_rank_dead(const hal_mailbox *mailbox, uint32_t rank);

static inline hal_mailbox_rank *hal_mailbox_rank_at(const hal_mailbox *mailbox, uint32_t rank)
{
    return &mailbox->header->ranks[rank];
}

/* Whether the rank has published the step, or a later one; then its message is that of the step
 * until the caller has consumed it. */
static inline int hal_mailbox_has_published(const hal_mailbox *mailbox, uint32_t rank,
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
