/* Runs the records of a file on a device and compares the results with the recorded ones. Called by
 * hal_replay.c. */
#ifndef HAL_TOOLS_REPLAY_RUN_H
#define HAL_TOOLS_REPLAY_RUN_H

#include "replay_kernel.h"
#include "replay_memory.h"
#include "replay_report.h"

/* A range and the last command of the batch that writes it. */
typedef struct replay_written {
    uint64_t memory, begin, end;
    uint32_t command, binding;
    uint64_t kernel; /* 0: a copy or a fill */
    uint32_t kind;
} replay_written;

typedef struct replay_run {
    hal_device *device;
    hal_queue *queue;
    uint32_t alignment; /* of bindings */
    uint32_t lanes;     /* of a subgroup of the recorded device */
    int free_running;   /* continues with its own results */
    replay_bound bound;
    replay_report *report;
    replay_memories memories;
    replay_kernels kernels;

    /* The batch before its outcome. */
    bool is_open, has_run;
    uint64_t batch;
    replay_written *written;
    uint32_t written_count, written_capacity;
    uint8_t *here; /* contents of a range */
    uint64_t here_bytes;
} replay_run;

/* Errors: those of hal_queue_create. */
hal_status replay_run_begin(replay_run *run, hal_device *device, replay_report *report);

/* Runs a record. Errors: INVALID_ARGUMENT for a record that names unknown objects, those of the
 * device except in the commands of a batch. */
hal_status replay_run_record(replay_run *run, const replay_record *record);

/* Called after the last record. */
void replay_run_end(replay_run *run);

#endif
