/* Comparison of a fused with an unfused run, see replay_fusion.h. Calls have numbers in the order
 * of the program, so a value of one recording is found in the other one by its number. */
#include "replay_fusion.h"

#include "replay_memory.h"
#include "replay_reproducer.h"

#include "../src/base/array.h"

#include <hal/dump.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run_kernel {
    uint64_t id;
    replay_bytes name, ir; /* ir: empty if the kernel is no IR */
} run_kernel;

/* A value of a call, kept. */
typedef struct run_value {
    uint64_t number, bytes, batch;
    uint8_t *data;
    replay_bytes call, kernel;
} run_value;

/* A recording as far as it was read. */
typedef struct run {
    replay_memories memories;
    run_kernel *kernels;
    uint32_t kernel_count, kernel_capacity;
    run_value *values;
    uint32_t value_count, value_capacity;

    uint64_t batch;
    uint32_t command_count;
    replay_command command;                /* the last one of the batch */
    uint8_t *before[REPLAY_SIDE_BINDINGS]; /* its memory before it */
} run;

static hal_status run_out_of_memory(void)
{
    return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a comparison");
}

static hal_status run_failed(const char *expected)
{
    return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "expected %s", expected);
}

/* The contents of a range, or null if the recording has no such range. */
static uint8_t *range_find(const run *r, uint64_t id, uint64_t offset, uint64_t bytes)
{
    return replay_memory_range(replay_memory_find(&r->memories, id), offset, bytes);
}

static const run_kernel *kernel_find(const run *r, uint64_t id)
{
    for (uint32_t i = 0; i < r->kernel_count; i++) {
        if (r->kernels[i].id == id) {
            return &r->kernels[i];
        }
    }
    return NULL;
}

static hal_status kernel_add(run *r, const replay_kernel *from)
{
    if (!HAL_ARRAY_RESERVE(r->kernels, r->kernel_capacity, (uint64_t)r->kernel_count + 1)) {
        return run_out_of_memory();
    }
    run_kernel *made = &r->kernels[r->kernel_count++];
    *made = (run_kernel){.id = from->id, .name = from->name};
    if (from->form == HAL_DUMP_KERNEL_IR) {
        made->ir = from->ir;
    }
    return HAL_OK;
}

static void before_free(run *r)
{
    for (uint32_t i = 0; i < REPLAY_SIDE_BINDINGS; i++) {
        free(r->before[i]);
        r->before[i] = NULL;
    }
}

/* Keeps the last command of a batch, and what its memory holds before it. */
static hal_status batch_begin(run *r, const replay_record *record)
{
    replay_bytes commands = record->commands;
    before_free(r);
    r->batch++;
    r->command_count = record->command_count;
    while (replay_next_command(&commands, &r->command)) {
    }
    for (uint32_t i = 0; record->command_count == 1 && i < r->command.binding_count; i++) {
        const replay_range *range = &r->command.bindings[i];
        const uint8_t *data = range_find(r, range->memory, range->offset, range->length);
        if (range->length > 0 && !data) {
            return run_failed("a binding in a declared memory");
        }
        r->before[i] = malloc(range->length + 1);
        if (!r->before[i]) {
            return run_out_of_memory();
        }
        if (data) {
            memcpy(r->before[i], data, range->length);
        }
    }
    return HAL_OK;
}

/* The name of the kernel of the last command, which stored a value. */
static replay_bytes writer_name(const run *r)
{
    const run_kernel *kernel = r->command_count > 0 && r->command.kind == HAL_COMMAND_DISPATCH
                                   ? kernel_find(r, r->command.kernel)
                                   : NULL;
    return kernel ? kernel->name : (replay_bytes){(const uint8_t *)"copy", 4};
}

static hal_status value_keep(run *r, const replay_value *value, const uint8_t *data)
{
    if (!HAL_ARRAY_RESERVE(r->values, r->value_capacity, (uint64_t)r->value_count + 1)) {
        return run_out_of_memory();
    }
    run_value *made = &r->values[r->value_count];
    *made = (run_value){.number = value->number,
                        .bytes = value->bytes,
                        .batch = r->batch,
                        .data = malloc(value->bytes),
                        .call = value->call,
                        .kernel = writer_name(r)};
    if (!made->data) {
        return run_out_of_memory();
    }
    memcpy(made->data, data, value->bytes);
    r->value_count++;
    return HAL_OK;
}

/* Applies a record to what the run knows. */
static hal_status record_apply(run *r, const replay_record *record)
{
    uint8_t *to;
    replay_memory *memory;
    switch (record->kind) {
    case HAL_DUMP_KERNEL:
        return kernel_add(r, &record->kernel);
    case HAL_DUMP_MEMORY:
        return replay_memory_add(&r->memories, NULL, record->id, record->bytes, &memory);
    case HAL_DUMP_FREE:
        replay_memory_remove(&r->memories, record->id);
        return HAL_OK;
    case HAL_DUMP_DATA:
    case HAL_DUMP_RESULT:
        to = range_find(r, record->id, record->offset, record->data.count);
        if (!to) {
            return run_failed("data of a declared memory");
        }
        memcpy(to, record->data.data, record->data.count);
        return HAL_OK;
    case HAL_DUMP_BATCH:
        return batch_begin(r, record);
    default:
        return HAL_OK;
    }
}

static void run_end(run *r)
{
    before_free(r);
    for (uint32_t i = 0; i < r->value_count; i++) {
        free(r->values[i].data);
    }
    replay_memories_free(&r->memories);
    free(r->kernels);
    free(r->values);
}

static int value_order(const void *one, const void *other)
{
    const uint64_t a = ((const run_value *)one)->number, b = ((const run_value *)other)->number;
    return a < b ? -1 : a > b;
}

/* Reads all values of a recording, and sorts them. */
static hal_status values_read(run *r, replay_file *file, int *more)
{
    replay_record record;
    hal_status status = HAL_OK;
    while (status == HAL_OK && (*more = replay_file_next(file, &record)) > 0) {
        const replay_value *value = &record.value;
        if (record.kind != HAL_DUMP_VALUE) {
            status = record_apply(r, &record);
            continue;
        }
        const uint8_t *data = range_find(r, value->memory, value->offset, value->bytes);
        status = data ? value_keep(r, value, data) : run_failed("a value in a declared memory");
    }
    if (r->value_count > 0) {
        qsort(r->values, r->value_count, sizeof *r->values, value_order);
    }
    return status;
}

static const run_value *value_find(const run *r, uint64_t number)
{
    const run_value wanted = {.number = number};
    return r->value_count > 0
               ? bsearch(&wanted, r->values, r->value_count, sizeof wanted, value_order)
               : NULL;
}

#define TEXT(bytes) (int)(bytes).count, (const char *)(bytes).data

static void difference_print(const run *fused, const replay_value *value, const run_value *apart,
                             const replay_comparison *found)
{
    const replay_bytes kernel = writer_name(fused);
    printf("first difference: call %llu, %.*s: batch %llu, kernel %.*s, of the calls %.*s\n",
           (unsigned long long)value->number, TEXT(value->call), (unsigned long long)fused->batch,
           TEXT(kernel), TEXT(value->group));
    printf("  %llu of %llu elements are beyond the bound; element %llu: %.17g, and unfused %.17g\n",
           (unsigned long long)found->beyond, (unsigned long long)found->elements,
           (unsigned long long)found->index, found->here, found->recorded);
    printf("unfused: batch %llu, kernel %.*s\n", (unsigned long long)apart->batch,
           TEXT(apart->kernel));
}

/* Writes the last command with the unfused value as what is expected. Commands that are no IR, and
 * values that an earlier command stored, have no reproducer. */
static hal_status command_write(run *fused, const replay_value *value, const run_value *apart,
                                const char *path)
{
    const replay_command *command = &fused->command;
    const run_kernel *kernel = kernel_find(fused, command->kernel);
    uint8_t *expected[REPLAY_SIDE_BINDINGS] = {0}, *got[REPLAY_SIDE_BINDINGS] = {0};
    bool is_stored = false;
    if (fused->command_count != 1 || command->kind != HAL_COMMAND_DISPATCH || !kernel ||
        kernel->ir.count == 0 || (command->flags & HAL_COMMAND_INDIRECT)) {
        printf("not written: the command is no kernel of IR\n");
        return HAL_OK;
    }
    replay_work work = {.kind = command->kind,
                        .binding_count = command->binding_count,
                        .scalar_bytes = (uint32_t)command->scalars.count,
                        .ir_bytes = (uint32_t)kernel->ir.count,
                        .grid = {command->grid[0], command->grid[1], command->grid[2]},
                        .ir = (const char *)kernel->ir.data,
                        .scalars = command->scalars.data};
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const replay_range *range = &command->bindings[i];
        work.access[i] = range->access;
        work.bytes[i] = range->length;
        work.data[i] = fused->before[i];
        got[i] = range_find(fused, range->memory, range->offset, range->length);
        expected[i] = malloc(range->length + 1);
        if (!expected[i]) {
            status = run_out_of_memory();
            break;
        }
        if (got[i]) {
            memcpy(expected[i], got[i], range->length);
        }
        if ((range->access & HAL_ACCESS_WRITE) && range->memory == value->memory &&
            value->offset >= range->offset && value->bytes <= range->length &&
            value->offset - range->offset <= range->length - value->bytes) {
            memcpy(expected[i] + (value->offset - range->offset), apart->data, value->bytes);
            is_stored = true;
        }
    }
    if (status == HAL_OK && is_stored) {
        status = replay_reproducer_write(path, &work, expected, got);
    } else if (status == HAL_OK) {
        printf("not written: an earlier command stored the value\n");
    }
    for (uint32_t i = 0; i < command->binding_count; i++) {
        free(expected[i]);
    }
    return status;
}

typedef struct totals {
    uint64_t equal, apart; /* values that are equal; that only one recording has */
} totals;

/* Compares a value with that of the other recording. */
static hal_status value_check(run *fused, const run *unfused, const replay_value *value,
                              const replay_bound *bound, const char *reproducer, totals *counted,
                              bool *found)
{
    const run_value *apart = value_find(unfused, value->number);
    const uint8_t *data = range_find(fused, value->memory, value->offset, value->bytes);
    replay_comparison comparison;
    if (!data) {
        return run_failed("a value in a declared memory");
    }
    if (!apart) {
        counted->apart++;
        return HAL_OK;
    }
    if (apart->bytes != value->bytes || apart->call.count != value->call.count ||
        memcmp(apart->call.data, value->call.data, value->call.count) != 0) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "expected recordings of one program, got call %llu as %.*s of %llu "
                              "bytes and, unfused, as %.*s of %llu",
                              (unsigned long long)value->number, TEXT(value->call),
                              (unsigned long long)value->bytes, TEXT(apart->call),
                              (unsigned long long)apart->bytes);
    }
    replay_compare((hal_type)value->type, data, apart->data, value->bytes, bound, &comparison);
    counted->equal += comparison.beyond == 0;
    if (comparison.beyond > 0) {
        *found = true;
        difference_print(fused, value, apart, &comparison);
        return command_write(fused, value, apart, reproducer);
    }
    return HAL_OK;
}

int replay_fusion_compare(replay_file *fused, replay_file *unfused, const replay_bound *bound,
                          const char *reproducer)
{
    run runs[2] = {{.batch = 0}, {.batch = 0}};
    totals counted = {0};
    replay_record record;
    bool found = false;
    int more = 1;
    hal_status status = values_read(&runs[1], unfused, &more);
    while (status == HAL_OK && more >= 0 && !found &&
           (more = replay_file_next(fused, &record)) > 0) {
        status = record.kind != HAL_DUMP_VALUE ? record_apply(&runs[0], &record)
                                               : value_check(&runs[0], &runs[1], &record.value,
                                                             bound, reproducer, &counted, &found);
    }
    if (status == HAL_OK && more == 0 && !found && counted.equal == 0) {
        status = hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                "expected values of calls in both recordings, got none: record "
                                "with HAL_DUMP=calls and HAL_DUMP=calls,unfused, without graphs");
    }
    if (status != HAL_OK) {
        fprintf(stderr, "hal-replay: %s: %s\n", hal_status_name(status), hal_status_message());
    } else if (more == 0 && !found) {
        printf("%llu values are within the bound; %llu are in the fused recording alone\n",
               (unsigned long long)counted.equal, (unsigned long long)counted.apart);
    }
    run_end(&runs[0]);
    run_end(&runs[1]);
    return status != HAL_OK || more < 0 ? 2 : found;
}
