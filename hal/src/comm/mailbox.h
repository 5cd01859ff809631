/* The board of a group: memory that all of its ranks see, of one process or shared between
 * processes of a host. It has the progress of each rank, two slots of data per rank, and the first
 * failure. Used by the sources of this folder.
 *
 * Steps of a group are numbered from 1. A rank publishes step s in its message and slot s mod 2
 * once all ranks have consumed step s - 2, so neither is overwritten while a rank still reads it.
 *
 * Ranks without common memory have a board each, without slots, and a link (link.h) that keeps the
 * boards equal by messages. */
#ifndef HAL_SRC_GROUP_BOARD_H
#define HAL_SRC_GROUP_BOARD_H

#include "link.h"

#include <hal/plugin.h>
#include <stdalign.h>
#include <stdatomic.h>

#define HAL_BOARD_MESSAGE_BYTES 480
#define HAL_BOARD_LINE_BYTES 64
#define HAL_BOARD_SHORT_BYTES 40

/* Where a rank is in the creation of the engines of the plugins (engine.h). */
enum {
    HAL_BOARD_ENGINE_UNKNOWN,
    HAL_BOARD_ENGINE_OFFERED, /* `offer` is there, and of rank 0 the id */
    HAL_BOARD_ENGINE_CREATED,
    HAL_BOARD_ENGINE_REFUSED
};

/* How others recognise the memory of a rank's process, see direct.h. */
typedef struct hal_board_process {
    uint64_t id;          /* of the process; 0: its memory is not read */
    uint64_t key_address; /* where its memory has the key */
    uint64_t key[2];
} hal_board_process;

/* What a rank publishes in a step: memory of its process, or what is in its slot. */
typedef struct hal_board_source {
    _Atomic uint64_t address; /* of the data for rank 0; 0: in the slot */
    uint64_t stride;          /* bytes between the data for two ranks; 0: the same for all */
} hal_board_source;

/* What a rank offers; ranks with an engine agree in all but `device` and `compares`. */
typedef struct hal_board_offer {
    uint64_t library;  /* a hash of name and version; 0: no engine */
    uint64_t device;   /* a hash of the device's id; all ranks differ */
    uint64_t compares; /* 1: the rank wants calls to be compared before data moves */
} hal_board_offer;

/* What a rank publishes in a step, in one cache line, so that others wait for one line only. */
typedef struct hal_board_message {
    alignas(HAL_BOARD_LINE_BYTES) _Atomic uint64_t step; /* 0: none */
    hal_board_call call;
    uint8_t data[HAL_BOARD_SHORT_BYTES]; /* of a short step, which uses no slot */
} hal_board_message;

_Static_assert(sizeof(hal_board_message) == HAL_BOARD_LINE_BYTES, "a message is a cache line");

/* Other ranks seldom read what follows the messages, so that the rank need not wait for its cache
 * lines when it writes there. */
typedef struct hal_board_rank {
    hal_board_message messages[2];                           /* of steps s mod 2 */
    alignas(HAL_BOARD_LINE_BYTES) _Atomic uint64_t consumed; /* last step that needs nothing from
                                                              * other ranks */
    _Atomic uint32_t joined, left;
    _Atomic uint64_t split; /* last split that the rank has called */
    int32_t colors[2], keys[2];
    _Atomic uint32_t engine; /* HAL_BOARD_ENGINE_* */
    hal_board_offer offer;
    _Atomic uint64_t engine_calls; /* collectives that the rank has submitted to its engine; not
                                    * known of ranks behind a link */
    /* Of steps of large calls, see direct.h. */
    _Atomic uint64_t read;        /* last one whose data the rank has copied */
    _Atomic uint32_t needs_slots; /* 1: the rank cannot read memory of all others */
    hal_board_source sources[2];  /* of steps s mod 2 */
    hal_board_process process;
} hal_board_rank;

/* At the beginning of the memory; `ranks` and the slots follow. */
typedef struct hal_board_header {
    _Atomic uint64_t ready; /* the version, once the header is complete */
    uint32_t count;
    _Atomic uint32_t joined;
    _Atomic uint32_t failure; /* 0: none, 1: a rank is writing it, 2: there is one */
    uint32_t failed_rank;
    int32_t failed_status;
    char message[HAL_BOARD_MESSAGE_BYTES];
    hal_plugin_group_id engine_id; /* of rank 0 */
    hal_board_rank ranks[];
} hal_board_header;

typedef struct hal_board {
    struct hal_board *next; /* among the local boards that are not complete */
    hal_board_header *header;
    uint64_t bytes;      /* of the mapping */
    uint64_t slot_bytes; /* of a slot, and so of a piece; a multiple of 256 */
    hal_group_id id;
    uint32_t count;
    uint32_t own;   /* the rank of this process on shared memory */
    int file;       /* of shared memory; -1: within the process */
    hal_link *link; /* null: the ranks see this memory */
    _Atomic uint32_t references;
} hal_board;

/* Opens the board of an id, or creates it for the first rank that comes, and joins it as `rank`.
 * `shared`: between processes. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, IO, UNSUPPORTED. */
hal_status hal_board_open(const hal_group_id *id, uint32_t rank, uint32_t count, int shared,
                          uint64_t time_limit_ns, const char *function, hal_board **board);

/* Creates the board of a rank with a link to the others, which all exist. Errors: OUT_OF_MEMORY;
 * the link is closed. */
hal_status hal_board_create_linked(hal_link *link, const char *function, hal_board **board);

/* Waits until all ranks have joined. Errors: TIMEOUT with the ranks that did not. */
hal_status hal_board_wait_joined(hal_board *board, uint64_t time_limit_ns, const char *function);

/* Leaves the board as `rank`. */
void hal_board_close(hal_board *board, uint32_t rank);

/* Writes the first failure into a header; returns whether this one is it. Threads: any. */
int hal_board_header_fail(hal_board_header *header, uint32_t rank, hal_status status,
                          const char *text);

/* Records the first failure of the group, by `rank`, for all ranks. Threads: any. */
void hal_board_fail(hal_board *board, uint32_t rank, hal_status status, const char *message);

/* Brings the board up to date and returns the failure with its message as the thread's, HAL_OK
 * without one. Threads: any. */
hal_status hal_board_check(hal_board *board, const char *function);

/* Tells the others what the rank offers; `id` is null but for rank 0 with an engine. Once, before
 * hal_board_post_engine. */
void hal_board_post_offer(hal_board *board, uint32_t rank, const hal_board_offer *offer,
                          const hal_plugin_group_id *id);

/* Tells the others whether the rank's engine was created: HAL_BOARD_ENGINE_CREATED or _REFUSED. */
void hal_board_post_engine(hal_board *board, uint32_t rank, uint32_t state);

/* Whether a rank's process ended without leaving; never the caller's. Threads: any. */
int hal_board_is_rank_dead(const hal_board *board, uint32_t rank);

static inline hal_board_rank *hal_board_rank_at(const hal_board *board, uint32_t rank)
{
    return &board->header->ranks[rank];
}

/* Whether the rank has published the step, or a later one; then its message is that of the step
 * until the caller has consumed it. */
static inline int hal_board_has_published(const hal_board *board, uint32_t rank, uint64_t step)
{
    const hal_board_message *message = &hal_board_rank_at(board, rank)->messages[step % 2];
    return atomic_load_explicit(&message->step, memory_order_acquire) >= step;
}

/* Moves the data of collectives that no engine of a plugin runs: "host", "shared" or "mpi". */
const char *hal_board_engine(const hal_board *board);

/* The slot of a rank for a step; of a board without a link. */
uint8_t *hal_board_slot(const hal_board *board, uint32_t rank, uint64_t step);

#endif
