/* options.c: the command line of hal-conformance. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "report/report.h"

#define DEFAULT_SEED 1u
#define OF(field) offsetof(program_options, field)

static bool read_levels(const char *text, void *options)
{
    static const char *const names[] = {"core", "ops", "stress", "comm", "process", "sanitize"};
    static const unsigned levels[] = {CASE_LEVEL_CORE, CASE_LEVEL_OPS, CASE_LEVEL_STRESS,
                                      CASE_LEVEL_COMM, CASE_LEVEL_PROCESS, CASE_LEVEL_SANITIZE};
    program_options *asked = options;
    char word[16];
    int more;
    asked->levels = 0;
    while ((more = command_list_next(&text, word, sizeof word)) > 0) {
        const int index = command_index_of(word, names, sizeof names / sizeof names[0]);
        if (index < 0) {
            return false;
        }
        asked->levels |= levels[index];
    }
    const bool is_alone = asked->levels == CASE_LEVEL_SANITIZE;
    return more == 0 && asked->levels != 0 &&
           (is_alone || !(asked->levels & CASE_LEVEL_SANITIZE));
}

static bool read_part(const char *text, void *options)
{
    program_options *asked = options;
    int end = 0;
    return sscanf(text, "%3u/%3u%n", &asked->part, &asked->parts, &end) == 2 && text[end] == 0 &&
           asked->part >= 1 && asked->part <= asked->parts;
}

static bool read_seed(const char *text, void *options)
{
    program_options *asked = options;
    asked->seed_given = true;
    return command_read_u64(text, &asked->seed);
}

static const command_option rows[] = {
    {.name = "plugin",
     .argument = "FILE.so",
     .help =
         "this plugin: it is put in front of HAL_PLUGIN_PATH; without --device, its first device",
     .kind = COMMAND_TEXT,
     .offset = OF(plugin),
     .heading = "What to test"},
    {.name = "device",
     .argument = "SELECTION",
     .help = "this device, such as cpu:0 (else HAL_BACKEND, else the default)",
     .kind = COMMAND_TEXT,
     .offset = OF(device)},
    {.name = "level",
     .argument = "LEVELS",
     .help = "core, ops, stress, comm, process, or several with commas (core,ops); sanitize alone",
     .kind = COMMAND_CALL,
     .read = read_levels},
    {.name = "filter",
     .argument = "TEXT",
     .help = "only cases whose name or group holds TEXT, or fits it when it has * or ?; a whole "
             "name may "
             "have other sizes than any listed case; several with |",
     .kind = COMMAND_TEXT,
     .offset = OF(filter)},
    {.name = "cover",
     .help =
         "of these, a few that cover every opcode x type x kind of memory and every value of every "
         "parameter that they all cover",
     .kind = COMMAND_FLAG,
     .offset = OF(cover)},
    {.name = "quick",
     .help = "of level core, what --cover takes, without cases that take long: some seconds",
     .kind = COMMAND_FLAG,
     .offset = OF(quick)},
    {.name = "every",
     .argument = "N",
     .help = "of these, the first of each group and every N-th after it (1)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(every),
     .least = 1,
     .most = 1000000},
    {.name = "part",
     .argument = "I/N",
     .help = "of these, the I-th and every N-th after it: N such runs do them all",
     .kind = COMMAND_CALL,
     .read = read_part},
    {.name = "seed",
     .argument = "N",
     .help = "another seed for all random inputs (1)",
     .kind = COMMAND_CALL,
     .read = read_seed},
    {.name = "expect",
     .argument = "FILE",
     .help = "known failures (else hal_NAME.expect.txt next to hal_NAME.so)",
     .kind = COMMAND_TEXT,
     .offset = OF(expect)},
    {.name = "jobs",
     .argument = "N",
     .help = "processes at a time (1)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(jobs),
     .least = 1,
     .most = 64,
     .heading = "How"},
    {.name = "timeout",
     .argument = "SECONDS",
     .help = "that one case may take (60)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(seconds),
     .least = 1,
     .most = 86400},
    {.name = "stop",
     .argument = "N",
     .help = "end the run after N cases without an answer; 0: never (5)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(most_hung),
     .least = 0,
     .most = 1000000},
    {.name = "shrink",
     .argument = "SECONDS",
     .help = "to look for the smallest sizes with which a case fails; 0: do not (5)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(shrink_seconds),
     .least = 0,
     .most = 86400},
    {.name = "in-process",
     .help = "without a process for each group, for a debugger: a crash ends the run",
     .kind = COMMAND_FLAG,
     .offset = OF(in_process)},
    {.name = "json",
     .argument = "FILE",
     .help = "write the results as JSON; - is standard output",
     .kind = COMMAND_TEXT,
     .offset = OF(json),
     .heading = "What to print"},
    {.name = "junit",
     .argument = "FILE",
     .help = "write the results as JUnit XML",
     .kind = COMMAND_TEXT,
     .offset = OF(junit)},
    {.name = "tap",
     .argument = "FILE",
     .help = "write the results as TAP",
     .kind = COMMAND_TEXT,
     .offset = OF(tap)},
    {.name = "compare",
     .argument = "FILE",
     .help = "what changed since the report that --json wrote there",
     .kind = COMMAND_TEXT,
     .offset = OF(compare)},
    {.name = "list",
     .help = "print the names of the cases and end",
     .kind = COMMAND_FLAG,
     .offset = OF(list)},
    {.name = "table",
     .help = "print what the cases cover and end; status 1 when a cell is empty",
     .kind = COMMAND_FLAG,
     .offset = OF(table)},
    {.name = "version",
     .help = "print the versions of the program and of the library",
     .kind = COMMAND_FLAG,
     .offset = OF(version)},
};

static const command_line line = {
    .program = "hal-conformance",
    .usage = "[options]",
    .exit_status = "Exit status: 0 nothing failed, 1 something failed, 2 wrong usage.\n",
    .options = rows,
    .option_count = sizeof rows / sizeof rows[0],
};

/* A case's name holds its seed, so the name alone repeats the run. */
static void take_seed_of_filter(program_options *options)
{
    const char *seed = !options->filter ? NULL : strstr(options->filter, "seed=");
    if (seed && !options->seed_given) {
        const uint64_t number = strtoull(seed + strlen("seed="), NULL, 10);
        options->seed = number == 0 ? options->seed : number;
    }
}

int options_parse(int count, char **arguments, program_options *options)
{
    *options = (program_options){.levels = CASE_LEVEL_CORE | CASE_LEVEL_OPS,
                                 .seed = DEFAULT_SEED,
                                 .jobs = 1,
                                 .seconds = 60,
                                 .shrink_seconds = 5,
                                 .most_hung = 5,
                                 .every = 1,
                                 .part = 1,
                                 .parts = 1};
    const command_result result = command_line_read(&line, count, arguments, options);
    if (result != COMMAND_GO_ON) {
        return result == COMMAND_HELP_PRINTED ? -1 : 1;
    }
    if (options->version) {
        printf("hal-conformance %s\n", report_tool_version());
        return -1;
    }
    if (options->quick) {
        options->levels = CASE_LEVEL_CORE;
        options->cover = true;
    }
    take_seed_of_filter(options);
    return 0;
}
