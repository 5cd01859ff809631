/* runner.h: runs cases in child processes, one for each group, so that a crash or a hang is the
 * result of one case and the run goes on after it; then tries failed cases of families with
 * smaller sizes. Called by main.c. */
#ifndef HAL_CONFORMANCE_RUNNER_H
#define HAL_CONFORMANCE_RUNNER_H

#include "expect.h"
#include "report.h"

typedef struct runner_options {
    const char *selection; /* that opens the device in every child */
    uint64_t seed;
    unsigned jobs;           /* children at a time */
    unsigned seconds;        /* that one case may take */
    unsigned shrink_seconds; /* for the smallest sizes with which a case fails; 0: not looked for */
    expect_list *expected;
    bool in_process;  /* no children: a crash or a hang is the program's own */
    bool to_terminal; /* draw a line of progress */
} runner_options;

/* Runs every result's case and fills in the results. Cases of one group are adjacent. False when
 * no process could be started. */
bool runner_run(const runner_options *options, report_result *results, size_t count);

#endif
