/* report.h: results as text, JSON, JUnit XML and TAP, and compared with an earlier report. */
#ifndef CONFORMANCE_REPORT_REPORT_H
#define CONFORMANCE_REPORT_REPORT_H

#include <stdio.h>

#include "case/case.h"
#include "report/expect.h"

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
    char *detail;                     /* "": none */
    char *smallest, *smallest_detail; /* the name with the smallest sizes that fails; null: none */
    bool done;
} report_result;

/* A run, when it is over. */
typedef struct run_report {
    const report_device *device;
    const char *plugin_file; /* that was asked for by its path; null: none was */
    const report_result *results;
    size_t count;
    size_t not_run; /* cases that were left out after others had no answer */
    uint64_t seed;
    char began[32]; /* as ISO 8601 in UTC */
    double seconds; /* that it took */
} run_report;

typedef struct report_summary {
    size_t passed, failed, unsupported, expected_failures;
} report_summary;

/* "passed", "failed", "unsupported", "expected_failure". */
const char *report_status_name(case_status status);
bool report_is_failure(const report_result *result);

/* Of this program and the library's headers that it was built with. */
const char *report_tool_version(void);

/* Turns failures that the list expects into expected ones, and passes that it does not into
 * failures. */
void report_apply_expectations(report_result *result, expect_list *expected);

report_summary report_count(const report_result *results, size_t count);
void report_free_results(report_result *results, size_t count);

/* The command that runs one case again; `options` begin with a space or are empty. */
void report_command(const run_report *made, const char *options, const char *name, char *text,
                    size_t bytes);

/* On standard error: what is going to be tested. */
void report_begin(const run_report *made);

/* On standard error, while the cases run: each failure, and on a terminal a line that counts,
 * elsewhere one for every tenth of the cases. */
void report_progress(const report_result *result, size_t done, size_t count, bool to_terminal);

/* The closing table: a line for each group, then the failures, the device and the sums. */
void report_print(FILE *file, const run_report *made);

/* Files for machines; the path "-" is standard output. False when it cannot be written,
 * after saying so. */
bool report_write_json(const char *path, const run_report *made);
bool report_write_junit(const char *path, const run_report *made);
bool report_write_tap(const char *path, const run_report *made);

#endif
