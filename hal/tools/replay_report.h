/* What a replay found, for people on standard output and for programs as JSON. Called by
 * replay_run.c and hal_replay.c. */
#ifndef HAL_TOOLS_REPLAY_REPORT_H
#define HAL_TOOLS_REPLAY_REPORT_H

#include "replay_compare.h"
#include "replay_file.h"

#include <hal/hal.h>
#include <stdio.h>

/* Where a range that was compared was written. */
typedef struct replay_place {
    uint64_t batch;   /* counts from 1 */
    uint32_t command; /* of the batch, counts from 0 */
    const char *kernel;
    const char *binding; /* name */
    uint64_t memory, begin;
    hal_type type;
} replay_place;

/* Begins as {.json = a file or null}. */
typedef struct replay_report {
    FILE *json;
    uint64_t batches, commands;
    uint64_t ranges, identical, within, different; /* compared; the last three are all of them */
    uint64_t not_run, not_ended;                   /* batches */
    uint64_t shown;
} replay_report;

/* What was recorded, and the device that replays it. */
void replay_report_begin(replay_report *report, const char *path, const replay_device *recorded,
                         const hal_device *device);

/* A range that was compared; told only when it differs beyond the bound. */
void replay_report_range(replay_report *report, const replay_place *place,
                         const replay_comparison *comparison);

/* A batch that could not be run here. */
void replay_report_not_run(replay_report *report, uint64_t batch, const char *reason);

/* A batch that failed, or did not end, where it was recorded. */
void replay_report_failed(replay_report *report, uint64_t batch, const char *reason);

/* The sums. */
void replay_report_end(replay_report *report);

#endif
