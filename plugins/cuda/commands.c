/* The commands of a batch as calls of the driver, in order: dispatches as chains or launches,
 * copies and fills. A stream keeps the order of what is submitted to it, so HAL_COMMAND_BARRIER
 * needs nothing. */
#include "commands.h"

#include "chain/chain.h"
#include "collectives/comm.h"
#include "gemm/launch.h"
#include "gemm/workspace.h"
#include "kernel.h"
#include "point.h"

#include <kit/copy_rows.h>
#include <kit/fill.h>

/* The number of dispatches in a row from a command on, at most CUDA_CHAIN_MAX. */
static uint32_t dispatch_count(const hal_batch *batch, uint32_t first)
{
    uint32_t count = 0;
    while (count < CUDA_CHAIN_MAX && first + count < batch->command_count &&
           batch->commands[first + count].kind == HAL_COMMAND_DISPATCH) {
        count++;
    }
    return count;
}

/* An early start is that of chain/graph.c. */
static hal_status dispatch_launch(hal_plugin_queue *queue, const hal_batch *batch,
                                  const hal_command *command, bool starts_early)
{
    const cuda_driver *cu = cuda_functions();
    const hal_plugin_kernel *kernel = command->kernel;
    const uint32_t *group = kernel->group;
    cuda_arguments arguments;
    uint32_t grid[3];
    cuda_result result;
    cuda_kernel_arguments(queue, batch, command, &arguments);
    cuda_kernel_grid(command, grid);
    if (starts_early) {
        const cuda_launch_attribute early = {.kind = CUDA_LAUNCH_EARLY, .value = {1}};
        const cuda_launch_config config = {.grid = {grid[0], grid[1], grid[2]},
                                           .group = {group[0], group[1], group[2]},
                                           .shared_bytes = kernel->dynamic_shared,
                                           .stream = queue->stream,
                                           .attributes = &early,
                                           .attribute_count = 1};
        result =
            cu->cuLaunchKernelEx(&config, kernel->function, arguments.parameters, arguments.extra);
    } else {
        result = cu->cuLaunchKernel(kernel->function, grid[0], grid[1], grid[2], group[0], group[1],
                                    group[2], kernel->dynamic_shared, queue->stream,
                                    arguments.parameters, arguments.extra);
    }
    return cuda_check(result, "launching a kernel of %u x %u x %u groups", grid[0], grid[1],
                      grid[2]);
}

/* As a chain where the run is long enough and has one; as launches elsewhere. */
static hal_status run_submit(hal_plugin_queue *queue, const cuda_run *run)
{
    bool submitted = false;
    hal_status status = HAL_OK;
    if (run->count >= queue->device->chain_min) {
        status = cuda_chain_submit(queue, run, &submitted);
    }
    for (uint32_t i = 0; i < run->count && status == HAL_OK && !submitted; i++) {
        const bool starts_early =
            i > 0 && queue->device->launches_early && run->commands[i].kernel->waits_itself;
        status = dispatch_launch(queue, run->batch, &run->commands[i], starts_early);
    }
    return status;
}

/* Pinned memory is mapped on every device, so only copies between device memories name both. */
static hal_status copy_submit(hal_plugin_queue *queue, const hal_binding *bindings)
{
    const cuda_driver *cu = cuda_functions();
    const hal_binding *from = &bindings[0], *to = &bindings[1];
    if (from->length == 0) {
        return HAL_OK;
    }
    const cuda_address source = from->memory->address + from->offset,
                       target = to->memory->address + to->offset;
    const hal_plugin_device *here = from->memory->device, *there = to->memory->device;
    if (here != there && !from->memory->pointer && !to->memory->pointer) {
        return cuda_check(cu->cuMemcpyPeerAsync(target, there->context, source, here->context,
                                                from->length, queue->stream),
                          "copying %llu bytes from device %d to device %d",
                          (unsigned long long)from->length, here->ordinal, there->ordinal);
    }
    return cuda_check(cu->cuMemcpyAsync(target, source, from->length, queue->stream),
                      "copying %llu bytes", (unsigned long long)from->length);
}

/* One slice of a copy of rows; the driver's pitches have 31 bits. */
static hal_status slice_submit(hal_plugin_queue *queue, cuda_address source, cuda_address target,
                               const hal_plugin_copy_rows *rows)
{
    const cuda_driver *cu = cuda_functions();
    if (rows->source_pitch <= INT32_MAX && rows->target_pitch <= INT32_MAX) {
        const cuda_rows slice = {
            .source = {.kind = CUDA_MEMORY_UNIFIED, .address = source, .pitch = rows->source_pitch},
            .target = {.kind = CUDA_MEMORY_UNIFIED, .address = target, .pitch = rows->target_pitch},
            .width = rows->row_bytes,
            .height = rows->rows};
        return cuda_check(cu->cuMemcpy2DAsync_v2(&slice, queue->stream),
                          "copying %u rows of %llu bytes", rows->rows,
                          (unsigned long long)rows->row_bytes);
    }
    hal_status status = HAL_OK;
    for (uint64_t i = 0; i < rows->rows && status == HAL_OK; i++) {
        status = cuda_check(cu->cuMemcpyAsync(target + i * rows->target_pitch,
                                              source + i * rows->source_pitch, rows->row_bytes,
                                              queue->stream),
                            "copying a row of %llu bytes", (unsigned long long)rows->row_bytes);
    }
    return status;
}

static hal_status rows_submit(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command)
{
    const hal_binding *from = batch->bindings + command->binding_first, *to = from + 1;
    const hal_plugin_copy_rows rows = kit_copy_rows_read(batch, command);
    hal_status status = HAL_OK;
    for (uint64_t i = 0; i < rows.slices && status == HAL_OK; i++) {
        status = slice_submit(queue, from->memory->address + from->offset + i * rows.source_slice,
                              to->memory->address + to->offset + i * rows.target_slice, &rows);
    }
    return status;
}

/* The first `count` bytes of the pattern, at most 4. */
static hal_status fill_bytes(hal_plugin_queue *queue, cuda_address to, uint32_t pattern,
                             uint64_t count)
{
    hal_status status = HAL_OK;
    for (uint64_t i = 0; i < count && status == HAL_OK; i++) {
        status = cuda_check(cuda_functions()->cuMemsetD8Async(
                                to + i, (unsigned char)(pattern >> 8 * i), 1, queue->stream),
                            "filling a byte");
    }
    return status;
}

/* Words of the pattern, rotated to the alignment of the target, between single bytes at both
 * ends. */
static hal_status word_fill_submit(hal_plugin_queue *queue, const hal_binding *target,
                                   uint32_t pattern)
{
    const cuda_driver *cu = cuda_functions();
    uint64_t rest = target->length;
    if (rest == 0) {
        return HAL_OK;
    }
    cuda_address to = target->memory->address + target->offset;
    if ((pattern & 0xff) * 0x01010101u == pattern) {
        return cuda_check(cu->cuMemsetD8Async(to, (unsigned char)pattern, rest, queue->stream),
                          "filling %llu bytes", (unsigned long long)rest);
    }
    const uint64_t head = (4 - to % 4) % 4 < rest ? (4 - to % 4) % 4 : rest;
    hal_status status = fill_bytes(queue, to, pattern, head);
    const uint32_t rotation = 8 * (uint32_t)head;
    pattern = rotation ? pattern >> rotation | pattern << (32 - rotation) : pattern;
    to += head;
    rest -= head;
    if (status == HAL_OK && rest >= 4) {
        status = cuda_check(cu->cuMemsetD32Async(to, pattern, rest / 4, queue->stream),
                            "filling %llu bytes", (unsigned long long)rest);
    }
    return status == HAL_OK ? fill_bytes(queue, to + rest / 4 * 4, pattern, rest % 4) : status;
}

/* A pattern of 8 or 16 bytes: each of its words by itself, in a column of the target. The driver
 * orders them on the stream. */
static hal_status fill_submit(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command)
{
    const hal_binding *target = batch->bindings + command->binding_first;
    if (target->length == 0) {
        return HAL_OK;
    }
    const kit_fill fill = kit_fill_read(batch, command);
    if (kit_fill_is_word(&fill)) {
        return word_fill_submit(queue, target, fill.words[0]);
    }
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < fill.bytes / 4 && status == HAL_OK; i++) {
        status = cuda_check(cuda_functions()->cuMemsetD2D32Async(
                                target->memory->address + target->offset + 4 * i, fill.bytes,
                                fill.words[i], 1, target->length / fill.bytes, queue->stream),
                            "filling %llu bytes", (unsigned long long)target->length);
    }
    return status;
}

/* Before anything of the batch runs. */
static hal_status batch_check(const hal_batch *batch)
{
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const unsigned kind = batch->commands[i].kind;
        if (kind > HAL_COMMAND_COPY_ROWS || kind == HAL_COMMAND_COLLECTIVE) {
            return kit_fail(HAL_ERROR_UNSUPPORTED,
                            "cuda: submit: command %u: expected a dispatch, copy or fill, got "
                            "kind %u",
                            i, kind);
        }
    }
    return HAL_OK;
}

static hal_status commands_submit(hal_plugin_queue *queue, const hal_batch *batch)
{
    hal_status status = batch_check(batch);
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK;) {
        const hal_command *command = &batch->commands[i];
        cuda_run run = {.batch = batch, .commands = command, .count = dispatch_count(batch, i)};
        if (run.count > 0) {
            run.count = cuda_chain_cut(queue, &run);
            status = run_submit(queue, &run);
            i += run.count;
            continue;
        }
        const hal_binding *bindings = batch->bindings + command->binding_first;
        if (command->kind == HAL_COMMAND_COPY) {
            status = copy_submit(queue, bindings);
        } else if (command->kind == HAL_COMMAND_COPY_ROWS) {
            status = rows_submit(queue, batch, command);
        } else {
            status = fill_submit(queue, batch, command);
        }
        i++;
    }
    return status;
}

/* Whether the queue lacks the memory of parts and the batch has a kernel that uses it. */
static bool batch_needs_parts(const hal_plugin_queue *queue, const hal_batch *batch)
{
    if (queue->parts != 0 || !atomic_load(&queue->device->needs_parts)) {
        return false;
    }
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_DISPATCH && command->kernel->gemm &&
            command->kernel->gemm->in_memory) {
            return true;
        }
    }
    return false;
}

/* Launches a kernel that traps. Its module goes with the context, which the trap ends. */
static hal_status trap_submit(hal_plugin_queue *queue)
{
    static const char text[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
                               ".visible .entry hal_trap()\n{\n    trap;\n}\n";
    const cuda_driver *cu = cuda_functions();
    cuda_module module = NULL;
    cuda_function function = NULL;
    queue->fails_next = false;
    cuda_result result = cu->cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    if (result == 0) {
        result = cu->cuModuleGetFunction(&function, module, "hal_trap");
    }
    if (result == 0) {
        result = cu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, queue->stream, NULL, NULL);
    }
    return cuda_check(result, "launching a kernel that traps");
}

static bool batch_is_collective(const hal_batch *batch)
{
    return batch->command_count == 1 && batch->commands[0].kind == HAL_COMMAND_COLLECTIVE;
}

void cuda_queue_fail_next(hal_plugin_queue *queue)
{
    queue->fails_next = true;
}

hal_status cuda_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    HAL_TRY(cuda_context_push(queue->device));
    hal_status status = cuda_point_prepare(queue, batch, value);
    if (status == HAL_OK) {
        status = cuda_point_follow(queue, waits, wait_count);
    }
    if (status == HAL_OK && batch_needs_parts(queue, batch)) {
        status = cuda_gemm_parts_create(queue);
    }
    if (status == HAL_OK && batch_is_collective(batch)) {
        status = cuda_comm_submit(queue, batch, value);
    } else if (status == HAL_OK) {
        status = commands_submit(queue, batch);
        if (status == HAL_OK && queue->fails_next) {
            status = trap_submit(queue);
        }
        status = status == HAL_OK ? cuda_point_submit(queue, value) : status;
        if (status != HAL_OK) {
            /* The commands submitted so far have no point: they end before their memory is
             * freed. */
            cuda_functions()->cuStreamSynchronize(queue->stream);
        }
    }
    cuda_context_pop();
    return status;
}
