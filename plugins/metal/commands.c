/* A batch as commands of a command buffer.
 *
 * Buffers are untracked. Commands of a compute encoder run at the same time, up to a barrier; an
 * encoder waits for the queue's fence at its start and updates it at its end, so that encoders run
 * one after the other, also those of different command buffers. */
#include "commands.h"

#include "fence.h"

#include "kernel.h"
#include "memory.h"
#include "point.h"
#include "quirks.h"
#include "transfer.h"

#include <kit/fill.h>
#include <string.h>

/* Copies and fills below this size stay in an open compute encoder. */
enum { BLIT_BYTES = 1 << 20, LARGEST_TRANSFER_GROUPS = 1 << 16 };

typedef struct batch_encoder {
    hal_plugin_queue *queue;
    metal_commands *commands;
    metal_compute *compute; /* at most one of the two is open */
    metal_blit *blit;
    bool fence_updated;
    bool has_work; /* since the last barrier of the open encoder */
    metal_pipeline *pipeline;
    metal_buffer *bound[HAL_IR_MAX_BINDINGS + 1]; /* null: not set, or bytes */
    uint64_t offsets[HAL_IR_MAX_BINDINGS + 1];
} batch_encoder;

/* What the kernels of transfer.c read. */
typedef struct transfer_arguments {
    uint64_t from, to, count;
    uint32_t pattern[4]; /* of a fill, repeated to 16 bytes */
} transfer_arguments;

static void encoder_end(batch_encoder *encoder)
{
    metal_fence *fence = encoder->queue->fence;
    if (encoder->compute) {
        metal_shim_compute_end(encoder->compute, fence);
    } else if (encoder->blit) {
        metal_shim_blit_end(encoder->blit, fence);
    } else {
        return;
    }
    encoder->compute = NULL;
    encoder->blit = NULL;
    encoder->fence_updated = true;
}

static hal_status fail_encoder(const batch_encoder *encoder)
{
    return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no memory for the commands of a batch",
                    encoder->queue->device->card->info.name);
}

static bool needs_barrier(const batch_encoder *encoder, const hal_command *command)
{
    return encoder->has_work && ((command->flags & HAL_COMMAND_BARRIER) ||
                                 (encoder->queue->device->card->quirks & METAL_QUIRK_IN_ORDER));
}

/* An open compute encoder, after a barrier if the command has one. */
static hal_status compute_begin(batch_encoder *encoder, const hal_command *command)
{
    if (encoder->compute) {
        if (needs_barrier(encoder, command)) {
            metal_shim_compute_barrier(encoder->compute);
        }
        encoder->has_work = true;
        return HAL_OK;
    }
    encoder_end(encoder);
    encoder->compute = metal_shim_compute(encoder->commands,
                                          encoder->fence_updated ? encoder->queue->fence : NULL);
    encoder->has_work = true;
    encoder->pipeline = NULL;
    memset(encoder->bound, 0, sizeof encoder->bound);
    return encoder->compute ? HAL_OK : fail_encoder(encoder);
}

/* Blit encoders have no barriers: a new one waits for the last one. */
static hal_status blit_begin(batch_encoder *encoder, const hal_command *command)
{
    if (encoder->blit && !needs_barrier(encoder, command)) {
        return HAL_OK;
    }
    encoder_end(encoder);
    encoder->blit =
        metal_shim_blit(encoder->commands, encoder->fence_updated ? encoder->queue->fence : NULL);
    encoder->has_work = true;
    return encoder->blit ? HAL_OK : fail_encoder(encoder);
}

static void set_pipeline(batch_encoder *encoder, metal_pipeline *pipeline)
{
    if (encoder->pipeline != pipeline) {
        metal_shim_compute_pipeline(encoder->compute, pipeline);
        encoder->pipeline = pipeline;
    }
}

static void set_buffer(batch_encoder *encoder, uint32_t index, metal_buffer *buffer,
                       uint64_t offset)
{
    if (encoder->bound[index] != buffer) {
        metal_shim_compute_buffer(encoder->compute, buffer, offset, index);
    } else if (encoder->offsets[index] != offset) {
        metal_shim_compute_offset(encoder->compute, offset, index);
    }
    encoder->bound[index] = buffer;
    encoder->offsets[index] = offset;
}

static void set_bytes(batch_encoder *encoder, uint32_t index, const void *bytes, uint32_t length)
{
    metal_shim_compute_bytes(encoder->compute, bytes, length, index);
    encoder->bound[index] = NULL;
}

static hal_status dispatch_encode(batch_encoder *encoder, const hal_batch *batch,
                                  const hal_command *command)
{
    const hal_plugin_kernel *kernel = command->kernel;
    const hal_binding *bindings = batch->bindings + command->binding_first;
    HAL_TRY(compute_begin(encoder, command));
    set_pipeline(encoder, kernel->pipeline);
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        const hal_binding *binding = &bindings[i];
        const bool used = binding->length > 0;
        set_buffer(encoder, i, used ? binding->memory->buffer : encoder->queue->device->unused,
                   used ? binding->offset : 0);
    }
    if (kernel->argument_bytes > 0) {
        uint8_t block[HAL_IR_MAX_SCALAR_BYTES + 16] = {0};
        memcpy(block, batch->scalars + command->scalar_first, kernel->scalar_bytes);
        set_bytes(encoder, kernel->binding_count, block, kernel->argument_bytes);
    }
    if (command->flags & HAL_COMMAND_INDIRECT) {
        const hal_binding *grid = &bindings[kernel->binding_count];
        metal_shim_compute_dispatch_indirect(encoder->compute, grid->memory->buffer, grid->offset,
                                             kernel->group);
    } else {
        metal_shim_compute_dispatch(encoder->compute, command->grid, kernel->group);
    }
    return HAL_OK;
}

/* By a kernel. One of `from` and `fill` is null. */
static hal_status transfer_encode(batch_encoder *encoder, const hal_command *command,
                                  const hal_binding *from, const hal_binding *to,
                                  const kit_fill *fill, bool words)
{
    const uint32_t size = words ? 4 : 1;
    transfer_arguments arguments = {.from = from ? from->offset / size : 0,
                                    .to = to->offset / size,
                                    .count = to->length / size};
    if (fill) {
        memcpy(arguments.pattern, fill->words, sizeof arguments.pattern);
    }
    const metal_transfer which = !from   ? words ? METAL_FILL_WORDS : METAL_FILL_BYTES
                                 : words ? METAL_COPY_WORDS
                                         : METAL_COPY_BYTES;
    metal_pipeline *pipeline = metal_transfer_pipeline(encoder->queue->device, which);
    if (!pipeline) {
        return HAL_ERROR_COMPILE; /* the host has the message */
    }
    HAL_TRY(compute_begin(encoder, command));
    set_pipeline(encoder, pipeline);
    if (from) {
        set_buffer(encoder, 0, from->memory->buffer, 0);
    }
    set_buffer(encoder, 1, to->memory->buffer, 0);
    set_bytes(encoder, 2, &arguments, sizeof arguments);
    const uint64_t groups = (arguments.count + METAL_TRANSFER_ITEMS - 1) / METAL_TRANSFER_ITEMS;
    const uint32_t grid[3] = {
        groups < LARGEST_TRANSFER_GROUPS ? (uint32_t)groups : LARGEST_TRANSFER_GROUPS, 1, 1};
    metal_shim_compute_dispatch(encoder->compute, grid,
                                (const uint32_t[3]){METAL_TRANSFER_ITEMS, 1, 1});
    return HAL_OK;
}

static bool wants_blit(const batch_encoder *encoder, uint64_t bytes)
{
    return !encoder->compute || bytes >= BLIT_BYTES;
}

static hal_status copy_encode(batch_encoder *encoder, const hal_command *command,
                              const hal_binding *bindings)
{
    const hal_binding *from = &bindings[0], *to = &bindings[1];
    const bool words = (from->offset | to->offset | to->length) % 4 == 0;
    if (to->length == 0) {
        return HAL_OK;
    }
    if (!words || !wants_blit(encoder, to->length)) {
        return transfer_encode(encoder, command, from, to, NULL, words);
    }
    const hal_status status = blit_begin(encoder, command);
    if (status == HAL_OK) {
        metal_shim_blit_copy(encoder->blit, from->memory->buffer, from->offset, to->memory->buffer,
                             to->offset, to->length);
    }
    return status;
}

static hal_status fill_encode(batch_encoder *encoder, const hal_batch *batch,
                              const hal_command *command)
{
    const hal_binding *to = batch->bindings + command->binding_first;
    const bool words = (to->offset | to->length) % 4 == 0;
    if (to->length == 0) {
        return HAL_OK;
    }
    const kit_fill fill = kit_fill_read(batch, command);
    const uint32_t pattern = fill.words[0];
    const bool one_byte = kit_fill_is_word(&fill) && pattern == (pattern & 0xffu) * 0x01010101u;
    if (!words || !one_byte || !wants_blit(encoder, to->length)) {
        return transfer_encode(encoder, command, NULL, to, &fill, words);
    }
    const hal_status status = blit_begin(encoder, command);
    if (status == HAL_OK) {
        metal_shim_blit_fill(encoder->blit, to->memory->buffer, to->offset, to->length,
                             (uint8_t)pattern);
    }
    return status;
}

static hal_status command_encode(batch_encoder *encoder, const hal_batch *batch,
                                 const hal_command *command)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH:
        return dispatch_encode(encoder, batch, command);
    case HAL_COMMAND_COPY:
        return copy_encode(encoder, command, bindings);
    case HAL_COMMAND_FILL:
        return fill_encode(encoder, batch, command);
    default:
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "metal: submit: command: expected a dispatch, copy or fill, got kind %u",
                        command->kind);
    }
}

/* Encodes a batch into a command buffer that is not committed yet. `fence_updated`: what that of
 * the queue becomes by committing it. */
static hal_status batch_encode(hal_plugin_queue *queue, const hal_batch *batch,
                               metal_commands *commands, bool *fence_updated)
{
    batch_encoder encoder = {
        .queue = queue, .commands = commands, .fence_updated = queue->fence_updated};
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK; i++) {
        status = command_encode(&encoder, batch, &batch->commands[i]);
    }
    encoder_end(&encoder);
    *fence_updated = encoder.fence_updated;
    return status;
}

static void wait_encode(hal_plugin_queue *queue, const hal_plugin_wait *wait,
                        metal_commands *commands)
{
    if (wait->kind == HAL_WAIT_FENCE) {
        metal_shim_commands_wait_event(commands, wait->fence->event, wait->value);
        return;
    }
    if (wait->queue != queue &&
        atomic_load_explicit(&wait->queue->reached, memory_order_acquire) < wait->value) {
        metal_shim_commands_wait_event(commands, wait->queue->event, wait->value);
    }
}

hal_status metal_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = metal_device_check(queue->device);
    if (status == HAL_OK) {
        status = metal_point_reserve(queue, value);
    }
    if (status != HAL_OK) {
        return status;
    }
    metal_commands *commands = metal_shim_commands(queue->stream);
    if (!commands) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no memory for a batch",
                        queue->device->card->info.name);
    }
    bool fence_updated = false;
    for (uint32_t i = 0; i < wait_count; i++) {
        wait_encode(queue, &waits[i], commands);
    }
    status = batch_encode(queue, batch, commands, &fence_updated);
    if (status != HAL_OK) {
        metal_shim_release(commands);
        return status;
    }
    metal_shim_commands_signal_event(commands, queue->event, value);
    metal_shim_commands_commit(commands);
    queue->fence_updated = fence_updated;
    metal_point_add(queue, value, commands);
    return HAL_OK;
}
