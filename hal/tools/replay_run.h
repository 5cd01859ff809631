/* Running the records of a file on a device, one after the other, and comparing what comes of them
 * with what was recorded. Called by hal_replay.c. */
#ifndef HAL_TOOLS_REPLAY_RUN_H
#define HAL_TOOLS_REPLAY_RUN_H

#include "replay_kernel.h"
#include "replay_memory.h"
#include "replay_report.h"

/* The last command of a batch that writes a range. */
typedef struct replay_written {
    uint64_t memory, begin, end;
    uint32_t command, binding;
    uint64_t kernel; /* 0: a copy or a fill */
    uint32_t kind;
} replay_written;

/* Begins with replay_run_begin. */
typedef struct replay_run {
    hal_device *device;
    hal_queue *queue;
    uint32_t alignment; /* of bindings */
    uint32_t lanes;     /* of a subgroup where it was recorded */
    int free_running;   /* goes on with its own results */
    replay_bound bound;
    replay_report *report;
    replay_memories memories;
    replay_kernels kernels;

    /* The batch whose outcome has not come yet. */
    int is_open, has_run;
    uint64_t batch;
    replay_written *written;
    uint32_t written_count, written_capacity;
    uint8_t *here; /* what a range holds now */
    uint64_t here_bytes;
} replay_run;

/* Errors: what hal_queue_create answers. */
hal_status replay_run_begin(replay_run *run, hal_device *device, replay_report *report);

/* Carries a record out. Errors: INVALID_ARGUMENT for a record that names what is not there, what
 * the device answers outside of a batch's own work. */
hal_status replay_run_record(replay_run *run, const replay_record *record);

/* After the last record. */
void replay_run_end(replay_run *run);

#endif
