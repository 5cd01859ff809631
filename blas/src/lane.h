/* Lanes: queues of the device, each used by one call at a time. */
#ifndef BLAS_SRC_LANE_H
#define BLAS_SRC_LANE_H

#include <ops/ops.h>
#include <stdbool.h>

typedef struct blas_lane {
    hal_queue *queue;
    ops_context *context;
    bool is_in_place;            /* the device computes on the host's memory without a copy */
    uint64_t moved_bytes;        /* between the host's memory and the device, by this call */
    uint32_t losses;             /* of the queue at the last wait, see hal_queue_get_loss */
    uint32_t serial;             /* of the last call that was waited for */
    uint32_t finished;           /* the last one whose work has ended, which the device writes */
    hal_buffer *finished_buffer; /* of it; null where lanes are not in place */
    struct blas_lane *next;      /* of the free ones */
} blas_lane;

/* Takes a lane of the device that HAL_BACKEND selects, which the first call opens; the cpu plugin
 * where that device cannot be opened and there is no host's BLAS. Lanes are kept until the process
 * ends; a forked child opens its own.
 * Ownership: the caller's, until blas_lane_release. Threads: any.
 * Errors: those of hal_device_open, hal_queue_create and ops_context_create. */
hal_status blas_lane_acquire(blas_lane **lane);

/* Waits for the work of a lane that is in place. A device that is lost after it has finished the
 * work has not failed: what was added to the host's memory must not be added again.
 * Threads: the lane's. Errors: those of hal_queue_wait, and of batches that were dropped since the
 * last wait. */
hal_status blas_lane_wait(blas_lane *lane);

/* Batches that were dropped before do not fail the next wait. Threads: the lane's. */
void blas_lane_forget_losses(blas_lane *lane);

/* Returns a lane; after a failed call its queue is waited for and not used again. Threads: any. */
void blas_lane_release(blas_lane *lane, bool has_failed);

/* Whether lanes are in place, see above; false: also where there is no device. Threads: any. */
bool blas_lane_is_in_place(void);

/* The device, without a reference; null: none could be opened. Threads: any. */
hal_device *blas_lane_device(void);

#endif
