/* The plan recorder, see plan_recorder.h. */
#include "plan_recorder.h"

#include <stdlib.h>
#include <string.h>

#define NO_BUFFER UINT32_MAX

/* A range of the buffer with index `slot`: operands first, then temporaries. */
typedef struct plan_range {
    uint32_t slot; /* NO_BUFFER: an empty range */
    uint64_t offset, length;
} plan_range;

typedef enum command_kind { COMMAND_DISPATCH, COMMAND_COPY, COMMAND_FILL } command_kind;

typedef struct plan_command {
    hal_kernel *kernel; /* one reference; null unless a dispatch */
    command_kind kind;
    uint32_t grid[3]; /* of a fill: the pattern */
    uint32_t range_first, range_count, scalar_first, scalar_bytes;
} plan_command;

struct ops_recorded_plan {
    uint32_t command_count, temporary_count, operand_count;
    plan_command *commands; /* these four arrays follow the structure in its memory block */
    plan_range *ranges;
    uint64_t *temporaries; /* bytes of each */
    uint8_t *scalars;
    uint64_t general_ns, spent_ns; /* what general kernels cost more: a use, all uses */
    uint32_t general_count;        /* of these */
    bool has_requested;            /* the special ones, in the background */
};

struct ops_plan_recorder {
    bool is_open, is_incomplete;
    hal_buffer *buffers[OPS_PLAN_BUFFERS]; /* null: a temporary that was released */
    uint64_t bytes[OPS_PLAN_BUFFERS];      /* of temporaries */
    uint32_t operand_count, buffer_count;
    plan_command *commands;
    plan_range *ranges;
    uint8_t *scalars;
    uint32_t command_count, command_capacity, range_count, range_capacity;
    uint32_t scalar_bytes, scalar_capacity;
    uint64_t general_ns;
    uint32_t general_count;
};

static hal_status command_replay(const ops_recorded_plan *plan, const plan_command *command,
                                 ops_context *context, hal_buffer *const *buffers)
{
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    const plan_range *from = plan->ranges + command->range_first;
    for (uint32_t i = 0; i < command->range_count; i++) {
        uint32_t slot = from[i].slot;
        ranges[i] =
            (hal_range){slot == NO_BUFFER ? NULL : buffers[slot], from[i].offset, from[i].length};
    }
    switch (command->kind) {
    case COMMAND_COPY:
        return hal_queue_copy(context->queue, ranges[0], ranges[1]);
    case COMMAND_FILL:
        return hal_queue_fill(context->queue, ranges[0], command->grid[0]);
    default:
        return hal_queue_dispatch(context->queue, command->kernel, command->grid, ranges,
                                  command->range_count, plan->scalars + command->scalar_first,
                                  command->scalar_bytes);
    }
}

static void recorder_release_kernels(ops_plan_recorder *recorder)
{
    for (uint32_t i = 0; i < recorder->command_count; i++) {
        hal_kernel_release(recorder->commands[i].kernel);
    }
    recorder->command_count = 0;
}

/* `array` is the address of a pointer. */
static bool array_reserve(void *array, uint32_t *capacity, uint32_t needed, size_t size)
{
    void *old, *made;
    if (needed <= *capacity) {
        return true;
    }
    uint32_t wanted = needed > 2 * *capacity ? needed : 2 * *capacity;
    memcpy(&old, array, sizeof old);
    made = realloc(old, wanted * size);
    if (!made) {
        return false;
    }
    memcpy(array, &made, sizeof made);
    *capacity = wanted;
    return true;
}

static uint32_t recorder_slot_of(const ops_plan_recorder *recorder, const hal_buffer *buffer)
{
    for (uint32_t i = 0; buffer && i < recorder->buffer_count; i++) {
        if (recorder->buffers[i] == buffer) {
            return i;
        }
    }
    return NO_BUFFER;
}

/* A new command with its ranges and scalars; null when the recording becomes incomplete. */
static plan_command *recorder_add_command(ops_plan_recorder *recorder, const hal_range *ranges,
                                          uint32_t range_count, const void *scalars,
                                          uint32_t scalar_bytes)
{
    uint32_t block = (scalar_bytes + 7) & ~7u;
    if (recorder->is_incomplete ||
        !array_reserve(&recorder->commands, &recorder->command_capacity,
                       recorder->command_count + 1, sizeof *recorder->commands) ||
        !array_reserve(&recorder->ranges, &recorder->range_capacity,
                       recorder->range_count + range_count, sizeof *recorder->ranges) ||
        !array_reserve(&recorder->scalars, &recorder->scalar_capacity,
                       recorder->scalar_bytes + block, 1)) {
        recorder->is_incomplete = 1;
        return NULL;
    }
    plan_command *command = &recorder->commands[recorder->command_count];
    *command = (plan_command){.range_first = recorder->range_count,
                              .range_count = range_count,
                              .scalar_first = recorder->scalar_bytes,
                              .scalar_bytes = scalar_bytes};
    for (uint32_t i = 0; i < range_count; i++) {
        uint32_t slot = recorder_slot_of(recorder, ranges[i].buffer);
        if (ranges[i].buffer && slot == NO_BUFFER) {
            recorder->is_incomplete = 1;
            return NULL;
        }
        recorder->ranges[recorder->range_count + i] =
            (plan_range){slot, ranges[i].offset, ranges[i].length};
    }
    if (scalar_bytes) {
        memcpy(recorder->scalars + recorder->scalar_bytes, scalars, scalar_bytes);
    }
    recorder->range_count += range_count;
    recorder->scalar_bytes += block;
    recorder->command_count++;
    return command;
}

/* One memory block: the structure, then its arrays, 8-byte aligned. Kernel references move to it.
 */
static ops_recorded_plan *recorder_make_plan(const ops_plan_recorder *recorder)
{
    uint32_t temporaries = recorder->buffer_count - recorder->operand_count;
    ops_recorded_plan *plan = malloc(sizeof *plan + recorder->command_count * sizeof(plan_command) +
                                     recorder->range_count * sizeof(plan_range) +
                                     temporaries * sizeof(uint64_t) + recorder->scalar_bytes);
    if (!plan) {
        return NULL;
    }
    *plan = (ops_recorded_plan){.command_count = recorder->command_count,
                                .temporary_count = temporaries,
                                .operand_count = recorder->operand_count,
                                .general_ns = recorder->general_ns,
                                .spent_ns = recorder->general_ns,
                                .general_count = recorder->general_count};
    plan->commands = (plan_command *)(plan + 1);
    plan->ranges = (plan_range *)(plan->commands + recorder->command_count);
    plan->temporaries = (uint64_t *)(plan->ranges + recorder->range_count);
    plan->scalars = (uint8_t *)(plan->temporaries + temporaries);
    if (recorder->command_count) {
        memcpy(plan->commands, recorder->commands, recorder->command_count * sizeof(plan_command));
    }
    if (recorder->range_count) {
        memcpy(plan->ranges, recorder->ranges, recorder->range_count * sizeof(plan_range));
    }
    memcpy(plan->temporaries, recorder->bytes + recorder->operand_count,
           temporaries * sizeof(uint64_t));
    if (recorder->scalar_bytes) {
        memcpy(plan->scalars, recorder->scalars, recorder->scalar_bytes);
    }
    return plan;
}

ops_plan_recorder *ops_plan_recorder_create(void)
{
    return calloc(1, sizeof(ops_plan_recorder));
}

void ops_plan_recorder_destroy(ops_plan_recorder *recorder)
{
    if (recorder) {
        recorder_release_kernels(recorder);
        free(recorder->commands);
        free(recorder->ranges);
        free(recorder->scalars);
        free(recorder);
    }
}

void ops_plan_recorder_begin(ops_plan_recorder *recorder, hal_buffer *const *operands,
                             uint32_t count)
{
    recorder->is_open = 1;
    recorder->is_incomplete = count > OPS_PLAN_BUFFERS;
    recorder->operand_count = recorder->buffer_count = recorder->is_incomplete ? 0 : count;
    recorder->command_count = recorder->range_count = recorder->scalar_bytes = 0;
    recorder->general_ns = 0;
    recorder->general_count = 0;
    memcpy(recorder->buffers, operands, recorder->operand_count * sizeof *operands);
}

ops_recorded_plan *ops_plan_recorder_end(ops_plan_recorder *recorder)
{
    recorder->is_open = 0;
    ops_recorded_plan *plan = recorder->is_incomplete ? NULL : recorder_make_plan(recorder);
    if (plan) {
        recorder->command_count = 0;
    } else {
        recorder_release_kernels(recorder);
    }
    return plan;
}

void ops_plan_recorder_cancel(ops_plan_recorder *recorder)
{
    recorder->is_open = 0;
    recorder_release_kernels(recorder);
}

void ops_plan_recorder_add_temporary(ops_plan_recorder *recorder, hal_buffer *buffer,
                                     uint64_t bytes)
{
    if (!recorder->is_open) {
        return;
    }
    if (!buffer || recorder->buffer_count == OPS_PLAN_BUFFERS) {
        recorder->is_incomplete = 1;
        return;
    }
    /* A new buffer may have the address of a temporary that was released. */
    uint32_t slot = recorder_slot_of(recorder, buffer);
    while (slot != NO_BUFFER) {
        recorder->buffers[slot] = NULL;
        slot = recorder_slot_of(recorder, buffer);
    }
    recorder->bytes[recorder->buffer_count] = bytes;
    recorder->buffers[recorder->buffer_count++] = buffer;
}

void ops_plan_recorder_add_general(ops_plan_recorder *recorder, uint64_t cost_ns)
{
    recorder->general_ns += cost_ns;
    recorder->general_count++;
}

bool ops_recorded_plan_is_general(const ops_recorded_plan *plan)
{
    return plan->general_ns > 0;
}

uint64_t ops_recorded_plan_count_use(ops_recorded_plan *plan, uint32_t *kernels)
{
    *kernels = plan->general_count;
    return plan->spent_ns += plan->general_ns;
}

bool ops_recorded_plan_has_requested(const ops_recorded_plan *plan)
{
    return plan->has_requested;
}

void ops_recorded_plan_set_requested(ops_recorded_plan *plan)
{
    plan->has_requested = true;
}

hal_status ops_recorded_plan_replay(const ops_recorded_plan *plan, ops_context *context,
                                    hal_buffer *const *operands, bool *lacks_memory)
{
    hal_buffer *buffers[OPS_PLAN_BUFFERS];
    uint32_t count = plan->operand_count;
    hal_status status = HAL_OK;
    memcpy(buffers, operands, count * sizeof *buffers);
    for (uint32_t i = 0; i < plan->temporary_count && status == HAL_OK; i++) {
        status = hal_buffer_create(context->device, HAL_MEMORY_DEVICE, plan->temporaries[i],
                                   &buffers[count]);
        count += status == HAL_OK;
    }
    *lacks_memory = status == HAL_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < plan->command_count && status == HAL_OK; i++) {
        status = command_replay(plan, &plan->commands[i], context, buffers);
    }
    while (count > plan->operand_count) {
        hal_buffer_release(buffers[--count]);
    }
    return status;
}

void ops_recorded_plan_destroy(ops_recorded_plan *plan)
{
    if (plan) {
        for (uint32_t i = 0; i < plan->command_count; i++) {
            hal_kernel_release(plan->commands[i].kernel);
        }
        free(plan);
    }
}

hal_status ops_record_dispatch(ops_context *context, hal_kernel *kernel, const uint32_t grid[3],
                               const hal_range *ranges, uint32_t range_count, const void *scalars,
                               uint32_t scalar_bytes)
{
    hal_status status = hal_queue_dispatch(context->queue, kernel, grid, ranges, range_count,
                                           scalars, scalar_bytes);
    if (status != HAL_OK || !context->recorder->is_open) {
        return status;
    }
    plan_command *command =
        recorder_add_command(context->recorder, ranges, range_count, scalars, scalar_bytes);
    if (command) {
        command->kind = COMMAND_DISPATCH;
        command->kernel = hal_kernel_retain(kernel);
        memcpy(command->grid, grid, sizeof command->grid);
    }
    return HAL_OK;
}

hal_status ops_record_copy(ops_context *context, hal_range source, hal_range target)
{
    hal_status status = hal_queue_copy(context->queue, source, target);
    if (status == HAL_OK && context->recorder->is_open) {
        const hal_range ranges[2] = {source, target};
        plan_command *command = recorder_add_command(context->recorder, ranges, 2, NULL, 0);
        if (command) {
            command->kind = COMMAND_COPY;
        }
    }
    return status;
}

hal_status ops_record_fill(ops_context *context, hal_range target, uint32_t pattern)
{
    hal_status status = hal_queue_fill(context->queue, target, pattern);
    if (status == HAL_OK && context->recorder->is_open) {
        plan_command *command = recorder_add_command(context->recorder, &target, 1, NULL, 0);
        if (command) {
            command->kind = COMMAND_FILL;
            command->grid[0] = pattern;
        }
    }
    return status;
}
