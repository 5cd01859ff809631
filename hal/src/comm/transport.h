/* The link of a rank to the others of its group: messages of MPI that do what common memory does
 * for a board. Used by board.c, step.c, split.c and environment.c.
 *
 * A pair of ranks has three channels, told apart by tags. Step messages come in the order of the
 * steps, one for each step from every rank to every other; those for the targets of a step have the
 * data, or are followed by a data message if there is more than a step message holds. Control
 * messages (failures, splits, the end) are received as soon as they come. A rank is at most
 * HAL_LINK_WINDOW steps ahead of the slowest one, which bounds what MPI has to keep. */
#ifndef HAL_SRC_GROUP_LINK_H
#define HAL_SRC_GROUP_LINK_H

#include "mpi_process.h"
#include "segments.h"

#include <hal/group.h>

#define HAL_LINK_WINDOW 16

/* The call of a collective; ranks compare it before they read data. */
typedef struct hal_board_call {
    uint8_t kind, reduction, type;
    uint8_t any_order; /* 0 or 1 */
    uint32_t root;
    uint64_t count;
} hal_board_call;

struct hal_board_header;
struct hal_board_offer;
struct hal_plugin_group_id;
typedef struct hal_link hal_link;

/* Joins the group of all processes of the MPI job.
 * Errors: UNSUPPORTED without MPI or if MPI has other ranks, TIMEOUT with the ranks that did not
 * come, OUT_OF_MEMORY, IO. */
hal_status hal_link_join(uint32_t rank, uint32_t count, hal_mpi_choice choice,
                         uint64_t time_limit_ns, const char *function, hal_link **link);

/* The link of a part of the group after a split: members[i] is the old rank of rank i. Every member
 * calls it. Errors: OUT_OF_MEMORY, UNSUPPORTED if MPI has no more tags. */
hal_status hal_link_divide(const hal_link *whole, const uint32_t *members, uint32_t rank,
                           uint32_t count, uint64_t split, hal_link **part);

/* The number of ranks, and that of the caller. */
uint32_t hal_link_count(const hal_link *link);
uint32_t hal_link_rank(const hal_link *link);

/* Says which header the link keeps up to date; called once. Threads: any. */
void hal_link_attach(hal_link *link, struct hal_board_header *header);

/* Leaves the group. The link frees itself when the other ranks have left, too. Threads: any. */
void hal_link_close(hal_link *link);

/* Receives control messages. Threads: any. Errors: IO of MPI, OUT_OF_MEMORY. */
hal_status hal_link_update(hal_link *link);

/* Tells the others the failure, or color and key of a split. Threads: any. Errors: IO. */
void hal_link_send_failure(hal_link *link, uint32_t rank, hal_status status, const char *message);
hal_status hal_link_send_split(hal_link *link, uint64_t number, int32_t color, int32_t key);

/* Tells the others the state of the rank's engine, see hal_board_post_offer. An error shows in the
 * next hal_link_update. Threads: any. */
void hal_link_send_engine(hal_link *link, uint32_t state, const struct hal_board_offer *offer,
                          const struct hal_plugin_group_id *id);

/* Receives the step messages of rank q up to step `number`; `messages` and `consumed` of
 * the header tell what came. Threads: those of the steps. Errors: IO, INVALID_ARGUMENT for data
 * that the rank did not expect. */
hal_status hal_link_look(hal_link *link, uint32_t q, uint64_t number);

/* Sends the step message to all ranks and the data to the targets. The data stays unchanged until
 * hal_link_is_sent. Threads: those of the steps. Errors: IO. */
hal_status hal_link_publish(hal_link *link, uint64_t number, const hal_board_call *call,
                            uint32_t targets, const hal_segments *out);

/* Whether MPI has no more use for what the last step published, else sets `*q` to a rank that it
 * waits for. Threads: those of the steps. Errors: IO. */
hal_status hal_link_is_sent(hal_link *link, uint32_t *q, int *sent);

/* Receives the data of rank q for the step that hal_link_look has found. Call again until `*done`.
 * Threads: those of the steps. Errors: IO, INVALID_ARGUMENT for another length. */
hal_status hal_link_take(hal_link *link, uint32_t q, uint64_t number, void *data, uint64_t bytes,
                         int *done);

/* Gives up what the current step sends and receives, and waits shortly for what MPI has begun.
 * Returns whether MPI still uses some of that memory, which has to stay. Threads: those of the
 * steps. */
int hal_link_drop(hal_link *link);

#endif
