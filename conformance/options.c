/* options.c: the command line; options.h says who calls it. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define DEFAULT_SEED 1u

typedef enum option_kind { TEXT, NUMBER, SEED, LEVELS, PART, FLAG, HELP, VERSION } option_kind;

typedef struct option_row {
    const char *name;
    option_kind kind;
    size_t offset; /* in program_options */
    uint64_t least, most;
} option_row;

#define OF(field) offsetof(program_options, field)

static const option_row rows[] = {
    {"plugin", TEXT, OF(plugin), 0, 0},
    {"device", TEXT, OF(device), 0, 0},
    {"level", LEVELS, OF(levels), 0, 0},
    {"filter", TEXT, OF(filter), 0, 0},
    {"cover", FLAG, OF(cover), 0, 0},
    {"every", NUMBER, OF(every), 1, 1000000},
    {"part", PART, OF(part), 0, 0},
    {"seed", SEED, OF(seed), 0, 0},
    {"expect", TEXT, OF(expect), 0, 0},
    {"compare", TEXT, OF(compare), 0, 0},
    {"json", TEXT, OF(json), 0, 0},
    {"junit", TEXT, OF(junit), 0, 0},
    {"tap", TEXT, OF(tap), 0, 0},
    {"list", FLAG, OF(list), 0, 0},
    {"table", FLAG, OF(table), 0, 0},
    {"jobs", NUMBER, OF(jobs), 1, 64},
    {"timeout", NUMBER, OF(seconds), 1, 86400},
    {"shrink", NUMBER, OF(shrink_seconds), 0, 86400},
    {"in-process", FLAG, OF(in_process), 0, 0},
    {"version", VERSION, 0, 0, 0},
    {"help", HELP, 0, 0, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const char usage[] =
    "usage: hal-conformance [options]\n"
    "What to test\n"
    "  --plugin FILE.so    this plugin: it is put in front of HAL_PLUGIN_PATH; without --device,\n"
    "                      its first device\n"
    "  --device SELECTION  this device, such as cpu:0 (else HAL_BACKEND, else the default)\n"
    "  --level LEVELS      core, ops, stress, or several with commas (core,ops)\n"
    "  --filter TEXT       only cases whose name or group holds TEXT, or fits it when it has *\n"
    "                      or ?; a whole name may have other sizes than any listed case\n"
    "  --cover             of these, a few that cover every opcode x type x kind of memory and\n"
    "                      every value of every parameter that they all cover\n"
    "  --every N           of these, the first of each group and every N-th after it (1)\n"
    "  --part I/N          of these, the I-th and every N-th after it: N such runs do them all\n"
    "  --seed N            another seed for all random inputs (1)\n"
    "  --expect FILE       known failures (else hal_NAME.expect.txt beside hal_NAME.so)\n"
    "How\n"
    "  --jobs N            processes at a time (1)\n"
    "  --timeout SECONDS   that one case may take (60)\n"
    "  --shrink SECONDS    to look for the smallest sizes with which a case fails; 0: do not (5)\n"
    "  --in-process        without processes of their own, for a debugger: a crash ends it\n"
    "What to say\n"
    "  --json FILE         write the results as JSON; - is standard output\n"
    "  --junit FILE        write the results as JUnit XML\n"
    "  --tap FILE          write the results as TAP\n"
    "  --compare FILE      what changed since the report that --json wrote there\n"
    "  --list              print the names of the cases and end\n"
    "  --table             print what the cases cover and end; status 1 when a cell is empty\n"
    "  --version, --help\n"
    "Exit status: 0 nothing failed, 1 something failed, 2 wrong usage.\n";

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == 0 && text[0] != '-';
}

static bool parse_levels(const char *text, unsigned *levels)
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
            return false;
        }
        *levels |= level;
        text += length + (text[length] == ',');
    }
    return *levels != 0;
}

static bool parse_part(const char *text, program_options *options)
{
    int end = 0;
    return sscanf(text, "%3u/%3u%n", &options->part, &options->parts, &end) == 2 &&
           text[end] == 0 && options->part >= 1 && options->part <= options->parts;
}

static bool take(const option_row *row, const char *value, program_options *options)
{
    void *target = (char *)options + row->offset;
    uint64_t number = 0;
    switch (row->kind) {
    case TEXT:
        *(const char **)target = value;
        return true;
    case NUMBER:
        if (!parse_number(value, &number) || number < row->least || number > row->most) {
            return false;
        }
        *(unsigned *)target = (unsigned)number;
        return true;
    case SEED:
        options->seed_given = true;
        return parse_number(value, &options->seed);
    case LEVELS:
        return parse_levels(value, &options->levels);
    case PART:
        return parse_part(value, options);
    default:
        *(bool *)target = true;
        return true;
    }
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

int options_parse(int count, char **arguments, program_options *options)
{
    struct option known[ROWS + 1] = {0};
    for (int i = 0; i < ROWS; i++) {
        known[i].name = rows[i].name;
        known[i].has_arg = rows[i].kind < FLAG;
        known[i].val = 1000 + i;
    }
    *options = (program_options){.levels = CASE_LEVEL_CORE | CASE_LEVEL_OPS,
                                 .seed = DEFAULT_SEED,
                                 .jobs = 1,
                                 .seconds = 60,
                                 .shrink_seconds = 5,
                                 .every = 1,
                                 .part = 1,
                                 .parts = 1};
    int option;
    while ((option = getopt_long(count, arguments, "h", known, NULL)) != -1) {
        if (option == '?') {
            fputs(usage, stderr);
            return 1;
        }
        const option_row *row = &rows[option == 'h' ? ROWS - 1 : option - 1000];
        if (row->kind == HELP) {
            fputs(usage, stdout);
            return -1;
        }
        if (row->kind == VERSION) {
            printf("hal-conformance %s\n", report_tool_version());
            return -1;
        }
        if (!take(row, optarg, options)) {
            fprintf(stderr, "hal-conformance: '%s' is no value for --%s\n%s", optarg, row->name,
                    usage);
            return 1;
        }
    }
    if (optind < count) {
        fprintf(stderr, "hal-conformance: '%s' is no option\n%s", arguments[optind], usage);
        return 1;
    }
    take_seed_of_filter(options);
    return 0;
}
