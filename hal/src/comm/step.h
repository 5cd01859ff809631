/* A step of a collective: the rank publishes data on the mailbox and receives data of others. It is
 * the fence of the batch that uses what was received. */
#ifndef HAL_SRC_COMM_STEP_H
#define HAL_SRC_COMM_STEP_H

#include "rank.h"
#include "segments.h"

#include <stdbool.h>

typedef struct hal_step_description {
    hal_mailbox_call call;
    hal_segments out; /* in the rank's own slot */
    hal_segments in;  /* segment q comes from slot q, all from the same offset; a single source
                        * has segment 0 */
    uint32_t sources; /* a rank, HAL_STEP_ALL or HAL_STEP_NONE */
    uint32_t targets; /* that have the rank among their sources, likewise */
    bool keeps_own;   /* 1: segment `rank` of `in` receives `out`, which has one segment */
    uint64_t since;   /* first value of the queue whose rejection fails the step */
} hal_step_description;

/* Writes what a call is, such as "all_reduce of 4 f32, sum". */
void hal_step_describe(const hal_mailbox_call *call, char text[128]);

/* "all_reduce", ... */
const char *hal_step_kind_name(const hal_mailbox_call *call);

/* Flushes the queue, whose batch ends with the commands that produce `out`, and puts a fence before
 * the next batch. Threads: the queue's. Errors: those of the flush, OUT_OF_MEMORY. */
hal_status hal_step_record(hal_comm *comm, hal_queue *queue,
                           const hal_step_description *description);

#endif
