/* main.c: hal-conformance: holds a device to what hal's and the op library's headers promise and
 * to what the device itself claims. docs/conformance.md explains how to read what it prints. */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "cover.h"
#include "expect.h"
#include "inspect.h"
#include "report.h"
#include "runner.h"

#define DEFAULT_SEED 1u

typedef struct program_options {
    const char *plugin, *device, *filter, *json, *junit, *expect;
    unsigned levels;
    uint64_t seed;
    unsigned jobs, seconds, every;
    unsigned part, parts;
    bool seed_given, list, table;
} program_options;

static int parse_options(int count, char **arguments, program_options *options);
static int parse_level(const char *text, unsigned *levels);
static bool parse_number(const char *text, uint64_t *number);
static bool parse_part(const char *text, program_options *options);
static void take_seed_of_filter(program_options *options);
static bool is_selected(const program_options *options, const case_entry *entry);
static size_t select_cases(const program_options *options, const case_list *list,
                           report_result *results);
static void print_selected(const program_options *options, const case_list *list);
static int run_selected(const program_options *options, const case_list *list);
static bool read_expectations(const program_options *options, const report_device *device,
                              expect_list *expected);
static int report_all(const program_options *options, const report_device *device,
                      const report_result *results, size_t count);

static const char usage[] =
    "usage: hal-conformance [options]\n"
    "  --plugin FILE.so    test this plugin: it is put in front of HAL_PLUGIN_PATH\n"
    "  --device SELECTION  test this device, such as cpu:0 (else HAL_BACKEND, else the default)\n"
    "  --level LEVELS      core, ops, stress, or several with commas (core,ops)\n"
    "  --filter TEXT       only cases whose name or group holds TEXT, or fits it when it has *\n"
    "                      or ?\n"
    "  --every N           of these, the first of each group and every N-th after it (1)\n"
    "  --part I/N          of these, the I-th and every N-th after it: N such runs do them all\n"
    "  --seed N            another seed for all random inputs (1)\n"
    "  --expect FILE       known failures (else hal_NAME.expect.txt beside hal_NAME.so)\n"
    "  --json FILE         write the results as JSON\n"
    "  --junit FILE        write the results as JUnit XML\n"
    "  --list              print the names of the cases and end\n"
    "  --table             print what the cases cover and end; status 1 when a cell is empty\n"
    "  --jobs N            processes at a time (1)\n"
    "  --timeout SECONDS   that one case may take (60)\n"
    "Exit status: 0 nothing failed, 1 something failed, 2 wrong usage.\n";

int main(int count, char **arguments)
{
    program_options options = {
        .levels = CASE_LEVEL_CORE | CASE_LEVEL_OPS, .seed = DEFAULT_SEED, .jobs = 1, .seconds = 60, .every = 1,
        .part = 1, .parts = 1};
    const int parsed = parse_options(count, arguments, &options);
    if (parsed != 0) {
        return parsed < 0 ? 0 : 2;
    }
    take_seed_of_filter(&options);
    case_list list = {.seed = options.seed};
    case_list_fill(&list);
    int status = 0;
    if (list.out_of_memory) {
        fprintf(stderr, "hal-conformance: out of memory\n");
        status = 1;
    } else if (options.table) {
        status = cover_print(stdout, &list) == 0 ? 0 : 1;
    } else if (options.list) {
        print_selected(&options, &list);
    } else {
        status = run_selected(&options, &list);
    }
    case_list_free(&list);
    return status;
}

/* 0: go on, 1: wrong usage, -1: help was printed. */
static int parse_options(int count, char **arguments, program_options *options)
{
    enum {
        PLUGIN = 1000,
        DEVICE,
        LEVEL,
        FILTER,
        EVERY,
        PART,
        SEED,
        EXPECT,
        JSON,
        JUNIT,
        LIST,
        TABLE,
        JOBS,
        TIMEOUT,
        HELP
    };
    static const struct option known[] = {
        {"plugin", 1, NULL, PLUGIN}, {"device", 1, NULL, DEVICE}, {"level", 1, NULL, LEVEL},
        {"filter", 1, NULL, FILTER}, {"seed", 1, NULL, SEED},     {"expect", 1, NULL, EXPECT},
        {"json", 1, NULL, JSON},     {"junit", 1, NULL, JUNIT},   {"list", 0, NULL, LIST},
        {"table", 0, NULL, TABLE},   {"jobs", 1, NULL, JOBS},     {"timeout", 1, NULL, TIMEOUT},
        {"every", 1, NULL, EVERY},   {"part", 1, NULL, PART},     {"help", 0, NULL, HELP},
        {NULL, 0, NULL, 0}};
    int option;
    uint64_t number = 1;
    bool well = true;
    while (well && (option = getopt_long(count, arguments, "h", known, NULL)) != -1) {
        switch (option) {
        case PLUGIN:
            options->plugin = optarg;
            break;
        case DEVICE:
            options->device = optarg;
            break;
        case LEVEL:
            well = parse_level(optarg, &options->levels) == 0;
            break;
        case FILTER:
            options->filter = optarg;
            break;
        case EVERY:
            well = parse_number(optarg, &number) && number >= 1 && number <= 1000000;
            options->every = (unsigned)number;
            break;
        case PART:
            well = parse_part(optarg, options);
            break;
        case SEED:
            well = parse_number(optarg, &options->seed);
            options->seed_given = true;
            break;
        case EXPECT:
            options->expect = optarg;
            break;
        case JSON:
            options->json = optarg;
            break;
        case JUNIT:
            options->junit = optarg;
            break;
        case LIST:
            options->list = true;
            break;
        case TABLE:
            options->table = true;
            break;
        case JOBS:
            well = parse_number(optarg, &number) && number >= 1 && number <= 64;
            options->jobs = (unsigned)number;
            break;
        case TIMEOUT:
            well = parse_number(optarg, &number) && number >= 1 && number <= 86400;
            options->seconds = (unsigned)number;
            break;
        case 'h':
        case HELP:
            fputs(usage, stdout);
            return -1;
        default:
            fputs(usage, stderr);
            return 1;
        }
    }
    if (!well) {
        fprintf(stderr, "hal-conformance: '%s' is no value for that option\n%s", optarg, usage);
        return 1;
    }
    if (optind < count) {
        fprintf(stderr, "hal-conformance: '%s' is no option\n%s", arguments[optind], usage);
        return 1;
    }
    return 0;
}

static int parse_level(const char *text, unsigned *levels)
{
    static const struct {
        const char *name;
        unsigned level;
    } known[] = {{"core", CASE_LEVEL_CORE}, {"ops", CASE_LEVEL_OPS}, {"stress", CASE_LEVEL_STRESS}};
    *levels = 0;
    while (*text != 0) {
        const size_t length = strcspn(text, ",");
        unsigned level = 0;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            if (strlen(known[i].name) == length && strncmp(text, known[i].name, length) == 0) {
                level = known[i].level;
            }
        }
        if (level == 0) {
            return 1;
        }
        *levels |= level;
        text += length + (text[length] == ',');
    }
    return *levels == 0;
}

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == 0 && text[0] != '-';
}

static bool parse_part(const char *text, program_options *options)
{
    int end = 0;
    return sscanf(text, "%3u/%3u%n", &options->part, &options->parts, &end) == 2 &&
           text[end] == 0 && options->part >= 1 && options->part <= options->parts;
}

/* A case's name holds its seed, so the name alone brings the same run back. */
static void take_seed_of_filter(program_options *options)
{
    const char *seed = options->filter == NULL ? NULL : strstr(options->filter, "seed=");
    if (seed != NULL && !options->seed_given) {
        const uint64_t number = strtoull(seed + strlen("seed="), NULL, 10);
        options->seed = number == 0 ? options->seed : number;
    }
}

static bool is_selected(const program_options *options, const case_entry *entry)
{
    if (options->filter != NULL) {
        if (strcmp(options->filter, entry->name) == 0) {
            return true;
        }
        const bool pattern = strpbrk(options->filter, "*?") != NULL;
        const bool named = pattern ? fnmatch(options->filter, entry->name, 0) == 0 ||
                                         fnmatch(options->filter, entry->group, 0) == 0
                                   : strstr(entry->name, options->filter) != NULL ||
                                         strstr(entry->group, options->filter) != NULL;
        if (!named) {
            return false;
        }
    }
    return (entry->level & options->levels) != 0;
}

static size_t select_cases(const program_options *options, const case_list *list,
                           report_result *results)
{
    const case_entry *first = NULL; /* of the group, as far as they are selected */
    size_t count = 0, in_group = 0, sampled = 0;
    for (size_t i = 0; i < list->count; i++) {
        const case_entry *entry = &list->entries[i];
        if (!is_selected(options, entry)) {
            continue;
        }
        if (first == NULL || strcmp(first->group, entry->group) != 0) {
            first = entry;
            in_group = 0;
        }
        if (in_group++ % options->every == 0 &&
            sampled++ % options->parts == options->part - 1) {
            results[count++] = (report_result){.entry = entry};
        }
    }
    return count;
}

static void print_selected(const program_options *options, const case_list *list)
{
    report_result *results = calloc(list->count, sizeof *results);
    const size_t count = results == NULL ? 0 : select_cases(options, list, results);
    for (size_t i = 0; i < count; i++) {
        puts(results[i].entry->name);
    }
    free(results);
}

static int run_selected(const program_options *options, const case_list *list)
{
    char message[2048];
    report_device device = {0};
    if (options->plugin != NULL) {
        setenv("HAL_PLUGIN_PATH", options->plugin, 1);
    }
    if (!inspect_device(options->device, options->plugin, &device, message, sizeof message)) {
        fprintf(stderr, "hal-conformance: %s\n", message);
        return 1;
    }
    expect_list expected = {0};
    report_result *results = calloc(list->count, sizeof *results);
    int status = 2;
    if (results != NULL && read_expectations(options, &device, &expected)) {
        const size_t count = select_cases(options, list, results);
        const runner_options running = {.selection = device.selection,
                                        .seed = options->seed,
                                        .jobs = options->jobs,
                                        .seconds = options->seconds,
                                        .expected = &expected,
                                        .to_terminal = isatty(STDERR_FILENO) == 1};
        if (count == 0) {
            fprintf(stderr, "hal-conformance: no case has this name and level\n");
        } else {
            const bool ran = runner_run(&running, results, count);
            status = report_all(options, &device, results, count) != 0 || !ran;
        }
        for (size_t i = 0; i < count; i++) {
            free(results[i].detail);
        }
    }
    free(results);
    expect_free(&expected);
    return status;
}

/* Without --expect: hal_NAME.expect.txt beside hal_NAME.so, else expect.txt in its folder; neither
 * need be there. */
static bool read_expectations(const program_options *options, const report_device *device,
                              expect_list *expected)
{
    char path[1024], message[2048];
    const char *file = options->expect;
    if (file == NULL) {
        const char *plugin = device->plugin_path;
        const char *slash = strrchr(plugin, '/');
        const int folder = slash == NULL ? 0 : (int)(slash - plugin) + 1;
        const char *dot = strrchr(plugin + folder, '.');
        const int stem = dot == NULL ? (int)strlen(plugin) : (int)(dot - plugin);
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

static int report_all(const program_options *options, const report_device *device,
                      const report_result *results, size_t count)
{
    bool well = report_count(results, count).failed == 0;
    report_print(stdout, device, options->seed, results, count);
    if (options->json != NULL) {
        well = report_write_json(options->json, device, options->seed, results, count) && well;
    }
    if (options->junit != NULL) {
        well = report_write_junit(options->junit, device, options->seed, results, count) && well;
    }
    return well ? 0 : 1;
}
