/* Fuzz target: the reader of hal-replay and hostile HAL_DUMP=batch files. Every record, every
 * command of a batch and every byte that a record refers to is read, so that the address sanitizer
 * sees accesses beyond the file. Run by ./dev check as the ctest fuzz_replay_file. */
#include <stdlib.h>
#include <string.h>

#include "replay_compare.h"
#include "replay_file.h"

static uint64_t sum;

static void touch(replay_bytes bytes)
{
    for (uint64_t i = 0; i < bytes.count; i++) {
        sum += bytes.data[i];
    }
}

static void touch_commands(const replay_record *record)
{
    replay_bytes commands = record->commands;
    replay_command command;
    uint32_t count = 0;
    while (replay_next_command(&commands, &command)) {
        touch(command.scalars);
        count++;
    }
    if (count != record->command_count) {
        abort(); /* the reader let a batch pass that has other commands */
    }
}

/* The two halves of any bytes are compared as any type. */
static void compare(const replay_record *record)
{
    const replay_bound bound = {-1.0, UINT64_MAX};
    const uint64_t half = record->data.count / 2;
    const uint8_t *data = half ? record->data.data : (const uint8_t *)"";
    replay_comparison comparison;
    for (hal_type type = HAL_TYPE_NONE; type < HAL_TYPE_COUNT; type++) {
        replay_compare(type, data, data + half, half, &bound, &comparison);
        if (comparison.beyond > comparison.unequal) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replay_file file;
    replay_record record;
    if (!replay_file_begin(&file, data, size)) {
        if (!file.message[0]) {
            abort();
        }
        return 0;
    }
    int more;
    while ((more = replay_file_next(&file, &record)) > 0) {
        const replay_kernel *kernel = &record.kernel;
        const replay_bytes parts[] = {
            record.data,          record.message, record.device.name, record.device.driver,
            record.device.plugin, kernel->name,   kernel->ir,         kernel->format,
            kernel->entry,        kernel->code,   record.value.call,  record.value.group};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            touch(parts[i]);
        }
        touch_commands(&record);
        compare(&record);
    }
    if (more < 0 && !file.message[0]) {
        abort();
    }
    return 0;
}
