/* options.h: how cases are run. */
#ifndef CONFORMANCE_RUNNER_OPTIONS_H
#define CONFORMANCE_RUNNER_OPTIONS_H

#include "report/expect.h"
#include "report/report.h"

typedef struct runner_options {
    const char *selection; /* that opens the device in every child */
    uint64_t seed;
    unsigned jobs;           /* children at a time */
    unsigned seconds;        /* that one case may take */
    unsigned most_hung;      /* cases without an answer, after which the run ends; 0: no limit */
    unsigned shrink_seconds; /* for the smallest sizes with which a case fails; 0: not looked for */
    expect_list *expected;
    bool in_process;  /* no children: a crash or a hang is the program's own */
    bool to_terminal; /* draw a line of progress */
} runner_options;

#endif
