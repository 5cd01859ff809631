/* hal-replay: runs a file of HAL_DUMP=batch again, on any device, and reports results that differ
 * from the recorded ones. For wrong results and crashes. */
#include "command_line.h"
#include "replay_bisect.h"
#include "replay_fusion.h"
#include "replay_run.h"
#include "replay_side.h"

#include <errno.h>
#include <fcntl.h>
#include <hal/dump.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct replay_options {
    const char *path, *device, *json, *bisect, *with, *unfused, *reproducer;
    replay_bound bound;
    bool free_running, list;
} replay_options;

enum { EXIT_EQUAL = 0, EXIT_DIFFERENT = 1, EXIT_WRONG = 2 };

static bool tolerance_read(const char *text, void *options)
{
    replay_bound *bound = &((replay_options *)options)->bound;
    char *rest;
    bound->tolerance = strtod(text, &rest);
    return !*rest && rest != text && bound->tolerance >= 0.0;
}

/* Replaces the default tolerance. */
static bool ulps_read(const char *text, void *options)
{
    replay_bound *bound = &((replay_options *)options)->bound;
    bound->tolerance = bound->tolerance < 0.0 ? 0.0 : bound->tolerance;
    return command_read_u64(text, &bound->ulps);
}

#define OF(field) offsetof(replay_options, field)

static const command_option rows[] = {
    {.name = "device",
     .argument = "SELECTION",
     .help = "on this device (as in HAL_BACKEND)",
     .kind = COMMAND_TEXT,
     .offset = OF(device)},
    {.name = "tolerance",
     .argument = "X",
     .help = "floats may differ by X times the largest magnitude in their range (1e-5; f64 "
             "1e-12, f16 2e-3, bf16 1.6e-2); all else is equal",
     .kind = COMMAND_CALL,
     .read = tolerance_read},
    {.name = "ulps",
     .argument = "N",
     .help = "floats may be N steps apart; 0: the same bits",
     .kind = COMMAND_CALL,
     .read = ulps_read},
    {.name = "free-running",
     .help = "continue with own results, not with the recorded ones",
     .kind = COMMAND_FLAG,
     .offset = OF(free_running)},
    {.name = "json",
     .argument = "FILE",
     .help = "write the findings to a file, too",
     .kind = COMMAND_TEXT,
     .offset = OF(json)},
    {.name = "bisect",
     .argument = "A",
     .help =
         "find the first command, and the first instruction of its kernel, whose results "
         "differ between two sides: A and that of --with. A side is a device as in HAL_BACKEND, "
         "after variables (HAL_CPU_JIT=off cpu) and perhaps the path of another hal-replay",
     .kind = COMMAND_TEXT,
     .offset = OF(bisect)},
    {.name = "with",
     .argument = "B",
     .help = "the other side of --bisect",
     .kind = COMMAND_TEXT,
     .offset = OF(with)},
    {.name = "unfused",
     .argument = "FILE",
     .help = "find the first fused kernel whose result differs from that of a recording of the "
             "same program with HAL_DUMP=calls,unfused; both have HAL_DUMP=calls",
     .kind = COMMAND_TEXT,
     .offset = OF(unfused)},
    {.name = "reproducer",
     .argument = "FILE",
     .help = "what --bisect and --unfused write: the one command that differs, as a file for "
             "hal-replay, and "
             "FILE.txt (bisected.batch)",
     .kind = COMMAND_TEXT,
     .offset = OF(reproducer)},
    {.name = "list",
     .help = "list the file, and run nothing",
     .kind = COMMAND_FLAG,
     .offset = OF(list)},
};

static const command_line line = {
    .program = "hal-replay",
    .usage = "FILE [options]",
    .about = "Runs a file of HAL_DUMP=batch again and compares the results.\n",
    .exit_status =
        "Exit status: 0 all results are within the bound, 1 one is not, or could not be run here,\n"
        "2 file, device or usage is wrong.\n",
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .has_operand = true,
    .operand_offset = OF(path),
    .unwritten_status = EXIT_WRONG,
};

/* Maps a file until the process ends. */
static bool file_map(const char *path, const void **data, uint64_t *bytes)
{
    struct stat information;
    const int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *reason = NULL;
    if (handle < 0 || fstat(handle, &information) != 0) {
        reason = strerror(errno);
    } else if (!S_ISREG(information.st_mode)) {
        reason = "expected a regular file";
    } else if (information.st_size > 0) {
        *bytes = (uint64_t)information.st_size;
        void *map = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, handle, 0);
        *data = map;
        reason = map == MAP_FAILED ? strerror(errno) : NULL;
    }
    if (handle >= 0) {
        close(handle);
    }
    if (reason) {
        fprintf(stderr, "hal-replay: %s: expected a readable file, got: %s\n", path, reason);
    }
    return !reason;
}

static void list_batch(const replay_record *record, uint64_t number)
{
    static const char *const kinds[] = {"kernel", "copy", "fill", "collective", "copy of rows"};
    static const char *const accesses[] = {"", "reads", "writes", "reads and writes"};
    replay_bytes commands = record->commands;
    replay_command command;
    printf("batch %llu  %u commands\n", (unsigned long long)number, record->command_count);
    for (uint32_t c = 0; replay_next_command(&commands, &command); c++) {
        printf("  command %u  %s", c, kinds[command.kind]);
        if (command.kind == HAL_COMMAND_DISPATCH) {
            printf(" %llu, grid %u x %u x %u", (unsigned long long)command.kernel, command.grid[0],
                   command.grid[1], command.grid[2]);
        } else if (command.kind == HAL_COMMAND_FILL) {
            printf(" with ");
            for (uint64_t i = command.scalars.count; i > 0; i--) {
                printf("%02x", command.scalars.data[i - 1]);
            }
        }
        printf("%s\n", command.flags & HAL_COMMAND_BARRIER ? ", after all before" : "");
        for (uint32_t i = 0; i < command.binding_count; i++) {
            const replay_range *range = &command.bindings[i];
            if (range->length > 0) {
                printf("    %u: %s memory %llu from byte %llu, %llu bytes\n", i,
                       accesses[range->access & HAL_ACCESS_READ_WRITE],
                       (unsigned long long)range->memory, (unsigned long long)range->offset,
                       (unsigned long long)range->length);
            }
        }
    }
}

static void list_record(const replay_record *record)
{
    static const char *const forms[] = {[HAL_DUMP_KERNEL_IR] = "ir",
                                        [HAL_DUMP_KERNEL_NATIVE] = "native code",
                                        [HAL_DUMP_KERNEL_GEMM] = "the plugin's matrix product",
                                        [HAL_DUMP_KERNEL_ATTENTION] = "the plugin's attention",
                                        [HAL_DUMP_KERNEL_GROUPED_GEMM] =
                                            "the plugin's product of groups of rows"};
    const replay_device *device = &record->device;
    const unsigned long long id = record->id;
    switch (record->kind) {
    case HAL_DUMP_DEVICE:
        printf("device %.*s:%u  %.*s, %.*s\n", (int)device->plugin.count,
               (const char *)device->plugin.data, device->index, (int)device->name.count,
               (const char *)device->name.data, (int)device->driver.count,
               (const char *)device->driver.data);
        break;
    case HAL_DUMP_KERNEL:
        printf("kernel %llu  %.*s, %s\n", (unsigned long long)record->kernel.id,
               (int)record->kernel.name.count, (const char *)record->kernel.name.data,
               forms[record->kernel.form]);
        break;
    case HAL_DUMP_MEMORY:
        printf("memory %llu  %llu bytes\n", id, (unsigned long long)record->bytes);
        break;
    case HAL_DUMP_FREE:
        printf("memory %llu is freed\n", id);
        break;
    case HAL_DUMP_OUTCOME:
        printf("  ended: %s %.*s\n", hal_status_name(record->status), (int)record->message.count,
               (const char *)record->message.data);
        break;
    case HAL_DUMP_VALUE:
        printf("  call %llu %.*s: memory %llu from byte %llu, %llu bytes\n",
               (unsigned long long)record->value.number, (int)record->value.call.count,
               (const char *)record->value.call.data, (unsigned long long)record->value.memory,
               (unsigned long long)record->value.offset, (unsigned long long)record->value.bytes);
        break;
    default:
        printf("  %s memory %llu from byte %llu: %llu bytes\n",
               record->kind == HAL_DUMP_DATA ? "data in" : "changed", id,
               (unsigned long long)record->offset, (unsigned long long)record->data.count);
        break;
    }
}

static int file_list(replay_file *file)
{
    replay_record record;
    uint64_t batches = 0;
    int more;
    while ((more = replay_file_next(file, &record)) > 0) {
        if (record.kind == HAL_DUMP_BATCH) {
            list_batch(&record, ++batches);
        } else {
            list_record(&record);
        }
    }
    return more < 0 ? EXIT_WRONG : EXIT_EQUAL;
}

static bool file_open(const char *path, replay_file *file)
{
    const void *data = NULL;
    uint64_t bytes = 0;
    if (!file_map(path, &data, &bytes)) {
        return false;
    }
    if (!replay_file_begin(file, data, bytes)) {
        fprintf(stderr, "hal-replay: %s: %s\n", path, file->message);
        return false;
    }
    return true;
}

/* Compares with a recording without fusion. */
static int file_compare(replay_file *file, const replay_options *asked)
{
    replay_file unfused;
    if (!file_open(asked->unfused, &unfused)) {
        return EXIT_WRONG;
    }
    const int status = replay_fusion_compare(file, &unfused, &asked->bound, asked->reproducer);
    if (unfused.message[0]) {
        fprintf(stderr, "hal-replay: %s: %s\n", asked->unfused, unfused.message);
    }
    return status;
}

static int records_run(replay_file *file, replay_run *run, const replay_record *first)
{
    replay_record record = *first;
    int more = 1;
    while (more > 0) {
        const hal_status status = replay_run_record(run, &record);
        if (status != HAL_OK) {
            fprintf(stderr, "hal-replay: record at byte %llu: %s: %s\n",
                    (unsigned long long)record.at, hal_status_name(status), hal_status_message());
            return EXIT_WRONG;
        }
        more = replay_file_next(file, &record);
    }
    const replay_report *report = run->report;
    return more < 0                                  ? EXIT_WRONG
           : report->different + report->not_run > 0 ? EXIT_DIFFERENT
                                                     : EXIT_EQUAL;
}

static int file_replay(replay_file *file, const replay_options *asked)
{
    replay_report report = {0};
    replay_run run = {.free_running = asked->free_running, .bound = asked->bound};
    replay_record record;
    hal_device *device = NULL;
    const int first = replay_file_next(file, &record);
    if (first <= 0 || record.kind != HAL_DUMP_DEVICE) {
        fprintf(stderr, "hal-replay: %s: expected batches, got none\n", asked->path);
        return EXIT_WRONG;
    }
    hal_status status = hal_device_open(asked->device, &device);
    if (status == HAL_OK) {
        status = replay_run_begin(&run, device, &report);
    }
    if (status != HAL_OK) {
        fprintf(stderr, "hal-replay: %s: %s\n", hal_status_name(status), hal_status_message());
        hal_device_release(device);
        return EXIT_WRONG;
    }
    report.json = asked->json ? fopen(asked->json, "w") : NULL;
    int result = EXIT_WRONG;
    if (asked->json && !report.json) {
        fprintf(stderr, "hal-replay: %s cannot be written: %s\n", asked->json, strerror(errno));
    } else {
        replay_report_begin(&report, asked->path, &record.device, device);
        result = records_run(file, &run, &record);
    }
    replay_run_end(&run);
    hal_device_release(device);
    if (!asked->json || report.json) {
        replay_report_end(&report);
    }
    if (report.json && fclose(report.json) != 0) {
        fprintf(stderr, "hal-replay: %s cannot be written: %s\n", asked->json, strerror(errno));
        result = EXIT_WRONG;
    }
    return result;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--serve") == 0) { /* started by replay_side_start */
        return replay_side_serve(atoi(argv[2]), argv[3]);
    }
    replay_options asked = {.reproducer = "bisected.batch", .bound = {-1.0, UINT64_MAX}};
    replay_file file;
    const command_result result = command_line_read(&line, argc, argv, &asked);
    if (result != COMMAND_GO_ON) {
        return result == COMMAND_HELP_PRINTED ? EXIT_EQUAL : EXIT_WRONG;
    }
    if (!asked.bisect != !asked.with) {
        fprintf(stderr, "hal-replay: expected --bisect and --with together\n");
        return EXIT_WRONG;
    }
    if (!file_open(asked.path, &file)) {
        return EXIT_WRONG;
    }
    const replay_bisect_options sides = {{asked.bisect, asked.with}, asked.reproducer, asked.bound};
    const int status = asked.list      ? file_list(&file)
                       : asked.bisect  ? replay_bisect(&file, &sides)
                       : asked.unfused ? file_compare(&file, &asked)
                                       : file_replay(&file, &asked);
    if (file.message[0]) {
        fprintf(stderr, "hal-replay: %s: %s\n", asked.path, file.message);
    }
    return status;
}
