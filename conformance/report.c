/* report.c: what came out, in three forms; report.h says who calls it. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void add_to(report_summary *summary, case_status status);
static void print_group(FILE *file, const report_result *results, size_t first, size_t count);
static void print_failures(FILE *file, const report_result *results, size_t count);
static void write_json_text(FILE *file, const char *text);
static void write_json_device(FILE *file, const report_device *device);
static void write_xml_text(FILE *file, const char *text);
static bool close_written(FILE *file, const char *path);

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

void report_apply_expectations(report_result *result, expect_list *expected)
{
    const expectation *known = expect_find(expected, result->entry->name);
    if (known == NULL) {
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

report_summary report_count(const report_result *results, size_t count)
{
    report_summary summary = {0};
    for (size_t i = 0; i < count; i++) {
        add_to(&summary, results[i].status);
    }
    return summary;
}

void report_progress(const report_result *result, size_t done, size_t count, bool to_terminal)
{
    if (!to_terminal) {
        return;
    }
    fprintf(stderr, "\r\033[K");
    if (strcmp(report_status_name(result->status), "failed") == 0) {
        fprintf(stderr, "failed: %s\n", result->entry->name);
    }
    if (done < count) {
        fprintf(stderr, "%zu of %zu  %.60s", done, count, result->entry->name);
    }
}

void report_print(FILE *file, const report_device *device, uint64_t seed,
                  const report_result *results, size_t count)
{
    fprintf(file, "\n%-24s %7s %7s %12s %9s %9s\n", "group", "passed", "failed", "unsupported",
            "expected", "seconds");
    for (size_t first = 0; first < count;) {
        size_t end = first;
        while (end < count && strcmp(results[end].entry->group, results[first].entry->group) == 0) {
            end++;
        }
        print_group(file, results + first, 0, end - first);
        first = end;
    }
    print_failures(file, results, count);
    const report_summary sum = report_count(results, count);
    fprintf(file, "\n%s (%s, plugin %s %s), seed %" PRIu64 "\n", device->selection,
            device->info.name, device->plugin, device->plugin_version, seed);
    fprintf(file, "%zu cases: %zu passed, %zu failed, %zu unsupported, %zu expected failures\n",
            count, sum.passed, sum.failed, sum.unsupported, sum.expected_failures);
}

bool report_write_json(const char *path, const report_device *device, uint64_t seed,
                       const report_result *results, size_t count)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return close_written(NULL, path);
    }
    const report_summary sum = report_count(results, count);
    fprintf(file, "{\n\"device\": ");
    write_json_device(file, device);
    fprintf(file, ",\n\"seed\": %" PRIu64 ",\n", seed);
    fprintf(file,
            "\"summary\": {\"passed\": %zu, \"failed\": %zu, \"unsupported\": %zu, "
            "\"expected_failures\": %zu},\n\"cases\": [",
            sum.passed, sum.failed, sum.unsupported, sum.expected_failures);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s\n{\"name\": ", i == 0 ? "" : ",");
        write_json_text(file, results[i].entry->name);
        fprintf(file, ", \"status\": \"%s\", \"detail\": ", report_status_name(results[i].status));
        write_json_text(file, results[i].detail);
        fprintf(file, ", \"group\": \"%s\", \"seconds\": %.6f}", results[i].entry->group,
                results[i].seconds);
    }
    fprintf(file, "\n]\n}\n");
    return close_written(file, path);
}

bool report_write_junit(const char *path, const report_device *device, uint64_t seed,
                        const report_result *results, size_t count)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return close_written(NULL, path);
    }
    const report_summary sum = report_count(results, count);
    fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"hal-conformance ");
    write_xml_text(file, device->selection);
    fprintf(file, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n", count,
            sum.failed, sum.unsupported + sum.expected_failures);
    fprintf(file, "<properties><property name=\"seed\" value=\"%" PRIu64 "\"/></properties>\n",
            seed);
    for (size_t i = 0; i < count; i++) {
        const report_result *result = &results[i];
        fprintf(file, "<testcase classname=\"%s\" name=\"", result->entry->group);
        write_xml_text(file, result->entry->name);
        fprintf(file, "\" time=\"%.6f\"", result->seconds);
        if (result->status == CASE_PASSED) {
            fprintf(file, "/>\n");
            continue;
        }
        const bool failed = strcmp(report_status_name(result->status), "failed") == 0;
        fprintf(file, "><%s message=\"", failed ? "failure" : "skipped");
        write_xml_text(file, result->detail);
        fprintf(file, "\"/></testcase>\n");
    }
    fprintf(file, "</testsuite>\n");
    return close_written(file, path);
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

static void print_group(FILE *file, const report_result *results, size_t first, size_t count)
{
    report_summary sum = {0};
    double seconds = 0;
    for (size_t i = first; i < first + count; i++) {
        add_to(&sum, results[i].status);
        seconds += results[i].seconds;
    }
    fprintf(file, "%-24s %7zu %7zu %12zu %9zu %9.2f\n", results[first].entry->group, sum.passed,
            sum.failed, sum.unsupported, sum.expected_failures, seconds);
}

static void print_failures(FILE *file, const report_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(report_status_name(results[i].status), "failed") == 0) {
            fprintf(file, "\nfailed: %s\n    %s\n    again: --filter '%s'\n",
                    results[i].entry->name, results[i].detail, results[i].entry->name);
        }
    }
}

static void write_json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(file, "\\%c", *c);
        } else if (*c < 32 || *c == 127) {
            fprintf(file, "\\u%04x", *c);
        } else {
            fputc(*c, file);
        }
    }
    fputc('"', file);
}

static void write_json_device(FILE *file, const report_device *device)
{
    const struct {
        const char *key, *value;
    } texts[] = {{"selection", device->selection},
                 {"name", device->info.name},
                 {"id", device->info.id},
                 {"plugin", device->plugin},
                 {"plugin_version", device->plugin_version},
                 {"plugin_path", device->plugin_path},
                 {"driver", device->info.driver},
                 {"architecture", device->info.architecture},
                 {"hal_version", device->hal_version}};
    fputc('{', file);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fprintf(file, "%s\"%s\": ", i == 0 ? "" : ", ", texts[i].key);
        write_json_text(file, texts[i].value);
    }
    fprintf(file, ", \"subgroup_width\": %u, \"exactness\": %u, \"abilities\": %u}",
            device->info.subgroup_width, device->info.exactness, device->info.abilities);
}

static void write_xml_text(FILE *file, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++) {
        switch (*c) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        default:
            fputc(*c < 32 ? ' ' : *c, file);
        }
    }
}

static bool close_written(FILE *file, const char *path)
{
    bool well = file != NULL && ferror(file) == 0;
    well = (file == NULL || fclose(file) == 0) && well;
    if (!well) {
        fprintf(stderr, "hal-conformance: cannot write %s: %s\n", path, strerror(errno));
    }
    return well;
}
