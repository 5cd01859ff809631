/* The state that the ranks of a communicator share, as it is in the memory of a mailbox: the
 * progress of each rank, what it publishes, and the first failure. */
#ifndef HAL_SRC_COMM_MAILBOX_STATE_H
#define HAL_SRC_COMM_MAILBOX_STATE_H

#include "core/wait_cycle.h"

#include <hal/comm.h>
#include <hal/plugin.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

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

/* The call of a collective; ranks compare it before they read data. */
typedef struct hal_mailbox_call {
    uint8_t kind, reduction, type;
    uint8_t any_order; /* 0 or 1 */
    uint32_t root;
    uint64_t count;
} hal_mailbox_call;

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

/* Why a rank takes no step from `step` on, see core/wait_cycle.h. */
typedef struct hal_mailbox_held {
    _Atomic uint64_t sequence; /* odd while the rank writes */
    uint64_t step;
    hal_wait_chain chain;
} hal_mailbox_held;

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
    hal_mailbox_held held;
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

/* Writes why a rank takes no step from `step` on. Threads: one of its process at a time. */
void hal_mailbox_write_held(hal_mailbox_rank *own, uint64_t step, const hal_wait_chain *chain);

/* Reads why a rank does not take `step`, or an empty chain: nothing is known. Threads: any. */
void hal_mailbox_read_held(hal_mailbox_rank *rank, uint64_t step, hal_wait_chain *chain);

/* Writes the first failure into a header; returns whether this one is it. Threads: any. */
bool hal_mailbox_header_fail(hal_mailbox_header *header, uint32_t rank, hal_status status,
                             const char *text);

#endif
