/* report.h: what came out, for people, as JSON and as JUnit XML. Called by main.c and runner.c. */
#ifndef HAL_CONFORMANCE_REPORT_H
#define HAL_CONFORMANCE_REPORT_H

#include <stdio.h>

#include "case.h"
#include "expect.h"

/* The device under test, as a child process found it. */
typedef struct report_device {
    char selection[128]; /* that opens it: "cpu:0" */
    char plugin[64];
    char plugin_version[64];
    char plugin_path[512];
    char hal_version[32];
    uint32_t index;
    hal_device_info info;
} report_device;

typedef struct report_result {
    const case_entry *entry;
    case_status status;
    double seconds;
    char *detail; /* "" when there is nothing to say */
    bool done;
} report_result;

typedef struct report_summary {
    size_t passed, failed, unsupported, expected_failures;
} report_summary;

/* "passed", "failed", "unsupported", "expected_failure". */
const char *report_status_name(case_status status);

/* Turns failures that the list expects into expected ones, and passes that it does not into
 * failures. */
void report_apply_expectations(report_result *result, expect_list *expected);

report_summary report_count(const report_result *results, size_t count);

/* One line on a terminal while the cases run; only failures get lines of their own. */
void report_progress(const report_result *result, size_t done, size_t count, bool to_terminal);

/* The closing table: a line for each group, then the sums and the failures. */
void report_print(FILE *file, const report_device *device, uint64_t seed,
                  const report_result *results, size_t count);

/* Files for machines. False when the file cannot be written. */
bool report_write_json(const char *path, const report_device *device, uint64_t seed,
                       const report_result *results, size_t count);
bool report_write_junit(const char *path, const report_device *device, uint64_t seed,
                        const report_result *results, size_t count);

#endif
