/* runner.h: runs cases in child processes, one for each group, so that a crash or a hang is the
 * result of one case and the run continues after it; then tries failed cases of families with
 * smaller sizes. */
#ifndef CONFORMANCE_RUNNER_RUNNER_H
#define CONFORMANCE_RUNNER_RUNNER_H

#include "runner/options.h"

/* Runs every result's case and fills in the results. Cases of one group are adjacent. False when
 * no process could be started. */
bool runner_run(const runner_options *options, report_result *results, size_t count);

#endif
