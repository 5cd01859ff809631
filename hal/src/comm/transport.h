/* The transport of a rank to the others of its communicator: messages of MPI that do what common
 * memory does for a mailbox.
 *
 * A pair of ranks has three channels, told apart by tags. Step messages come in the order of the
 * steps, one for each step from every rank to every other; those for the targets of a step have the
 * data, or are followed by a data message if there is more than a step message holds. Control
 * messages (failures, splits, the end) are received as soon as they come. A rank is at most
 * HAL_TRANSPORT_WINDOW steps ahead of the slowest one, which bounds what MPI has to keep. */
#ifndef HAL_SRC_COMM_TRANSPORT_H
#define HAL_SRC_COMM_TRANSPORT_H

#include "mailbox_state.h"
#include "mpi_process.h"
#include "segments.h"

#include <stdbool.h>

#define HAL_TRANSPORT_WINDOW 16

typedef struct hal_transport hal_transport;

/* Joins the communicator of all processes of the MPI job.
 * Errors: UNSUPPORTED without MPI or if MPI has other ranks, TIMEOUT with the ranks that did not
 * come, OUT_OF_MEMORY, IO. */
hal_status hal_transport_join(uint32_t rank, uint32_t count, hal_mpi_choice choice,
                              uint64_t time_limit_ns, const char *function,
                              hal_transport **transport);

/* The transport of a part of the communicator after a split: members[i] is the old rank of rank i.
 * Every member calls it. Errors: OUT_OF_MEMORY, UNSUPPORTED if MPI has no more tags. */
hal_status hal_transport_divide(const hal_transport *whole, const uint32_t *members, uint32_t rank,
                                uint32_t count, uint64_t split, hal_transport **part);

/* The number of ranks, and that of the caller. */
uint32_t hal_transport_count(const hal_transport *transport);
uint32_t hal_transport_rank(const hal_transport *transport);

/* Says which header the transport keeps up to date; called once. Threads: any. */
void hal_transport_attach(hal_transport *transport, hal_mailbox_header *header);

/* Leaves the communicator. The transport frees itself when the other ranks have left, too. Threads:
 * any. */
void hal_transport_close(hal_transport *transport);

/* Receives control messages. Threads: any. Errors: IO of MPI, OUT_OF_MEMORY. */
hal_status hal_transport_update(hal_transport *transport);

/* Tells the others the failure, or color and key of a split. Threads: any. Errors: IO. */
void hal_transport_send_failure(hal_transport *transport, uint32_t rank, hal_status status,
                                const char *message);
hal_status hal_transport_send_split(hal_transport *transport, uint64_t number, int32_t color,
                                    int32_t key);

/* Tells the others the state of the rank's backend, see hal_mailbox_post_offer. An error shows in
 * the next hal_transport_update. Threads: any. */
void hal_transport_send_backend(hal_transport *transport, uint32_t state,
                                const hal_mailbox_offer *offer, const hal_plugin_comm_id *id);

/* Receives the step messages of rank q up to step `number`; `messages` and `consumed` of
 * the header tell what came. Threads: those of the steps. Errors: IO, INVALID_ARGUMENT for data
 * that the rank did not expect. */
hal_status hal_transport_look(hal_transport *transport, uint32_t q, uint64_t number);

/* Sends the step message to all ranks and the data to the targets. The data stays unchanged until
 * hal_transport_is_sent. Threads: those of the steps. Errors: IO. */
hal_status hal_transport_publish(hal_transport *transport, uint64_t number,
                                 const hal_mailbox_call *call, uint32_t targets,
                                 const hal_segments *out);

/* Whether MPI has no more use for what the last step published, else sets `*q` to a rank that it
 * waits for. Threads: those of the steps. Errors: IO. */
hal_status hal_transport_is_sent(hal_transport *transport, uint32_t *q, bool *sent);

/* Receives the data of rank q for the step that hal_transport_look has found. Call again until
 * `*done`. Threads: those of the steps. Errors: IO, INVALID_ARGUMENT for another length. */
hal_status hal_transport_take(hal_transport *transport, uint32_t q, uint64_t number, void *data,
                              uint64_t bytes, bool *done);

/* Gives up what the current step sends and receives, and waits shortly for what MPI has begun.
 * Returns whether MPI still uses some of that memory, which has to stay. Threads: those of the
 * steps. */
bool hal_transport_drop(hal_transport *transport);

#endif
