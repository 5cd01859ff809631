/* machine.c: reports for machines: JSON, JUnit XML and TAP. What
 * devices and drivers say of themselves may be any bytes: all three files are valid UTF-8. */
#include "report/report.h"

#include "json.h"
#include "report/contract.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static FILE *open_to_write(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (!file) {
        fprintf(stderr, "hal-conformance: cannot write %s: %s\n", path, strerror(errno));
    }
    return file;
}

static void write_device(FILE *file, const report_device *device)
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
        json_write_text(file, texts[i].value);
    }
    fprintf(file, ", \"subgroup_width\": %u, \"exactness\": %u, \"features\": %u}",
            device->info.subgroup_width, device->info.exactness, device->info.features);
}

static bool close_written(FILE *file, const char *path)
{
    bool well = fflush(file) == 0 && ferror(file) == 0;
    if (file != stdout) {
        well = fclose(file) == 0 && well;
    }
    if (!well) {
        fprintf(stderr, "hal-conformance: cannot write %s: %s\n", path, strerror(errno));
    }
    return well;
}

static void write_xml_text(FILE *file, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != 0;) {
        const size_t length = json_character((const char *)c);
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
            if (*c < 32 || *c == 127 || length == 0) {
                fputc(*c == '\n' || *c == '\t' ? ' ' : '?', file);
            } else {
                fwrite(c, 1, length, file);
            }
        }
        c += length == 0 ? 1 : length;
    }
}

/* On one line, and without a '#' that would begin a directive. */
static void write_tap_text(FILE *file, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != 0;) {
        const size_t length = json_character((const char *)c);
        if (*c == '#' || *c == '\\') {
            fprintf(file, "\\%c", *c);
        } else if (*c < 32 || *c == 127 || length == 0) {
            fputc(*c == '\n' || *c == '\t' ? ' ' : '?', file);
        } else {
            fwrite(c, 1, length, file);
        }
        c += length == 0 ? 1 : length;
    }
}

/* What repeats a failed case, and the numbers of the contract's sentences that it violates. */
typedef struct failure_notes {
    char again[2048], contract[512];
} failure_notes;

static failure_notes notes_of(const run_report *made, const report_result *result)
{
    failure_notes notes;
    report_command(made, "", result->entry->name, notes.again, sizeof notes.again);
    contract_numbers(result->entry->name, notes.contract, sizeof notes.contract);
    return notes;
}

/* The YAML of a failure; a text in double quotes is the same in JSON. */
static void write_tap_block(FILE *file, const run_report *made, const report_result *result)
{
    const failure_notes notes = notes_of(made, result);
    fprintf(file, "  ---\n  message: ");
    json_write_text(file, result->detail);
    fprintf(file, "\n  again: ");
    json_write_text(file, notes.again);
    fprintf(file, "\n  contract: ");
    json_write_text(file, notes.contract);
    if (result->smallest) {
        fprintf(file, "\n  smallest: ");
        json_write_text(file, result->smallest);
        fprintf(file, "\n  smallest_message: ");
        json_write_text(file, result->smallest_detail);
    }
    fprintf(file, "\n  seconds: %.6f\n  ...\n", result->seconds);
}

bool report_write_json(const char *path, const run_report *made)
{
    FILE *file = open_to_write(path);
    if (!file) {
        return false;
    }
    const report_summary sum = report_count(made->results, made->count);
    fprintf(file, "{\n\"tool\": {\"name\": \"hal-conformance\", \"version\": ");
    json_write_text(file, report_tool_version());
    fprintf(file, "},\n\"device\": ");
    write_device(file, made->device);
    fprintf(file, ",\n\"seed\": %" PRIu64 ",\n\"began\": ", made->seed);
    json_write_text(file, made->began);
    fprintf(file, ",\n\"seconds\": %.3f,\n", made->seconds);
    fprintf(file,
            "\"summary\": {\"passed\": %zu, \"failed\": %zu, \"unsupported\": %zu, "
            "\"expected_failures\": %zu, \"not_run\": %zu},\n\"cases\": [",
            sum.passed, sum.failed, sum.unsupported, sum.expected_failures, made->not_run);
    for (size_t i = 0; i < made->count; i++) {
        const report_result *result = &made->results[i];
        fprintf(file, "%s\n{\"name\": ", i == 0 ? "" : ",");
        json_write_text(file, result->entry->name);
        fprintf(file, ", \"status\": \"%s\", \"detail\": ", report_status_name(result->status));
        json_write_text(file, result->detail);
        if (report_is_failure(result)) {
            const failure_notes notes = notes_of(made, result);
            fprintf(file, ", \"again\": ");
            json_write_text(file, notes.again);
            fprintf(file, ", \"contract\": ");
            json_write_text(file, notes.contract);
        }
        if (result->smallest) {
            fprintf(file, ", \"smallest\": {\"name\": ");
            json_write_text(file, result->smallest);
            fprintf(file, ", \"detail\": ");
            json_write_text(file, result->smallest_detail);
            fprintf(file, "}");
        }
        fprintf(file, ", \"group\": \"%s\", \"seconds\": %.6f}", result->entry->group,
                result->seconds);
    }
    fprintf(file, "\n]\n}\n");
    return close_written(file, path);
}

bool report_write_junit(const char *path, const run_report *made)
{
    FILE *file = open_to_write(path);
    if (!file) {
        return false;
    }
    const report_device *device = made->device;
    const report_summary sum = report_count(made->results, made->count);
    fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"hal-conformance ");
    write_xml_text(file, device->selection);
    fprintf(file,
            "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\" "
            "timestamp=\"%.19s\">\n<properties>\n<property name=\"seed\" value=\"%" PRIu64 "\"/>\n",
            made->count, sum.failed, sum.unsupported + sum.expected_failures, made->seconds,
            made->began, made->seed);
    const char *const properties[][2] = {{"version", report_tool_version()},
                                         {"device", device->info.name},
                                         {"id", device->info.id},
                                         {"driver", device->info.driver},
                                         {"plugin", device->plugin},
                                         {"plugin_version", device->plugin_version},
                                         {"plugin_path", device->plugin_path},
                                         {"hal_version", device->hal_version}};
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
        fprintf(file, "<property name=\"%s\" value=\"", properties[i][0]);
        write_xml_text(file, properties[i][1]);
        fprintf(file, "\"/>\n");
    }
    fprintf(file, "</properties>\n");
    for (size_t i = 0; i < made->count; i++) {
        const report_result *result = &made->results[i];
        fprintf(file, "<testcase classname=\"%s\" name=\"", result->entry->group);
        write_xml_text(file, result->entry->name);
        fprintf(file, "\" time=\"%.6f\"", result->seconds);
        if (result->status == CASE_PASSED) {
            fprintf(file, "/>\n");
            continue;
        }
        const char *element = report_is_failure(result) ? "failure" : "skipped";
        fprintf(file, "><%s message=\"", element);
        write_xml_text(file, result->detail);
        fprintf(file, "\">");
        if (report_is_failure(result)) {
            const failure_notes notes = notes_of(made, result);
            fprintf(file, "again: ");
            write_xml_text(file, notes.again);
            fprintf(file, "\ncontract: ");
            write_xml_text(file, notes.contract);
        }
        if (result->smallest) {
            fprintf(file, "\nsmallest that fails: ");
            write_xml_text(file, result->smallest);
            fprintf(file, ": ");
            write_xml_text(file, result->smallest_detail);
        }
        fprintf(file, "</%s></testcase>\n", element);
    }
    fprintf(file, "</testsuite>\n");
    return close_written(file, path);
}

/* Unsupported is skipped, an expected failure is a test that is still to do, in TAP's words. */
bool report_write_tap(const char *path, const run_report *made)
{
    FILE *file = open_to_write(path);
    if (!file) {
        return false;
    }
    fprintf(file, "TAP version 13\n1..%zu\n# hal-conformance %s, seed %" PRIu64 ", ", made->count,
            report_tool_version(), made->seed);
    write_tap_text(file, made->device->selection);
    fprintf(file, ": ");
    write_tap_text(file, made->device->info.name);
    fprintf(file, ", driver ");
    write_tap_text(file, made->device->info.driver);
    fputc('\n', file);
    for (size_t i = 0; i < made->count; i++) {
        const report_result *result = &made->results[i];
        const bool failed = report_is_failure(result) || result->status == CASE_EXPECTED_FAILURE;
        fprintf(file, "%s %zu - ", failed ? "not ok" : "ok", i + 1);
        write_tap_text(file, result->entry->name);
        if (result->status == CASE_UNSUPPORTED || result->status == CASE_EXPECTED_FAILURE) {
            fprintf(file, result->status == CASE_UNSUPPORTED ? " # skip " : " # todo ");
            write_tap_text(file, result->detail);
        }
        fputc('\n', file);
        if (report_is_failure(result)) {
            write_tap_block(file, made, result);
        }
    }
    return close_written(file, path);
}
