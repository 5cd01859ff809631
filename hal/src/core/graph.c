/* Graphs: commands that are kept and launched with other buffers in their slots. */
#include "graph.h"

#include "flush.h"
#include "hooks.h"
#include "kernel_cache.h"

#include "base/array.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* A command; its ranges and scalars are in the arrays of the graph. */
typedef struct graph_command {
    hal_action action;
    uint32_t range_first;
    uint32_t scalar_first;
} graph_command;

#define NO_SLOT UINT32_MAX

struct hal_graph {
    hal_device *device;
    graph_command *commands;
    hal_range *ranges;
    uint32_t *slots; /* slot of each range, or NO_SLOT */
    uint8_t *scalars;
    uint32_t command_count, command_capacity;
    uint32_t range_count, range_capacity;
    uint32_t scalar_bytes, scalar_capacity;
    uint64_t *slot_bytes; /* smallest size of the buffer in each slot */
    uint32_t slot_count;
};

static hal_status graph_begin(hal_queue *queue)
{
    HAL_TRY(hal_queue_check(queue, "hal_graph_begin"));
    HAL_TRY(hal_queue_flush(queue, NULL));
    hal_graph *graph = calloc(1, sizeof *graph);
    if (!graph) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_graph_begin: no host memory");
    }
    graph->device = hal_device_ref(queue->timeline.device);
    queue->graph = graph;
    return HAL_OK;
}

static hal_status slots_assign(hal_graph *graph, hal_buffer *const *slots, uint32_t slot_count)
{
    const uint32_t ranges = graph->range_count;
    graph->slots = malloc((ranges ? ranges : 1) * sizeof *graph->slots);
    graph->slot_bytes = calloc(slot_count ? slot_count : 1, sizeof *graph->slot_bytes);
    if (!graph->slots || !graph->slot_bytes) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_graph_end: no host memory");
    }
    graph->slot_count = slot_count;
    for (uint32_t i = 0; i < ranges; i++) {
        graph->slots[i] = NO_SLOT;
    }
    for (uint32_t s = 0; s < slot_count; s++) {
        bool used = false;
        for (uint32_t i = 0; slots[s] && i < ranges; i++) {
            if (graph->ranges[i].buffer == slots[s]) {
                if (graph->slots[i] != NO_SLOT) {
                    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                                    "hal_graph_end: slots[%u]: expected a buffer that is in one "
                                    "slot only, got that of slots[%u]",
                                    s, graph->slots[i]);
                }
                graph->slots[i] = s;
                used = 1;
            }
        }
        if (!used) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_graph_end: slots[%u]: expected a buffer that a command of the "
                            "graph uses, got %s",
                            s, slots[s] ? "one that none uses" : "null");
        }
        graph->slot_bytes[s] = slots[s]->bytes;
    }
    return HAL_OK;
}

static void graph_free(hal_graph *graph)
{
    if (!graph || hal_device_is_after_fork(graph->device)) {
        return;
    }
    for (uint32_t i = 0; i < graph->command_count; i++) {
        hal_kernel_unref(graph->commands[i].action.kernel);
        if (graph->commands[i].action.call) {
            graph->commands[i].action.call->destroy(graph->commands[i].action.call);
        }
    }
    for (uint32_t i = 0; i < graph->range_count; i++) {
        hal_buffer_unref(graph->ranges[i].buffer);
    }
    hal_device_unref(graph->device);
    free(graph->commands);
    free(graph->ranges);
    free(graph->slots);
    free(graph->scalars);
    free(graph->slot_bytes);
    hal_hook_retire(HAL_OBJECT_GRAPH, graph, sizeof *graph, free);
}

static hal_status graph_end(hal_queue *queue, hal_buffer *const *slots, uint32_t slot_count,
                            hal_graph **graph)
{
    if (graph) {
        *graph = NULL;
    }
    if (!queue) {
        return hal_null_argument("hal_graph_end", "queue");
    }
    if (!queue->graph) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "hal_graph_end: queue: expected a graph in recording; call "
                        "hal_graph_begin first");
    }
    hal_graph *made = queue->graph;
    queue->graph = NULL;
    hal_status status = HAL_OK;
    if (!graph || (slot_count > 0 && !slots)) {
        status = hal_null_argument("hal_graph_end", graph ? "slots" : "graph");
    } else {
        status = slots_assign(made, slots, slot_count);
    }
    if (status != HAL_OK) {
        graph_free(made);
        return status;
    }
    *graph = made;
    return HAL_OK;
}

static hal_range launch_range(const hal_graph *graph, uint32_t index, hal_buffer *const *buffers)
{
    hal_range range = graph->ranges[index];
    const uint32_t slot = graph->slots[index];
    if (buffers && slot != NO_SLOT && buffers[slot]) {
        range.buffer = buffers[slot];
    }
    return range;
}

/* The same buffer may be in several slots, and slots of one command may then overlap. */
static hal_status check_overlaps(const hal_graph *graph, hal_buffer *const *buffers)
{
    for (uint32_t c = 0; c < graph->command_count; c++) {
        const graph_command *command = &graph->commands[c];
        if (command->action.call) {
            continue; /* checks its ranges when it is recorded */
        }
        for (uint32_t i = 1; i < command->action.range_count; i++) {
            const hal_range one = launch_range(graph, command->range_first + i, buffers);
            for (uint32_t j = 0; one.buffer && j < i; j++) {
                const hal_range other = launch_range(graph, command->range_first + j, buffers);
                const uint8_t *access = command->action.access;
                if (one.buffer == other.buffer && one.length > 0 && other.length > 0 &&
                    one.offset < other.offset + other.length &&
                    other.offset < one.offset + one.length &&
                    ((access[i] | access[j]) & HAL_ACCESS_WRITE)) {
                    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                                    "hal_graph_launch: buffers: expected no overlap with a "
                                    "written range, got one of bindings %u and %u of command %u",
                                    j, i, c);
                }
            }
        }
    }
    return HAL_OK;
}

static hal_status check_launch(const hal_queue *queue, const hal_graph *graph,
                               hal_buffer *const *buffers, uint32_t buffer_count)
{
    if (!graph) {
        return hal_null_argument("hal_graph_launch", "graph");
    }
    const hal_device *device = queue->timeline.device;
    if (graph->device != device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_graph_launch: graph: expected one of %s:%u, the queue's device, got "
                        "one of %s:%u",
                        device->plugin->name, device->index, graph->device->plugin->name,
                        graph->device->index);
    }
    if (buffer_count != 0 && !buffers) {
        return hal_null_argument("hal_graph_launch", "buffers");
    }
    if (buffer_count != 0 && buffer_count != graph->slot_count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_graph_launch: buffer_count: expected 0 or %u, the number of slots, "
                        "got %u",
                        graph->slot_count, buffer_count);
    }
    for (uint32_t s = 0; s < buffer_count; s++) {
        if (buffers[s] && buffers[s]->device != device) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_graph_launch: buffers[%u]: expected a buffer of %s:%u, the "
                            "queue's device, got one of %s:%u",
                            s, device->plugin->name, device->index,
                            buffers[s]->device->plugin->name, buffers[s]->device->index);
        }
        if (buffers[s] && buffers[s]->bytes < graph->slot_bytes[s]) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "hal_graph_launch: buffers[%u]: expected at least the %llu bytes of "
                            "the recorded buffer, got %llu",
                            s, (unsigned long long)graph->slot_bytes[s],
                            (unsigned long long)buffers[s]->bytes);
        }
    }
    return buffer_count ? check_overlaps(graph, buffers) : HAL_OK;
}

/* A call flushes: after an error the commands up to the last flush stay. */
static hal_status graph_record(hal_queue *queue, const hal_graph *graph, hal_buffer *const *buffers)
{
    hal_recorder *recorder = &queue->recorder;
    hal_recording *recording = recorder->recording;
    const uint32_t commands = recording->command_count;
    const uint32_t bindings = recording->binding_count;
    const uint32_t scalars = recording->scalar_bytes;
    const uint32_t pending = recording->pending_count;
    const uint64_t serial = recorder->serial;
    hal_status status = HAL_OK;
    for (uint32_t c = 0; status == HAL_OK && c < graph->command_count; c++) {
        const graph_command *command = &graph->commands[c];
        hal_range ranges[HAL_IR_MAX_BINDINGS + 1];
        for (uint32_t i = 0; i < command->action.range_count; i++) {
            ranges[i] = launch_range(graph, command->range_first + i, buffers);
        }
        hal_action action = command->action;
        action.ranges = ranges;
        action.scalars = graph->scalars ? graph->scalars + command->scalar_first : NULL;
        status = action.call ? action.call->record(action.call, queue, ranges)
                             : hal_record_action(recorder, &action);
    }
    if (status != HAL_OK && recorder->serial == serial) {
        recording->command_count = commands;
        recording->binding_count = bindings;
        recording->scalar_bytes = scalars;
        recording->pending_count = pending;
        hal_hazards_force(&recorder->hazards);
    }
    return status;
}

static hal_status graph_launch(hal_queue *queue, hal_graph *graph, hal_buffer *const *buffers,
                               uint32_t buffer_count)
{
    hal_status status = hal_queue_check(queue, "hal_graph_launch");
    if (status == HAL_OK) {
        status = check_launch(queue, graph, buffers, buffer_count);
    }
    if (status != HAL_OK || graph->command_count == 0) {
        return status;
    }
    hal_buffer *const *given = buffer_count ? buffers : NULL;
    /* A launch is not split over batches: one that does not fit starts a new batch. */
    hal_recorder *recorder = &queue->recorder;
    if (recorder->recording->command_count + (uint64_t)graph->command_count >
        recorder->batch_most) {
        status = hal_queue_flush(queue, NULL);
    } else {
        status = hal_flush_if_full(queue);
    }
    return status == HAL_OK ? graph_record(queue, graph, given) : status;
}

hal_status hal_graph_begin(hal_queue *queue)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_graph_begin");
    return status == HAL_OK ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, graph_begin(queue)) : status;
}

hal_status hal_graph_end(hal_queue *queue, hal_buffer *const *slots, uint32_t slot_count,
                         hal_graph **graph)
{
    hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_graph_end");
    if (status == HAL_OK) {
        status = graph_end(queue, slots, slot_count, graph);
        hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
    }
    if (status == HAL_OK) {
        hal_hook_created(HAL_OBJECT_GRAPH, *graph, (*graph)->device, "", 0);
    }
    return status;
}

void hal_graph_destroy(hal_graph *graph)
{
    if (hal_hook_enter(HAL_OBJECT_GRAPH, graph, "hal_graph_destroy") == HAL_OK) {
        graph_free(graph);
        hal_hook_leave(HAL_OBJECT_GRAPH, graph, HAL_OK);
    }
}

hal_status hal_graph_launch(hal_queue *queue, hal_graph *graph, hal_buffer *const *buffers,
                            uint32_t buffer_count)
{
    if (!hal_hooks_on(HAL_HOOK_CALLS)) {
        return graph_launch(queue, graph, buffers, buffer_count);
    }
    HAL_TRY(hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_graph_launch"));
    hal_status status = hal_hook_enter(HAL_OBJECT_GRAPH, graph, "hal_graph_launch");
    if (status == HAL_OK) {
        const uint32_t count =
            graph && buffers && buffer_count == graph->slot_count ? buffer_count : 0;
        for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
            status = hal_hook_use(HAL_OBJECT_BUFFER, buffers[i], "hal_graph_launch");
        }
        if (status == HAL_OK) {
            status = graph_launch(queue, graph, buffers, buffer_count);
        }
        hal_hook_leave(HAL_OBJECT_GRAPH, graph, status);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
}

uint32_t hal_graph_get_command_count(const hal_graph *graph)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_GRAPH, graph, "hal_graph_get_command_count");
    return graph && status == HAL_OK ? graph->command_count : 0;
}

hal_status hal_graph_append(hal_graph *graph, const hal_action *action)
{
    const uint32_t block = (action->scalar_bytes + 7) & ~7u;
    if (!HAL_ARRAY_RESERVE(graph->commands, graph->command_capacity,
                           (uint64_t)graph->command_count + 1) ||
        !HAL_ARRAY_RESERVE(graph->ranges, graph->range_capacity,
                           (uint64_t)graph->range_count + action->range_count) ||
        !HAL_ARRAY_RESERVE(graph->scalars, graph->scalar_capacity,
                           (uint64_t)graph->scalar_bytes + block)) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a command of a graph");
    }
    graph_command *command = &graph->commands[graph->command_count++];
    command->action = *action;
    command->range_first = graph->range_count;
    command->scalar_first = graph->scalar_bytes;
    hal_kernel_ref(action->kernel);
    if (action->kind == HAL_COMMAND_DISPATCH) {
        command->action.access = action->kernel->access;
    }
    for (uint32_t i = 0; i < action->range_count; i++) {
        hal_buffer_ref(action->ranges[i].buffer);
        graph->ranges[graph->range_count++] = action->ranges[i];
    }
    if (action->scalar_bytes) {
        memcpy(graph->scalars + graph->scalar_bytes, action->scalars, action->scalar_bytes);
    }
    graph->scalar_bytes += block;
    return HAL_OK;
}

void hal_graph_abandon(hal_queue *queue)
{
    graph_free(queue->graph);
    queue->graph = NULL;
}
