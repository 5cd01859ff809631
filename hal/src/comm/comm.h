/* One rank of a group, as the sources of this folder see it. */
#ifndef HAL_SRC_GROUP_GROUP_H
#define HAL_SRC_GROUP_GROUP_H

#include "board.h"
#include "core/kernel.h"
#include "core/queue.h"

enum {                       /* device memory of a stage */
       HAL_SCRATCH_OPERAND,  /* of a reduction, at an address that no binding may have */
       HAL_SCRATCH_RESULT,   /* likewise */
       HAL_SCRATCH_RECEIVED, /* contributions that an engine has moved */
       HAL_SCRATCH_SENT,     /* what it moves */
       HAL_SCRATCHES
};

/* Staging memory for one queue of the rank. The outbox holds what the rank publishes, the inbox
 * what it received. The queue's order and the gates guard them. */
typedef struct hal_group_stage {
    struct hal_group_stage *next;
    const hal_timeline *timeline;
    hal_buffer *outbox, *inbox;
    uint8_t *outbox_host, *inbox_host;
    hal_buffer *scratch[HAL_SCRATCHES]; /* null until needed */
} hal_group_stage;

#define HAL_GROUP_KERNELS 3u /* forms of a reduction kernel, see reduce.c */

typedef struct hal_engine hal_engine; /* engine_create.h */

/* Where reductions in the order of the ranks (ordered.h) are divided. Tests set lower values. */
typedef struct hal_group_limits {
    uint64_t received_bytes; /* at most received at once; at least 256 for each rank */
    uint64_t gathered_bytes; /* of all contributions, up to which each rank receives all of them */
} hal_group_limits;

struct hal_group {
    _Atomic uint32_t references;
    hal_device *device;
    hal_board *board;   /* null: the group has one rank */
    hal_engine *engine; /* null: hal moves all data itself */
    uint32_t rank, count;
    int is_crowded;  /* there are more ranks than processors */
    uint64_t key[2]; /* that of the board, by which others recognise this memory (direct.h) */
    uint64_t time_limit_ns;
    hal_group_limits limits; /* the same on all ranks */

    /* Of the thread that records. */
    uint64_t last_step;
    uint64_t last_split;
    hal_group_stage *stages;
    hal_kernel *kernels[HAL_TYPE_COUNT][4][HAL_GROUP_KERNELS]; /* by type, reduction, form */
    _Atomic uint32_t is_aborted;                               /* of a group of one rank */
    _Atomic uint32_t has_varied; /* a sum was not added in the order of the ranks */
};

/* Creates a rank; takes the board. Errors: OUT_OF_MEMORY; the board is closed. */
hal_status hal_group_make(hal_device *device, hal_board *board, uint32_t rank, uint32_t count,
                          uint64_t time_limit_ns, const char *function, hal_group **group);

/* Creates the engines (engine_create.h) of new ranks, all of the calling thread; waits for the
 * others. Null entries are passed over. Errors: those of hal_engine_create; the groups are
 * destroyed. */
hal_status hal_group_start(hal_group **groups, uint32_t count, const char *function);

/* Errors: INVALID_ARGUMENT for a null device or one that was released, INVALID_STATE after a fork,
 * DEVICE_LOST. */
hal_status hal_group_check_device(hal_device *device, const char *function);

/* Internal references. Threads: any. */
void hal_group_ref(hal_group *group);
void hal_group_unref(hal_group *group);

/* The failure of the group as a status with its message. Threads: any. */
hal_status hal_group_check(hal_group *group, const char *function);

/* Ends the group on all ranks with the thread's message, as the caller's failure. Returns
 * `status`. */
hal_status hal_group_fail(hal_group *group, hal_status status);

/* The staging memory for a queue; created when needed. Threads: the recording one's.
 * Errors: OUT_OF_MEMORY, those of buffers. */
hal_status hal_group_stage_for(hal_group *group, hal_queue *queue, hal_group_stage **stage);

/* `scratch[which]` of a stage with at least `bytes` bytes; a larger one takes the place of one that
 * is too small, whose content is lost. Errors: as above. */
hal_status hal_group_scratch(hal_group *group, hal_group_stage *stage, uint32_t which,
                             uint64_t bytes, hal_buffer **buffer);

#endif
