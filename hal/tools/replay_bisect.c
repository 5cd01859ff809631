/* Bisection of a recording, see replay_bisect.h. Each command starts on both sides from the
 * contents that the recording has, so the first one that differs is the one that is wrong. */
#include "replay_bisect.h"

#include "replay_kernel.h"
#include "replay_memory.h"
#include "replay_probe.h"
#include "replay_reproducer.h"
#include "replay_side.h"

#include "../src/base/array.h"

#include <hal/dump.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words that a probe of one kernel may store. */
#define PROBE_WORDS (UINT64_C(1) << 22)

typedef struct bisect_kernel {
    uint64_t id;
    hal_ir_kernel *ir; /* null: native code or a plugin's product, which is not run */
    char *text;
} bisect_kernel;

typedef struct bisect {
    const replay_bisect_options *options;
    replay_side sides[2];
    uint32_t lanes;           /* of a subgroup where the kernels were recorded */
    replay_memories memories; /* contents as after the last command */
    bisect_kernel *kernels;
    uint32_t kernel_count, kernel_capacity;
    uint64_t batch, commands, skipped;
    bool found;
} bisect;

static hal_status bisect_out_of_memory(void)
{
    return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a bisection");
}

static const bisect_kernel *kernel_find(const bisect *b, uint64_t id)
{
    for (uint32_t i = 0; i < b->kernel_count; i++) {
        if (b->kernels[i].id == id) {
            return &b->kernels[i];
        }
    }
    return NULL;
}

/* A kernel with subgroups of another width than a side's gets subgroups in shared memory. */
static hal_status kernel_add(bisect *b, const replay_kernel *from)
{
    if (!HAL_ARRAY_RESERVE(b->kernels, b->kernel_capacity, (uint64_t)b->kernel_count + 1)) {
        return bisect_out_of_memory();
    }
    bisect_kernel *made = &b->kernels[b->kernel_count++];
    *made = (bisect_kernel){.id = from->id};
    if (from->form != HAL_DUMP_KERNEL_IR) {
        return HAL_OK;
    }
    HAL_TRY(hal_ir_parse((const char *)from->ir.data, from->ir.count, &made->ir));
    for (uint32_t i = 0; i < 2; i++) {
        hal_ir_kernel *fixed = NULL;
        if (!replay_lanes_fit(made->ir, b->lanes, b->sides[i].lanes)) {
            HAL_TRY(replay_fix_lanes(made->ir, b->lanes, &fixed));
            hal_ir_kernel_destroy(made->ir);
            made->ir = fixed;
            break;
        }
    }
    return hal_ir_print(made->ir, &made->text);
}

static hal_status data_set(bisect *b, const replay_record *record)
{
    uint8_t *to = replay_memory_range(replay_memory_find(&b->memories, record->id), record->offset,
                                      record->data.count);
    if (!to) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "data: expected a declared memory");
    }
    memcpy(to, record->data.data, record->data.count);
    return HAL_OK;
}

static void results_free(uint8_t *results[REPLAY_SIDE_BINDINGS], const replay_work *work)
{
    for (uint32_t i = 0; i < work->binding_count; i++) {
        free(results[i]);
    }
}

/* Runs the work on a side. Results are for results_free, also after an error. */
static hal_status side_run(bisect *b, uint32_t side, const replay_work *work,
                           uint8_t *results[REPLAY_SIDE_BINDINGS])
{
    bool well = true;
    for (uint32_t i = 0; i < work->binding_count; i++) {
        results[i] = malloc(work->bytes[i] + 1);
        well = well && results[i];
    }
    return well ? replay_side_run(&b->sides[side], work, results) : bisect_out_of_memory();
}

/* ---- The first instruction ---- */

/* The values of one record in all work-items, gathered from a probe's words. */
static void probe_gather(const uint8_t *words, uint64_t items, uint32_t count, uint32_t n,
                         uint32_t size, uint8_t *values)
{
    for (uint64_t i = 0; i < items; i++) {
        memcpy(values + i * size, words + (i * count + n) * REPLAY_PROBE_WORDS * 4, size);
    }
}

/* Runs a kernel that stores some of its values on both sides. words[side] is for free(). */
static hal_status probe_run(bisect *b, const bisect_kernel *kernel, const replay_work *work,
                            const uint32_t *records, uint32_t count, uint64_t items,
                            uint8_t *words[2])
{
    replay_work probed = *work;
    char *text = NULL;
    const uint32_t last = probed.binding_count++;
    HAL_TRY(replay_probe_text(kernel->ir, records, count, &text));
    uint8_t *zeros = calloc(items * count, REPLAY_PROBE_WORDS * 4);
    hal_status status = zeros ? HAL_OK : bisect_out_of_memory();
    probed.ir = text;
    probed.ir_bytes = (uint32_t)strlen(text);
    probed.bytes[last] = items * count * REPLAY_PROBE_WORDS * 4;
    probed.access[last] = HAL_ACCESS_WRITE;
    probed.data[last] = zeros;
    for (uint32_t side = 0; status == HAL_OK && side < 2; side++) {
        uint8_t *results[REPLAY_SIDE_BINDINGS] = {0};
        status = side_run(b, side, &probed, results);
        if (status == HAL_OK) {
            words[side] = results[last];
            results[last] = NULL;
        }
        results_free(results, &probed);
    }
    free(zeros);
    free(text);
    return status;
}

/* The first of the probed records whose values differ, and the work-item; `count` if none does. */
static uint32_t probe_compare(const bisect *b, const bisect_kernel *kernel, const uint32_t *records,
                              uint32_t count, uint64_t items, uint8_t *const words[2],
                              uint64_t *item)
{
    uint8_t *values[2] = {malloc(items * 8), malloc(items * 8)};
    uint32_t n = 0;
    for (; values[0] && values[1] && n < count; n++) {
        const hal_ir_record *record = &kernel->ir->records[records[n]];
        const hal_type type = record->type == HAL_TYPE_BOOL ? (hal_type)HAL_TYPE_U32 : record->type;
        replay_comparison found;
        for (uint32_t side = 0; side < 2; side++) {
            probe_gather(words[side], items, count, n, hal_type_size(type), values[side]);
        }
        replay_compare(type, values[1], values[0], items * hal_type_size(type), &b->options->bound,
                       &found);
        if (found.beyond > 0 && record->opcode != HAL_IR_GET) {
            *item = found.index;
            break;
        }
    }
    free(values[0]);
    free(values[1]);
    return n;
}

static void value_print(hal_type type, const uint8_t *words)
{
    uint32_t low;
    uint64_t bits;
    memcpy(&low, words, sizeof low);
    memcpy(&bits, words, sizeof bits);
    float single;
    double number;
    memcpy(&single, words, sizeof single);
    memcpy(&number, words, sizeof number);
    switch (type) {
    case HAL_TYPE_F32:
        printf("%.9g (0x%08x)", (double)single, low);
        break;
    case HAL_TYPE_F64:
        printf("%.17g (0x%016llx)", number, (unsigned long long)bits);
        break;
    case HAL_TYPE_I32:
        printf("%d", (int32_t)low);
        break;
    case HAL_TYPE_I64:
        printf("%lld", (long long)bits);
        break;
    case HAL_TYPE_U64:
        printf("%llu", (unsigned long long)bits);
        break;
    default:
        printf("%u", low);
        break;
    }
}

/* Prints the record, the work-item, and the values of its operands and its result. */
static hal_status instruction_print(bisect *b, const bisect_kernel *kernel, const replay_work *work,
                                    uint32_t record, uint64_t items, uint64_t item)
{
    hal_ir_value operands[4];
    uint32_t records[5], count = 0;
    const uint32_t operand_count = hal_ir_operands(&kernel->ir->records[record], operands);
    for (uint32_t i = 0; i < operand_count; i++) {
        if (replay_probe_fits(&kernel->ir->records[operands[i]])) {
            records[count++] = operands[i];
        }
    }
    records[count++] = record;
    char *line = replay_probe_line(kernel->ir, record);
    printf("first difference in the kernel: record %u: %s\n  in work-item %llu of all\n", record,
           line ? line : "", (unsigned long long)item);
    free(line);
    uint8_t *words[2] = {NULL, NULL};
    const hal_status status = probe_run(b, kernel, work, records, count, items, words);
    for (uint32_t n = 0; status == HAL_OK && n < count; n++) {
        const hal_type type = kernel->ir->records[records[n]].type;
        const uint64_t at = (item * count + n) * REPLAY_PROBE_WORDS * 4;
        printf("  %%%u: ", records[n]);
        value_print(type, words[0] + at);
        printf(" and ");
        value_print(type, words[1] + at);
        printf("\n");
    }
    free(words[0]);
    free(words[1]);
    return status;
}

/* Looks for the first record whose values differ, a few at a time. */
static hal_status instruction_find(bisect *b, const bisect_kernel *kernel, const replay_work *work)
{
    const hal_ir_kernel *ir = kernel->ir;
    const uint64_t items =
        (uint64_t)work->grid[0] * work->grid[1] * work->grid[2] * hal_ir_group_items(ir);
    enum { FEW = 64 };
    uint32_t records[FEW], count = 0;
    const uint64_t fit = PROBE_WORDS / (items * REPLAY_PROBE_WORDS);
    const uint32_t most = fit < 1 ? 1 : fit > FEW ? FEW : (uint32_t)fit;
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const bool is_last = i + 1 == ir->record_count;
        if (replay_probe_fits(&ir->records[i]) && ir->records[i].opcode != HAL_IR_CONSTANT) {
            records[count++] = i;
        }
        if (count < most && !(is_last && count > 0)) {
            continue;
        }
        uint8_t *words[2] = {NULL, NULL};
        uint64_t item = 0;
        uint32_t n = count;
        const hal_status status = probe_run(b, kernel, work, records, count, items, words);
        if (status == HAL_OK) {
            n = probe_compare(b, kernel, records, count, items, words, &item);
        }
        free(words[0]);
        free(words[1]);
        HAL_TRY(status);
        if (n < count) {
            return instruction_print(b, kernel, work, records[n], items, item);
        }
        count = 0;
    }
    printf("no value of the kernel differs: its stores, atomics or barriers do\n");
    return HAL_OK;
}

/* ---- The first command ---- */

/* Sets the work of a command; false where it cannot be run here. */
static bool work_fill(const bisect *b, const replay_command *command, replay_work *work)
{
    const bisect_kernel *kernel = kernel_find(b, command->kernel);
    *work = (replay_work){.kind = command->kind,
                          .binding_count = command->binding_count,
                          .scalar_bytes = (uint32_t)command->scalars.count,
                          .grid = {command->grid[0], command->grid[1], command->grid[2]},
                          .ir = "",
                          .scalars = command->scalars.data};
    const bool is_known = command->kind == HAL_COMMAND_COPY || command->kind == HAL_COMMAND_FILL ||
                          (command->kind == HAL_COMMAND_DISPATCH && kernel && kernel->text);
    if (!is_known || (command->flags & HAL_COMMAND_INDIRECT)) {
        return false;
    }
    if (command->kind == HAL_COMMAND_DISPATCH) {
        work->ir = kernel->text;
        work->ir_bytes = (uint32_t)strlen(kernel->text);
    }
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const replay_range *range = &command->bindings[i];
        uint8_t *data = replay_memory_range(replay_memory_find(&b->memories, range->memory),
                                            range->offset, range->length);
        if (range->length > 0 && !data) {
            return false;
        }
        work->access[i] = range->access;
        work->bytes[i] = range->length;
        work->data[i] = range->length > 0 ? data : NULL;
    }
    return true;
}

/* The element type of what a command writes. */
static hal_type written_type(const bisect *b, const replay_command *command, uint32_t binding)
{
    const bisect_kernel *kernel = kernel_find(b, command->kernel);
    return command->kind == HAL_COMMAND_DISPATCH && kernel && kernel->ir
               ? kernel->ir->memories[binding].type
               : (hal_type)HAL_TYPE_NONE;
}

static void difference_print(const bisect *b, const replay_command *command, uint32_t number,
                             uint32_t binding, const replay_comparison *found)
{
    const bisect_kernel *kernel = kernel_find(b, command->kernel);
    const hal_ir_kernel *ir = kernel ? kernel->ir : NULL;
    printf("first difference: batch %llu, command %u: %s%s, binding %u \"%s\"\n",
           (unsigned long long)b->batch, number, ir ? "kernel " : "",
           ir                                  ? ir->names + ir->name
           : command->kind == HAL_COMMAND_COPY ? "copy"
                                               : "fill",
           binding, ir ? ir->names + ir->memories[binding].name : "target");
    printf("  %llu of %llu elements are beyond the bound; element %llu: %.17g and %.17g\n",
           (unsigned long long)found->beyond, (unsigned long long)found->elements,
           (unsigned long long)found->index, found->recorded, found->here);
}

/* Runs a command on both sides and compares; without a difference its results are kept. */
static hal_status command_check(bisect *b, const replay_command *command, uint32_t number)
{
    replay_work work;
    uint8_t *results[2][REPLAY_SIDE_BINDINGS] = {{0}};
    if (!work_fill(b, command, &work)) {
        b->skipped++;
        return HAL_OK;
    }
    b->commands++;
    hal_status status = side_run(b, 0, &work, results[0]);
    status = status == HAL_OK ? side_run(b, 1, &work, results[1]) : status;
    for (uint32_t i = 0; status == HAL_OK && !b->found && i < work.binding_count; i++) {
        replay_comparison found;
        if (!(work.access[i] & HAL_ACCESS_WRITE) || work.bytes[i] == 0) {
            continue;
        }
        replay_compare(written_type(b, command, i), results[1][i], results[0][i], work.bytes[i],
                       &b->options->bound, &found);
        if (found.beyond > 0) {
            b->found = true;
            difference_print(b, command, number, i, &found);
        }
    }
    if (b->found) {
        if (command->kind == HAL_COMMAND_DISPATCH) {
            const bisect_kernel *kernel = kernel_find(b, command->kernel);
            if (instruction_find(b, kernel, &work) != HAL_OK) {
                printf("the kernel cannot be probed: %s\n", hal_status_message());
            }
        }
        status = replay_reproducer_write(b->options->reproducer, &work, results[0], results[1]);
    }
    for (uint32_t i = 0; status == HAL_OK && !b->found && i < work.binding_count; i++) {
        if (work.access[i] & HAL_ACCESS_WRITE) {
            memcpy((uint8_t *)work.data[i], results[0][i], work.bytes[i]);
        }
    }
    results_free(results[0], &work);
    results_free(results[1], &work);
    return status;
}

static hal_status record_check(bisect *b, const replay_record *record)
{
    hal_status status = HAL_OK;
    replay_bytes commands = record->commands;
    replay_command command;
    replay_memory *memory;
    switch (record->kind) {
    case HAL_DUMP_DEVICE:
        b->lanes = record->device.subgroup_width ? record->device.subgroup_width
                                                 : HAL_IR_EMULATED_SUBGROUP;
        return HAL_OK;
    case HAL_DUMP_KERNEL:
        return kernel_add(b, &record->kernel);
    case HAL_DUMP_MEMORY:
        return replay_memory_add(&b->memories, NULL, record->id, record->bytes, &memory);
    case HAL_DUMP_FREE:
        replay_memory_remove(&b->memories, record->id);
        return HAL_OK;
    case HAL_DUMP_DATA:
    case HAL_DUMP_RESULT:
        return data_set(b, record);
    case HAL_DUMP_BATCH:
        b->batch++;
        for (uint32_t i = 0;
             status == HAL_OK && !b->found && replay_next_command(&commands, &command); i++) {
            status = command_check(b, &command, i);
        }
        return status;
    default:
        return HAL_OK;
    }
}

static void bisect_end(bisect *b)
{
    for (uint32_t i = 0; i < 2; i++) {
        replay_side_end(&b->sides[i]);
    }
    for (uint32_t i = 0; i < b->kernel_count; i++) {
        hal_ir_kernel_destroy(b->kernels[i].ir);
        free(b->kernels[i].text);
    }
    replay_memories_free(&b->memories);
    free(b->kernels);
}

int replay_bisect(replay_file *file, const replay_bisect_options *options)
{
    bisect b = {.options = options, .sides = {{.channel = -1}, {.channel = -1}}};
    replay_record record;
    int more = 1;
    hal_status status = replay_side_start(&b.sides[0], options->sides[0]);
    status = status == HAL_OK ? replay_side_start(&b.sides[1], options->sides[1]) : status;
    while (status == HAL_OK && !b.found && (more = replay_file_next(file, &record)) > 0) {
        status = record_check(&b, &record);
    }
    if (status != HAL_OK) {
        fprintf(stderr, "hal-replay: %s: %s\n", hal_status_name(status), hal_status_message());
    } else if (!b.found && more == 0) {
        printf("%llu commands have the same results on \"%s\" and \"%s\"; %llu were not run\n",
               (unsigned long long)b.commands, options->sides[0], options->sides[1],
               (unsigned long long)b.skipped);
    }
    bisect_end(&b);
    return status != HAL_OK || more < 0 ? 2 : b.found;
}
