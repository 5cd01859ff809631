/* One rank of a communicator: its state, and the memory that its collectives use. */
#ifndef HAL_SRC_COMM_RANK_H
#define HAL_SRC_COMM_RANK_H

#include "mailbox.h"
#include "core/kernel.h"
#include "core/queue.h"

enum {                       /* device memory of a stage */
       HAL_SCRATCH_OPERAND,  /* of a reduction, at an address that no binding may have */
       HAL_SCRATCH_RESULT,   /* likewise */
       HAL_SCRATCH_RECEIVED, /* contributions that a backend has moved */
       HAL_SCRATCH_SENT,     /* what it moves */
       HAL_SCRATCHES
};

/* Staging memory for one queue of the rank. The outbox holds what the rank publishes, the inbox
 * what it received. The queue's order and the fences guard them. */
typedef struct hal_comm_stage {
    struct hal_comm_stage *next;
    const hal_timeline *timeline;
    hal_buffer *outbox, *inbox;
    uint8_t *outbox_host, *inbox_host;
    hal_buffer *scratch[HAL_SCRATCHES]; /* null until needed */
} hal_comm_stage;

#define HAL_COMM_KERNELS 3u /* forms of a reduction kernel, see reduce.c */

typedef struct hal_backend hal_backend; /* backend_create.h */

struct hal_comm {
    _Atomic uint32_t references;
    hal_device *device;
    hal_mailbox *mailbox; /* null: the communicator has one rank */
    hal_backend *backend; /* null: hal moves all data itself */
    uint32_t rank, count;
    const hal_poll_policy *policy; /* of its fences */
    uint64_t key[2]; /* that of the mailbox, by which others recognise this memory (direct.h) */
    uint64_t time_limit_ns;

    hal_comm *next_shared;    /* among those of the process with processes, see comm.c */
    _Atomic uintptr_t thread; /* that created the rank, or recorded its last step */

    /* Of the thread that records. */
    uint64_t last_step;
    uint64_t last_split;
    hal_comm_stage *stages;
    hal_kernel *kernels[HAL_TYPE_COUNT][4][HAL_COMM_KERNELS]; /* by type, reduction, form */
    _Atomic uint32_t is_aborted;                              /* of a communicator of one rank */
    _Atomic uint32_t has_varied; /* a sum was not added in the order of the ranks */
};

/* Errors: INVALID_ARGUMENT for a null device or one that was released, INVALID_STATE after a fork,
 * DEVICE_LOST. */
hal_status hal_comm_check_device(hal_device *device, const char *function);

/* The failure of the communicator as a status with its message. Threads: any. */
hal_status hal_comm_check(hal_comm *comm, const char *function);

/* Ends the communicator on all ranks with the thread's message, as the caller's failure. Returns
 * `status`. */
hal_status hal_comm_fail(hal_comm *comm, hal_status status);

/* The staging memory for a queue; created when needed. Threads: the recording one's.
 * Errors: OUT_OF_MEMORY, those of buffers. */
hal_status hal_comm_stage_for(hal_comm *comm, hal_queue *queue, hal_comm_stage **stage);

/* `scratch[which]` of a stage with at least `bytes` bytes; a larger one takes the place of one that
 * is too small, whose content is lost. Errors: as above. */
hal_status hal_comm_scratch(hal_comm *comm, hal_comm_stage *stage, uint32_t which, uint64_t bytes,
                            hal_buffer **buffer);

#endif
