/* The report of a replay, as text on standard output and as JSON. */
#ifndef HAL_TOOLS_REPLAY_REPORT_H
#define HAL_TOOLS_REPLAY_REPORT_H

#include "replay_compare.h"
#include "replay_file.h"

#include <hal/hal.h>
#include <stdio.h>

/* The command that wrote a compared range. */
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
    uint64_t ranges, identical, within, different; /* compared ranges, and the outcomes */
    uint64_t not_run, not_ended;                   /* batches */
    uint64_t shown;
} replay_report;

/* Prints the recorded device and the device of the replay. */
void replay_report_begin(replay_report *report, const char *path, const replay_device *recorded,
                         const hal_device *device);

/* Counts a compared range; prints it if it is outside of the bound. */
void replay_report_range(replay_report *report, const replay_place *place,
                         const replay_comparison *comparison);

/* Reports a batch that could not be run. */
void replay_report_not_run(replay_report *report, uint64_t batch, const char *reason);

/* Reports a batch that failed, or did not end, on the recorded device. */
void replay_report_failed(replay_report *report, uint64_t batch, const char *reason);

/* Prints the totals. */
void replay_report_end(replay_report *report);

#endif
