/* main.c: hal-conformance: holds a device to what hal's and the op library's headers promise and
 * to what the device itself claims. docs/conformance.md explains how to read what it prints. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "case/case.h"
#include "case/child.h"
#include "report/compare.h"
#include "case/cover.h"
#include "report/expect.h"
#include "runner/inspect.h"
#include "options.h"
#include "report/report.h"
#include "runner/runner.h"

/* Cases that take a tenth of a second and more on a good device. */
static bool is_long(const case_entry *entry)
{
    static const char *const patterns[] = {"points/*_wait*",
                                           "points/limit_is_kept",
                                           "points/elapsed_*",
                                           "points/more_than_*",
                                           "transfer/of_64_mib",
                                           "transfer/sides_*",
                                           "lifetimes/*_leave_*",
                                           "lifetimes/process_*",
                                           "widths/lengths",
                                           "limits/far_bindings",
                                           "limits/groups(*",
                                           "limits/long_fill",
                                           "device/same_in_*",
                                           "device/taken_memory",
                                           "kernel/warm_cache",
                                           "buffer/exhausted",
                                           "ir/size(*",
                                           "ir/atomic_conten*",
                                           "device/plugin_*",
                                           "leaks/*",
                                           "limits/groups_of*",
                                           "coherence/far*",
                                           "points/waits*",
                                           "rows/wide*",
                                           "lifetimes/open_*",
                                           "device/several_*",
                                           "points/look_*",
                                           "large/lengths",
                                           "faults/*number=[3-6])"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (fnmatch(patterns[i], entry->name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether one of the filter's patterns selects the case; `is_whole`: by its whole name. */
static bool is_named(const char *filter, const case_entry *entry, bool *is_whole)
{
    bool named = false;
    *is_whole = false;
    for (const char *at = filter; at && !*is_whole;
         at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        char text[CASE_NAME_BYTES];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "|"), at);
        *is_whole = strcmp(text, entry->name) == 0;
        named = named ||
                (strpbrk(text, "*?")
                     ? fnmatch(text, entry->name, 0) == 0 || fnmatch(text, entry->group, 0) == 0
                     : strstr(entry->name, text) || strstr(entry->group, text));
    }
    return named;
}

static bool is_selected(const program_options *options, const case_entry *entry)
{
    bool is_whole = false;
    if (options->filter && !is_named(options->filter, entry, &is_whole)) {
        return false;
    }
    return is_whole ||
           ((entry->level & options->levels) != 0 && !(options->quick && is_long(entry)));
}

/* A whole name that no case has may be one of a family with other sizes. */
static void add_named_case(const program_options *options, case_list *list)
{
    if (!options->filter || !strchr(options->filter, '(')) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (is_selected(options, &list->entries[i])) {
            return;
        }
    }
    case_add_by_name(list, options->filter);
}

/* Keeps few cases that cover what all of them cover. Without memory for the choice all are kept. */
static size_t keep_cover(report_result *results, size_t count)
{
    const case_entry **entries = malloc((count + 1) * sizeof *entries);
    bool *chosen = malloc((count + 1) * sizeof *chosen);
    size_t kept = count;
    for (size_t i = 0; entries && i < count; i++) {
        entries[i] = results[i].entry;
    }
    if (entries && chosen && cover_select(entries, count, chosen)) {
        kept = 0;
        for (size_t i = 0; i < count; i++) {
            results[kept] = results[i];
            kept += chosen[i];
        }
    }
    free(chosen);
    free(entries);
    return kept;
}

/* Takes of the first `count` results one in `every` of each group, and of these one in `parts`. */
static size_t keep_sample(const program_options *options, report_result *results, size_t count)
{
    const char *group = ""; /* of the case before */
    size_t kept = 0, in_group = 0, sampled = 0;
    for (size_t i = 0; i < count; i++) {
        const report_result result = results[i];
        in_group = strcmp(group, result.entry->group) == 0 ? in_group + 1 : 0;
        group = result.entry->group;
        if (in_group % options->every == 0 && sampled++ % options->parts == options->part - 1) {
            results[kept++] = result;
        }
    }
    return kept;
}

static size_t select_cases(const program_options *options, const case_list *list,
                           report_result *results)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (is_selected(options, &list->entries[i])) {
            results[count++] = (report_result){.entry = &list->entries[i]};
        }
    }
    if (options->cover) {
        count = keep_cover(results, count);
    }
    return keep_sample(options, results, count);
}

static void print_selected(const program_options *options, const case_list *list)
{
    report_result *results = calloc(list->count, sizeof *results);
    const size_t count = !results ? 0 : select_cases(options, list, results);
    for (size_t i = 0; i < count; i++) {
        puts(results[i].entry->name);
    }
    free(results);
}

/* Prepends a file to HAL_PLUGIN_PATH, with its whole path, as a case changes the working folder.
 * False, with errno, when it does not exist. */
static bool look_there_first(const char *file)
{
    const char *others = getenv("HAL_PLUGIN_PATH");
    char *whole = access(file, R_OK) == 0 ? realpath(file, NULL) : NULL;
    const size_t bytes = whole ? strlen(whole) + (!others ? 0 : strlen(others)) + 2 : 0;
    char *path = whole ? malloc(bytes) : NULL;
    if (!path) {
        free(whole);
        return false;
    }
    snprintf(path, bytes, "%s%s%s", whole, !others || others[0] == 0 ? "" : ":",
             !others ? "" : others);
    const bool well = setenv("HAL_PLUGIN_PATH", path, 1) == 0;
    free(whole);
    free(path);
    return well;
}

static bool read_earlier(const program_options *options, compare_report **earlier)
{
    char message[1024];
    *earlier = !options->compare ? NULL : compare_read(options->compare, message, sizeof message);
    if (options->compare && !*earlier) {
        fprintf(stderr, "hal-conformance: %s\n", message);
        return false;
    }
    return true;
}

/* Without --expect: hal_NAME.expect.txt next to hal_NAME.so, else expect.txt in its folder. Both
 * are optional. */
static bool read_expectations(const program_options *options, const report_device *device,
                              expect_list *expected)
{
    char path[1024], message[2048];
    const char *file = options->expect;
    if (!file) {
        const char *plugin = device->plugin_path;
        const char *slash = strrchr(plugin, '/');
        const int folder = !slash ? 0 : (int)(slash - plugin) + 1;
        const char *dot = strrchr(plugin + folder, '.');
        const int stem = !dot ? (int)strlen(plugin) : (int)(dot - plugin);
        snprintf(path, sizeof path, "%.*s.expect.txt", stem, plugin);
        if (access(path, F_OK) != 0) {
            snprintf(path, sizeof path, "%.*sexpect.txt", folder, plugin);
        }
        if (plugin[0] == 0 || access(path, F_OK) != 0) {
            return true;
        }
        file = path;
    }
    if (!expect_read(file, expected, message, sizeof message)) {
        fprintf(stderr, "hal-conformance: %s\n", message);
        return false;
    }
    return true;
}

/* Standard output, unless a machine reads it. */
static FILE *output_for_people(const program_options *options)
{
    const char *const paths[] = {options->json, options->junit, options->tap};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (paths[i] && strcmp(paths[i], "-") == 0) {
            return stderr;
        }
    }
    return stdout;
}

/* Reports known failures whose case does not exist, such as a renamed case. */
static bool print_unknown(FILE *file, const expect_list *expected, const case_list *list)
{
    bool well = true;
    for (size_t i = 0; i < expected->count; i++) {
        bool fits = strstr(expected->items[i].pattern, "seed=") != NULL; /* perhaps of another */
        for (size_t k = 0; k < list->count && !fits; k++) {
            fits = expect_fits(&expected->items[i], list->entries[k].name);
        }
        if (!fits) {
            fprintf(file, "No case fits '%s' among the known failures. Take the line out\n",
                    expected->items[i].pattern);
            well = false;
        }
    }
    return well;
}

static bool write_reports(const program_options *options, const run_report *made)
{
    bool well = !options->json || report_write_json(options->json, made);
    well = (!options->junit || report_write_junit(options->junit, made)) && well;
    return (!options->tap || report_write_tap(options->tap, made)) && well;
}

/* Moves the cases that ran to the front and counts the others. */
static size_t keep_done(report_result *results, size_t count, size_t *not_run)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const report_result one = results[i];
        if (one.done) {
            results[i] = results[kept];
            results[kept++] = one;
        }
    }
    *not_run = count - kept;
    return kept;
}

static int run_selected(const program_options *options, const case_list *list,
                        const report_device *device, compare_report *earlier)
{
    expect_list expected = {0};
    report_result *results = calloc(list->count, sizeof *results);
    size_t count = 0;
    int status = 2;
    if (results && read_expectations(options, device, &expected)) {
        count = select_cases(options, list, results);
        const runner_options running = {.selection = device->selection,
                                        .seed = options->seed,
                                        .jobs = options->jobs,
                                        .seconds = options->seconds,
                                        .shrink_seconds = options->shrink_seconds,
                                        .most_hung = options->most_hung,
                                        .expected = &expected,
                                        .in_process = options->in_process,
                                        .to_terminal = isatty(STDERR_FILENO) == 1};
        run_report made = {.device = device,
                           .plugin_file = options->plugin,
                           .results = results,
                           .count = count,
                           .seed = options->seed};
        const time_t began = time(NULL);
        strftime(made.began, sizeof made.began, "%Y-%m-%dT%H:%M:%SZ", gmtime(&began));
        const double start = child_now();
        if (count == 0) {
            fprintf(stderr,
                    "hal-conformance: no case has this name and level; see --list. A whole name "
                    "may differ from a listed one by its sizes and its seed alone\n");
        } else {
            FILE *people = output_for_people(options);
            report_begin(&made);
            const bool ran = runner_run(&running, results, count);
            made.seconds = child_now() - start;
            made.count = keep_done(results, count, &made.not_run);
            report_print(people, &made);
            if (earlier) {
                compare_print(people, earlier, &made, list);
            }
            const bool all_known = print_unknown(people, &expected, list);
            fflush(people);
            const bool written = write_reports(options, &made);
            status = report_count(results, made.count).failed > 0 || !ran || !written ||
                     !all_known || made.not_run > 0;
        }
    }
    report_free_results(results, count);
    expect_free(&expected);
    return status;
}

static int run_on_device(const program_options *options, const case_list *list)
{
    char message[2048];
    report_device device = {0};
    compare_report *earlier = NULL;
    if (options->plugin && !look_there_first(options->plugin)) {
        fprintf(stderr, "hal-conformance: no plugin %s: %s\n", options->plugin, strerror(errno));
        return 2;
    }
    if (!inspect_device(options->device, options->plugin, options->seconds, &device, message,
                        sizeof message)) {
        fprintf(stderr, "hal-conformance: %s\n", message);
        return 1;
    }
    const int status =
        read_earlier(options, &earlier) ? run_selected(options, list, &device, earlier) : 2;
    compare_free(earlier);
    return status;
}

int main(int count, char **arguments)
{
    program_options options;
    const int parsed = options_parse(count, arguments, &options);
    if (parsed != 0) {
        return parsed < 0 ? 0 : 2;
    }
    if (options.levels == CASE_LEVEL_SANITIZE) {
        /* Of the processes that run cases. */
        setenv("HAL_SANITIZE", "bounds,init,race,math,nan", 1);
    }
    case_list list = {.seed = options.seed};
    case_list_fill(&list);
    add_named_case(&options, &list);
    int status = 0;
    if (list.out_of_memory) {
        fprintf(stderr, "hal-conformance: out of memory\n");
        status = 1;
    } else if (options.table) {
        status = cover_print(stdout, &list) == 0 ? 0 : 1;
    } else if (options.list) {
        print_selected(&options, &list);
    } else {
        status = run_on_device(&options, &list);
    }
    case_list_free(&list);
    return status;
}
