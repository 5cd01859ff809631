/* report.c: what came out, for people. */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Failures of a group that are told at length, with the command that repeats them. */
enum { MOST_TOLD = 10 };

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

const char *report_status_name(case_status status)
{
    switch (status) {
    case CASE_PASSED:
        return "passed";
    case CASE_UNSUPPORTED:
        return "unsupported";
    case CASE_EXPECTED_FAILURE:
        return "expected_failure";
    default:
        return "failed";
    }
}

bool report_is_failure(const report_result *result)
{
    return result->status == CASE_FAILED || result->status == CASE_UNEXPECTED_PASS;
}

const char *report_tool_version(void)
{
    return TEXT(HAL_VERSION_MAJOR) "." TEXT(HAL_VERSION_MINOR) "." TEXT(HAL_VERSION_PATCH);
}

void report_apply_expectations(report_result *result, expect_list *expected)
{
    const expectation *known = expect_find(expected, result->entry->name);
    if (!known) {
        return;
    }
    char text[2048];
    if (result->status == CASE_FAILED) {
        result->status = CASE_EXPECTED_FAILURE;
        snprintf(text, sizeof text, "%s (expected: %s)", result->detail, known->reason);
    } else if (result->status == CASE_PASSED) {
        result->status = CASE_UNEXPECTED_PASS;
        snprintf(text, sizeof text, "passed, though expect.txt says: %s. Take the line out",
                 known->reason);
    } else {
        return;
    }
    free(result->detail);
    result->detail = strdup(text);
}

/* A seed that the name does not hold has to be said. */
void report_command(const run_report *made, const char *options, const char *name, char *text,
                    size_t bytes)
{
    char seed[32] = "";
    if (made->seed != 1 && !strstr(name, "seed=")) {
        snprintf(seed, sizeof seed, " --seed %" PRIu64, made->seed);
    }
    snprintf(text, bytes, "hal-conformance%s%s%s --device %s%s --filter '%s'", options,
             made->plugin_file ? " --plugin " : "", made->plugin_file ? made->plugin_file : "",
             made->device->selection, seed, name);
}

static void add_to(report_summary *summary, case_status status)
{
    switch (status) {
    case CASE_PASSED:
        summary->passed++;
        break;
    case CASE_UNSUPPORTED:
        summary->unsupported++;
        break;
    case CASE_EXPECTED_FAILURE:
        summary->expected_failures++;
        break;
    default:
        summary->failed++;
    }
}

report_summary report_count(const report_result *results, size_t count)
{
    report_summary summary = {0};
    for (size_t i = 0; i < count; i++) {
        add_to(&summary, results[i].status);
    }
    return summary;
}

void report_free_results(report_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(results[i].detail);
        free(results[i].smallest);
        free(results[i].smallest_detail);
    }
    free(results);
}

void report_progress(const report_result *result, size_t done, size_t count, bool to_terminal)
{
    static size_t told;
    if (to_terminal) {
        fprintf(stderr, "\r\033[K");
    }
    if (report_is_failure(result)) {
        fprintf(stderr, "failed: %s: %s\n", result->entry->name,
                result->detail ? result->detail : "no reason");
    }
    if (to_terminal && done < count) {
        fprintf(stderr, "%zu of %zu  %.60s", done, count, result->entry->name);
    }
    told = done <= 1 ? 0 : told;
    if (!to_terminal && count >= 100 && 10 * done / count > told) {
        told = 10 * done / count;
        fprintf(stderr, "%zu of %zu cases done\n", done, count);
    }
}

void report_begin(const run_report *made)
{
    fprintf(stderr, "testing %s (%s, plugin %s %s): %zu cases, seed %" PRIu64 "\n",
            made->device->selection, made->device->info.name, made->device->plugin,
            made->device->plugin_version, made->count, made->seed);
}

static void print_device(FILE *file, const report_device *device)
{
    const char *driver = device->info.driver, *id = device->info.id;
    fprintf(file, "%s: %s\n", device->selection, device->info.name);
    fprintf(file, "  id %s, driver %s, plugin %s %s\n", id[0] == 0 ? "none" : id,
            driver[0] == 0 ? "none" : driver, device->plugin, device->plugin_version);
    fprintf(file, "  %s\n", device->plugin_path);
}

static size_t end_of_group(const run_report *made, size_t first)
{
    size_t end = first;
    while (end < made->count &&
           strcmp(made->results[end].entry->group, made->results[first].entry->group) == 0) {
        end++;
    }
    return end;
}

static void print_group(FILE *file, const report_result *results, size_t count)
{
    const report_summary sum = report_count(results, count);
    double seconds = 0;
    for (size_t i = 0; i < count; i++) {
        seconds += results[i].seconds;
    }
    fprintf(file, "%-24s %7zu %7zu %12zu %9zu %9.2f\n", results[0].entry->group, sum.passed,
            sum.failed, sum.unsupported, sum.expected_failures, seconds);
}

static void print_again(FILE *file, const run_report *made, const char *before, const char *options,
                        const char *name)
{
    char command[2048];
    report_command(made, options, name, command, sizeof command);
    fprintf(file, "    %s%s\n", before, command);
}

static void print_failures(FILE *file, const run_report *made)
{
    size_t in_group = 0;
    for (size_t i = 0; i < made->count; i++) {
        const report_result *result = &made->results[i];
        in_group =
            i > 0 && strcmp(result->entry->group, result[-1].entry->group) == 0 ? in_group : 0;
        if (!report_is_failure(result)) {
            continue;
        }
        if (in_group++ >= MOST_TOLD) {
            fprintf(file, "\nfailed: %s\n    %.160s\n", result->entry->name, result->detail);
            continue;
        }
        fprintf(file, "\nfailed: %s\n    %s\n", result->entry->name, result->detail);
        if (result->smallest) {
            fprintf(file, "  smallest that fails: %s\n    %s\n", result->smallest,
                    result->smallest_detail);
        }
        const char *name = result->smallest ? result->smallest : result->entry->name;
        print_again(file, made, "again: ", "", name);
        if (strstr(result->detail, "ended by signal")) {
            print_again(file, made, "in a debugger: gdb --args ", " --in-process", name);
        }
    }
}

/* Advice printed after failures. */
static void print_next_steps(FILE *file, const run_report *made)
{
    const report_summary sum = report_count(made->results, made->count);
    if (sum.failed == 0) {
        return;
    }
    for (size_t i = 0; i < made->count; i++) {
        if (report_is_failure(&made->results[i])) {
            fprintf(file, "Begin with the first: %s. Later groups use what earlier ones test.\n",
                    made->results[i].entry->name);
            break;
        }
    }
    if (sum.passed == 0 && made->count > 1) {
        fprintf(file, "Nothing passed: see what hal-info says of the device first.\n");
    }
}

void report_print(FILE *file, const run_report *made)
{
    fprintf(file, "\n%-24s %7s %7s %12s %9s %9s\n", "group", "passed", "failed", "unsupported",
            "expected", "seconds");
    for (size_t first = 0; first < made->count; first = end_of_group(made, first)) {
        print_group(file, made->results + first, end_of_group(made, first) - first);
    }
    print_failures(file, made);
    fputc('\n', file);
    print_device(file, made->device);
    fprintf(file, "  hal-conformance %s, library %s, seed %" PRIu64 ", %s, %.0f s\n",
            report_tool_version(), made->device->hal_version, made->seed, made->began,
            made->seconds);
    const report_summary sum = report_count(made->results, made->count);
    fprintf(file, "%zu cases: %zu passed, %zu failed, %zu unsupported, %zu expected failures\n",
            made->count, sum.passed, sum.failed, sum.unsupported, sum.expected_failures);
    if (made->not_run > 0) {
        fprintf(file,
                "Stopped after cases without an answer: %zu more were not run. --timeout allows "
                "more time, --stop more such cases.\n",
                made->not_run);
    }
    print_next_steps(file, made);
}
