/* The commands of batches, recorded into the command buffer of a slot. */
#include "commands.h"

#include "kernel.h"
#include "point.h"

#include <kit/copy_rows.h>
#include <kit/fill.h>
#include <string.h>

/* The state of recording one batch. */
typedef struct recording {
    hal_plugin_device *device;
    const vulkan_functions *vk;
    vulkan_slot *slot;
    VkCommandBuffer commands;
    const hal_batch *batch;
} recording;

#define KERNELS VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
#define COPIES VK_PIPELINE_STAGE_TRANSFER_BIT

/* Bytes of a copy between host and device that the host may wait for while it copies the next. */
#define TRANSFER_BYTES (UINT64_C(1) << 18)

#define PIECE UINT64_C(64) /* alignment of pieces of argument memory, in bytes */

static uint64_t piece_bytes(uint64_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

/* The bytes of argument memory for a batch: for kernels whose arguments do not fit into push
 * constants, and for fills that start or end within a word. */
static uint64_t argument_bytes(const hal_plugin_device *device, const hal_batch *batch)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH) {
            const uint32_t wanted = command->kernel->argument_bytes;
            bytes += wanted > device->push_bytes ? piece_bytes(wanted) : 0;
        } else if (command->kind == HAL_COMMAND_FILL) {
            bytes += PIECE;
        }
    }
    return bytes;
}

/* Later commands of the stage `to` start after earlier ones of the stages `from` have ended, and
 * see their writes. */
static void record_barrier(recording *r, VkPipelineStageFlags from, VkPipelineStageFlags to)
{
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = (from & KERNELS ? VK_ACCESS_SHADER_WRITE_BIT : 0) |
                         (from & COPIES ? VK_ACCESS_TRANSFER_WRITE_BIT : 0),
        .dstAccessMask = to == KERNELS
                             ? VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT
                             : VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    r->vk->vkCmdPipelineBarrier(r->commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

/* Later commands wait for all earlier ones. */
static void slot_order_all(vulkan_slot *slot)
{
    slot->pending[0] |= slot->recent;
    slot->pending[1] |= slot->recent;
    slot->recent = 0;
}

/* Orders a command after those before HAL_COMMAND_BARRIER. A barrier names only the stages that
 * were used: naming both always costs an empty kernel 0.2 us on an H200. */
static void record_order(recording *r, const hal_command *command)
{
    const bool is_copy = command->kind != HAL_COMMAND_DISPATCH;
    const VkPipelineStageFlags stage = is_copy ? COPIES : KERNELS;
    vulkan_slot *slot = r->slot;
    if (command->flags & HAL_COMMAND_BARRIER) {
        slot_order_all(slot);
    }
    if (slot->pending[is_copy] != 0) {
        record_barrier(r, slot->pending[is_copy], stage);
        slot->pending[is_copy] = 0;
    }
    slot->recent |= stage;
}

/* The grid of an indirect dispatch is read by a stage that record_order does not name. */
static void record_grid_order(recording *r)
{
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask =
                                        VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                    .dstAccessMask = VK_ACCESS_INDIRECT_COMMAND_READ_BIT};
    r->vk->vkCmdPipelineBarrier(r->commands, KERNELS | COPIES, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
                                0, 1, &memory, 0, NULL, 0, NULL);
}

/* A piece of argument memory, which argument_bytes has counted. */
static uint8_t *piece_take(recording *r, uint64_t bytes, uint64_t *offset)
{
    *offset = r->slot->argument_bytes;
    r->slot->argument_bytes += piece_bytes(bytes);
    return r->slot->arguments->mapped + *offset;
}

static void record_dispatch(recording *r, const hal_command *command)
{
    const hal_plugin_kernel *kernel = command->kernel;
    const hal_binding *bindings = r->batch->bindings + command->binding_first;
    const uint32_t bytes = kernel->argument_bytes;
    uint64_t pushed[VULKAN_MAX_PUSH / 8], offset = 0;
    uint8_t *block = (uint8_t *)pushed;
    if (bytes > r->device->push_bytes) {
        block = piece_take(r, bytes, &offset);
    }
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        const VkDeviceAddress address =
            bindings[i].length > 0 ? bindings[i].memory->address + bindings[i].offset : 0;
        memcpy(block + 8 * i, &address, 8);
    }
    if (kernel->scalar_bytes > 0) {
        memcpy(block + 8 * kernel->binding_count, r->batch->scalars + command->scalar_first,
               kernel->scalar_bytes);
    }
    if (r->slot->bound != kernel->pipeline) {
        r->vk->vkCmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
        r->slot->bound = kernel->pipeline;
    }
    if (bytes > r->device->push_bytes) {
        pushed[0] = r->slot->arguments->address + offset;
        r->vk->vkCmdPushConstants(r->commands, r->device->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8,
                                  pushed);
    } else if (bytes > 0) {
        r->vk->vkCmdPushConstants(r->commands, r->device->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                  (bytes + 3) / 4 * 4, pushed);
    }
    if (command->flags & HAL_COMMAND_INDIRECT) {
        const hal_binding *grid = &bindings[kernel->binding_count];
        record_grid_order(r);
        r->vk->vkCmdDispatchIndirect(r->commands, grid->memory->buffer,
                                     grid->memory->shift + grid->offset);
    } else {
        r->vk->vkCmdDispatch(r->commands, command->grid[0], command->grid[1], command->grid[2]);
    }
}

static void record_copy_bytes(recording *r, const hal_plugin_memory *from, uint64_t from_offset,
                              const hal_plugin_memory *to, uint64_t to_offset, uint64_t bytes)
{
    const VkBufferCopy region = {
        .srcOffset = from->shift + from_offset, .dstOffset = to->shift + to_offset, .size = bytes};
    r->vk->vkCmdCopyBuffer(r->commands, from->buffer, to->buffer, 1, &region);
}

static void record_copy(recording *r, const hal_command *command)
{
    const hal_binding *from = r->batch->bindings + command->binding_first, *to = from + 1;
    if (from->length > 0) {
        record_copy_bytes(r, from->memory, from->offset, to->memory, to->offset, from->length);
        r->slot->is_transfer |=
            from->length >= TRANSFER_BYTES && (from->memory->mapped || to->memory->mapped != NULL);
    }
}

static void record_copy_rows(recording *r, const hal_command *command)
{
    enum { REGIONS = 64 };
    const hal_binding *from = r->batch->bindings + command->binding_first, *to = from + 1;
    const hal_plugin_copy_rows rows = kit_copy_rows_read(r->batch, command);
    const uint64_t source = from->memory->shift + from->offset,
                   target = to->memory->shift + to->offset, count = kit_copy_rows_count(&rows);
    VkBufferCopy regions[REGIONS];
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t place = (uint32_t)(i % REGIONS);
        regions[place] = (VkBufferCopy){.srcOffset = source + kit_copy_rows_source(&rows, i),
                                        .dstOffset = target + kit_copy_rows_target(&rows, i),
                                        .size = rows.row_bytes};
        if (place + 1 == REGIONS || i + 1 == count) {
            r->vk->vkCmdCopyBuffer(r->commands, from->memory->buffer, to->memory->buffer, place + 1,
                                   regions);
        }
    }
}

/* A pattern of 8 or 16 bytes: the first 16 are copied from it, then what is filled is doubled. */
static void record_wide_fill(recording *r, const hal_binding *target, const kit_fill *fill)
{
    const hal_plugin_memory *memory = target->memory;
    uint64_t piece = 0, filled = sizeof fill->words;
    filled = filled < target->length ? filled : target->length;
    memcpy(piece_take(r, PIECE, &piece), fill->words, sizeof fill->words);
    record_copy_bytes(r, r->slot->arguments, piece, memory, target->offset, filled);
    while (filled < target->length) {
        const uint64_t rest = target->length - filled, bytes = rest < filled ? rest : filled;
        record_barrier(r, COPIES, COPIES);
        record_copy_bytes(r, memory, target->offset, memory, target->offset + filled, bytes);
        filled += bytes;
    }
}

/* Fills whole words; the bytes before and after them are copied from the pattern. */
static void record_fill(recording *r, const hal_command *command)
{
    const hal_binding *target = r->batch->bindings + command->binding_first;
    const hal_plugin_memory *memory = target->memory;
    const uint64_t begin = target->offset, end = begin + target->length;
    if (target->length == 0) {
        return;
    }
    const kit_fill fill = kit_fill_read(r->batch, command);
    if (!kit_fill_is_word(&fill)) {
        record_wide_fill(r, target, &fill);
        return;
    }
    uint64_t first = (begin + 3) / 4 * 4, last = end / 4 * 4, piece = 0;
    uint8_t bytes[8];
    memcpy(bytes, fill.words, 8);
    first = first < end ? first : end;
    last = last > first ? last : first;
    uint8_t *place = piece_take(r, PIECE, &piece);
    memcpy(place, bytes, 4); /* the first bytes; from 8 on the last ones */
    memcpy(place + 8, bytes + (last - begin) % 4, 4);
    if (first > begin) {
        record_copy_bytes(r, r->slot->arguments, piece, memory, begin, first - begin);
    }
    if (last > first) {
        uint32_t pattern;
        memcpy(&pattern, bytes + (first - begin) % 4, 4);
        r->vk->vkCmdFillBuffer(r->commands, memory->buffer, memory->shift + first, last - first,
                               pattern);
    }
    if (end > last) {
        record_copy_bytes(r, r->slot->arguments, piece + 8, memory, last, end - last);
    }
}

static void record_command(recording *r, const hal_command *command)
{
    const hal_binding *bindings = r->batch->bindings + command->binding_first;
    record_order(r, command);
    for (uint32_t i = 0; i < command->binding_count; i++) {
        r->slot->mapped_writes |= bindings[i].length > 0 &&
                                  (bindings[i].access & HAL_ACCESS_WRITE) &&
                                  bindings[i].memory->mapped != NULL;
    }
    if (command->kind == HAL_COMMAND_DISPATCH) {
        record_dispatch(r, command);
    } else if (command->kind == HAL_COMMAND_COPY) {
        record_copy(r, command);
    } else if (command->kind == HAL_COMMAND_COPY_ROWS) {
        record_copy_rows(r, command);
    } else {
        record_fill(r, command);
    }
}

static hal_status batch_check(const hal_plugin_device *device, const hal_batch *batch)
{
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const unsigned kind = batch->commands[i].kind;
        if (kind != HAL_COMMAND_DISPATCH && kind != HAL_COMMAND_COPY && kind != HAL_COMMAND_FILL &&
            kind != HAL_COMMAND_COPY_ROWS) {
            return kit_fail(HAL_ERROR_UNSUPPORTED,
                            "%s: submit: command: expected a dispatch, copy or fill, got kind %u",
                            device->physical.info.name, kind);
        }
    }
    return HAL_OK;
}

static void record_time(recording *r, hal_plugin_queue *queue, uint64_t value)
{
    const uint32_t place = (uint32_t)(value % VULKAN_TIMES);
    if (!r->device->physical.has_host_reset) {
        r->vk->vkCmdResetQueryPool(r->commands, queue->times, place, 1);
    }
    r->vk->vkCmdWriteTimestamp(r->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queue->times,
                               place);
}

hal_status vulkan_commands_begin(hal_plugin_device *device, vulkan_slot *slot)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    slot->argument_bytes = 0;
    slot->bound = VK_NULL_HANDLE;
    slot->mapped_writes = 0;
    slot->is_transfer = 0;
    slot->recent = KERNELS | COPIES; /* of earlier slots */
    slot->pending[0] = slot->pending[1] = 0;
    const VkResult result = device->vk.vkBeginCommandBuffer(slot->commands, &begin);
    return result == VK_SUCCESS ? HAL_OK
                                : vulkan_fail_result(device, result, "starting a command buffer");
}

bool vulkan_commands_fit(const hal_plugin_device *device, const vulkan_slot *slot,
                         const hal_batch *batch)
{
    const uint64_t bytes = argument_bytes(device, batch);
    return bytes == 0 ||
           (slot->arguments && slot->argument_bytes + bytes <= slot->arguments->bytes);
}

hal_status vulkan_commands_append(hal_plugin_queue *queue, vulkan_slot *slot,
                                  const hal_batch *batch, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    recording r = {.device = device,
                   .vk = &device->vk,
                   .slot = slot,
                   .commands = slot->commands,
                   .batch = batch};
    hal_status status = batch_check(device, batch);
    if (status == HAL_OK && !vulkan_commands_fit(device, slot, batch)) {
        status = vulkan_slot_arguments(queue, slot, argument_bytes(device, batch));
    }
    if (status != HAL_OK) {
        return status;
    }
    slot_order_all(slot);
    for (uint32_t i = 0; i < batch->command_count; i++) {
        record_command(&r, &batch->commands[i]);
    }
    if (vulkan_batch_is_timed(queue, batch)) {
        record_time(&r, queue, value);
    }
    return HAL_OK;
}

hal_status vulkan_commands_end(hal_plugin_device *device, vulkan_slot *slot)
{
    if (slot->mapped_writes) {
        const VkMemoryBarrier host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                      .srcAccessMask =
                                          VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                      .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
        device->vk.vkCmdPipelineBarrier(slot->commands, KERNELS | COPIES,
                                        VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &host, 0, NULL, 0, NULL);
    }
    const VkResult result = device->vk.vkEndCommandBuffer(slot->commands);
    return result == VK_SUCCESS ? HAL_OK
                                : vulkan_fail_result(device, result, "recording a command buffer");
}
