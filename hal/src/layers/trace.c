/* The trace layer: HAL_TRACE=FILE writes a timeline that Perfetto opens, HAL_PROFILE=FILE a page
 * with it (profile.c): per thread the recording and submission of batches, waits, allocations and
 * the creation of kernels; per queue the work of the device; per device its memory.
 *
 * Each command becomes one batch; commands of a graph stay together. Devices with
 * HAL_FEATURE_TIMESTAMPS report the time between the ends of batches, aligned with the host's clock
 * at waits. On other devices the host waits for each batch and uses its own clock.
 *
 * Called by layer.c, and by core through its table of hooks. */
#include "base/fork.h"
#include "base/clock.h"
#include "core/kernel.h"
#include "core/pool.h"
#include "core/queue.h"
#include "layer.h"
#include "base/map.h"
#include "base/number.h"
#include "base/platform.h"
#include "trace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define NAME_BYTES 64

/* Batches without a device time yet. Plugins remember about a thousand ends. */
#define PENDING 256

typedef struct batch_trace {
    uint64_t value;
    uint64_t submitted_ns;
    uint64_t bytes; /* that the bindings span, those that are read and written twice */
    uint32_t commands;
    uint32_t group;        /* of hal_profile_group_begin; 0: none */
    const char *kind;      /* of the first command */
    double operations;     /* of a product, else 0 */
    const char *unit;      /* what does them, see hal_trace_kernel_operations */
    char name[NAME_BYTES]; /* of the kernel, or the kind of command */
} batch_trace;

/* A kernel of a plugin. */
typedef struct known_kernel {
    char *name;
    double operations; /* of a dispatch; 0: not known */
    const char *unit;
    uint64_t number; /* handles are reused, numbers are not */
} known_kernel;

/* What dispatches of a kernel over one grid with the same scalars do. */
typedef struct known_dispatch {
    double operations;
    const char *unit;
} known_dispatch;

typedef struct hal_queue_trace {
    hal_trace_line line;         /* in the group of the device; queues are recycled */
    uint32_t thread;             /* last one that recorded: only it may ask the plugin for times */
    uint32_t group, batch_group; /* of the next commands, and of the batch in recording */
    uint64_t recording_ns;       /* time of the first command of the batch; 0: unknown */
    uint64_t seen;               /* highest value that was waited for */
    uint64_t seen_ns;            /* time at which it was reached */
    uint64_t last_end_ns;
    uint32_t count;
    batch_trace pending[PENDING];
} hal_queue_trace;

/* known_kernel by the plugin's object, groups by device. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LAYER)
static hal_map known_kernels;
static hal_map known_dispatches; /* by dispatch_key */
static uint64_t last_number;
static hal_map device_groups;
static uint32_t last_group = HAL_TRACE_HOST;
static uint32_t last_line;

/* Guards the traces of queues: any thread may wait for a queue. Taken before `lock`. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(queue_lock, HAL_FORK_LAYER)

uint32_t hal_trace_device_group(hal_device *device)
{
    pthread_mutex_lock(&lock);
    uint32_t group = (uint32_t)(uintptr_t)hal_map_get(&device_groups, hal_map_key(device));
    const bool is_new = group == 0;
    if (is_new) {
        group = ++last_group;
        hal_map_put(&device_groups, hal_map_key(device), (void *)(uintptr_t)group);
    }
    pthread_mutex_unlock(&lock);
    if (is_new) {
        char name[256];
        snprintf(name, sizeof name, "%s:%u %s", device->plugin->name, device->index,
                 device->info.name);
        hal_trace_name((hal_trace_line){group, 0}, name);
    }
    return group;
}

/* The trace of a queue; null if memory is out. Needs queue_lock. */
static hal_queue_trace *queue_trace(hal_queue *queue)
{
    if (!queue->trace) {
        queue->trace = calloc(1, sizeof *queue->trace);
    }
    hal_queue_trace *trace = queue->trace;
    const uint32_t group = hal_trace_device_group(queue->timeline.device);
    if (trace && trace->line.group != group) {
        *trace = (hal_queue_trace){.line.group = group};
        pthread_mutex_lock(&lock);
        trace->line.number = ++last_line;
        pthread_mutex_unlock(&lock);
        char name[32];
        snprintf(name, sizeof name, "queue %" PRIu32, trace->line.number);
        hal_trace_name(trace->line, name);
    }
    return trace;
}

/* Writes the batches up to the highest reached value. The device reports the times between the ends
 * of batches; a batch begins at the end of the previous one or when it was submitted. Needs
 * queue_lock. Threads: the queue's. */
static void write_reached_batches(hal_queue *queue, hal_queue_trace *trace)
{
    uint32_t done = 0;
    while (trace && done < trace->count && trace->pending[done].value <= trace->seen) {
        done++;
    }
    if (done == 0) {
        return;
    }
    const hal_timeline *timeline = &queue->timeline;
    const hal_plugin_entries *plugin = timeline->device->plugin;
    const uint64_t now = trace->seen_ns;
    const uint64_t last = trace->pending[done - 1].value;
    for (uint32_t i = 0; i < done; i++) {
        const batch_trace *batch = &trace->pending[i];
        uint64_t before = 0;
        if (batch->value < last &&
            (!plugin->queue_elapsed ||
             plugin->queue_elapsed(timeline->handle, batch->value - timeline->base,
                                   last - timeline->base, &before) != HAL_OK)) {
            continue;
        }
        const uint64_t end = before < now ? now - before : 0;
        uint64_t start =
            batch->submitted_ns > trace->last_end_ns ? batch->submitted_ns : trace->last_end_ns;
        start = start < end ? start : end;
        hal_trace_slice(trace->line, "device", batch->name, start, end,
                        "\"commands\":%" PRIu32 ",\"point\":%" PRIu64 ",\"kind\":\"%s\""
                        ",\"bytes\":%" PRIu64 ",\"group\":%" PRIu32
                        ",\"operations\":%s,\"unit\":\"%s\"",
                        batch->commands, batch->value, batch->kind, batch->bytes, batch->group,
                        HAL_NUMBER(batch->operations, 0), batch->unit ? batch->unit : "");
        trace->last_end_ns = end;
    }
    trace->count -= done;
    memmove(trace->pending, trace->pending + done, trace->count * sizeof *trace->pending);
}

static hal_status trace_begin(void)
{
    return hal_trace_open(secure_getenv("HAL_TRACE"), secure_getenv("HAL_PROFILE"));
}

/* Writes the memory of a device; `more` bytes are not counted yet. */
static void trace_memory(hal_device *device, uint64_t more, uint64_t now)
{
    uint64_t in_use, pooled;
    hal_pool_usage(device->pool, &in_use, &pooled);
    in_use += more;
    hal_trace_counter(hal_trace_device_group(device), "memory", now,
                      "\"in use\":%" PRIu64 ",\"pooled\":%" PRIu64, in_use, pooled);
}

static void kernel_put(const hal_kernel *kernel)
{
    pthread_mutex_lock(&lock);
    known_kernel *known = calloc(1, sizeof *known);
    known_kernel *earlier = hal_map_get(&known_kernels, hal_map_key(kernel->handle));
    if (known) {
        known->number = ++last_number;
    }
    if (known && (known->name = strdup(kernel->names)) != NULL &&
        hal_map_put(&known_kernels, hal_map_key(kernel->handle), known)) {
        known = earlier;
    }
    if (known) {
        free(known->name);
        free(known);
    }
    pthread_mutex_unlock(&lock);
}

void hal_trace_kernel_operations(const hal_kernel *kernel, double operations, const char *unit)
{
    pthread_mutex_lock(&lock);
    known_kernel *known = hal_map_get(&known_kernels, hal_map_key(kernel->handle));
    if (known) {
        known->operations = operations;
        known->unit = unit;
    }
    pthread_mutex_unlock(&lock);
}

static uint64_t dispatch_key(const known_kernel *kernel, const uint32_t grid[3],
                             const void *scalars, uint32_t scalar_bytes)
{
    const uint64_t place = XXH3_64bits_withSeed(grid, 3 * sizeof *grid, kernel->number);
    return XXH3_64bits_withSeed(scalar_bytes ? scalars : "", scalar_bytes, place) | 1;
}

void hal_trace_dispatch_operations(const hal_kernel *kernel, const uint32_t grid[3],
                                   const void *scalars, uint32_t scalar_bytes, double operations,
                                   const char *unit)
{
    pthread_mutex_lock(&lock);
    const known_kernel *known = hal_map_get(&known_kernels, hal_map_key(kernel->handle));
    const uint64_t key = known ? dispatch_key(known, grid, scalars, scalar_bytes) : 0;
    known_dispatch *dispatch = known ? hal_map_get(&known_dispatches, key) : NULL;
    if (known && !dispatch && (dispatch = malloc(sizeof *dispatch)) != NULL &&
        !hal_map_put(&known_dispatches, key, dispatch)) {
        free(dispatch);
        dispatch = NULL;
    }
    if (dispatch) {
        *dispatch = (known_dispatch){operations, unit};
    }
    pthread_mutex_unlock(&lock);
}

/* What a batch of one command computes. */
static void batch_operations(const hal_recording *recording, batch_trace *batch)
{
    const hal_command *command = recording->command_count == 1 ? recording->commands : NULL;
    pthread_mutex_lock(&lock);
    const known_kernel *known = command && command->kernel
                                    ? hal_map_get(&known_kernels, hal_map_key(command->kernel))
                                    : NULL;
    const known_dispatch *dispatch =
        known ? hal_map_get(&known_dispatches,
                            dispatch_key(known, command->grid,
                                         recording->scalars + command->scalar_first,
                                         command->scalar_bytes))
              : NULL;
    batch->operations = dispatch ? dispatch->operations : known ? known->operations : 0;
    batch->unit = dispatch ? dispatch->unit : known ? known->unit : NULL;
    pthread_mutex_unlock(&lock);
}

static const char *batch_kind(const hal_recording *recording)
{
    static const char *const kinds[] = {"kernel", "copy", "fill", "collective"};
    return recording->command_count > 0 ? kinds[recording->commands[0].kind] : "nothing";
}

static uint64_t batch_bytes(const hal_recording *recording)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < recording->binding_count; i++) {
        const hal_binding *binding = &recording->bindings[i];
        bytes += binding->access == HAL_ACCESS_READ_WRITE ? 2 * binding->length : binding->length;
    }
    return bytes;
}

static void batch_name(const hal_recording *recording, char name[NAME_BYTES])
{
    const char *what = batch_kind(recording);
    if (recording->command_count == 0) {
        snprintf(name, NAME_BYTES, "%s", what);
        return;
    }
    const hal_command *first = &recording->commands[0];
    pthread_mutex_lock(&lock);
    const known_kernel *known =
        first->kernel ? hal_map_get(&known_kernels, hal_map_key(first->kernel)) : NULL;
    what = known ? known->name : what;
    if (recording->command_count == 1) {
        snprintf(name, NAME_BYTES, "%s", what);
    } else {
        snprintf(name, NAME_BYTES, "%.40s and %" PRIu32 " more", what,
                 recording->command_count - 1);
    }
    pthread_mutex_unlock(&lock);
}

static void mark_reached(hal_queue_trace *trace, uint64_t value, uint64_t now)
{
    if (trace && value > trace->seen) {
        trace->seen = value;
        trace->seen_ns = now;
    }
}

/* Needs queue_lock. */
static void trace_submit(const hal_event *event, hal_status status, uint64_t now)
{
    hal_queue *queue = event->queue;
    hal_queue_trace *trace = queue_trace(queue);
    const hal_trace_line line = hal_trace_thread();
    char name[NAME_BYTES];
    batch_name(event->recording, name);
    if (trace && trace->recording_ns) {
        hal_trace_slice(line, "record", name, trace->recording_ns, event->begin_ns, "%s", "");
        trace->recording_ns = 0;
    }
    hal_trace_slice(line, status == HAL_OK ? "flush" : "flush failed", "flush", event->begin_ns,
                    now, "\"commands\":%" PRIu32 ",\"point\":%" PRIu64,
                    event->recording->command_count, event->value);
    trace_memory(event->device, 0, now);
    if (!trace || status != HAL_OK) {
        return;
    }
    trace->thread = line.number;
    write_reached_batches(queue, trace);
    /* The value of a collective may need calls of other ranks of the process: no wait for it. */
    const bool is_collective = event->recording->command_count == 1 &&
                               event->recording->commands[0].kind == HAL_COMMAND_COLLECTIVE;
    if (trace->count == PENDING) {
        return;
    }
    batch_trace *batch = &trace->pending[trace->count++];
    *batch = (batch_trace){.value = event->value,
                           .submitted_ns = event->begin_ns,
                           .bytes = batch_bytes(event->recording),
                           .commands = event->recording->command_count,
                           .group = trace->batch_group,
                           .kind = batch_kind(event->recording)};
    memcpy(batch->name, name, sizeof name);
    batch_operations(event->recording, batch);
    const hal_device *device = event->device;
    const bool counts = (device->info.features & HAL_FEATURE_TIMESTAMPS) != 0 &&
                        device->plugin->queue_elapsed != NULL;
    if (!is_collective && (!counts || trace->count == PENDING)) {
        const uint64_t value = event->value - queue->timeline.base;
        if (device->plugin->wait(queue->timeline.handle, value, UINT64_MAX) == HAL_OK) {
            mark_reached(trace, event->value, hal_clock_ns());
            write_reached_batches(queue, trace);
        }
        trace->count = 0;
    }
}

static void trace_after(const hal_event *event, hal_status status)
{
    const uint64_t now = hal_clock_ns();
    const bool failed = status != HAL_OK;
    switch (event->kind) {
    case HAL_EVENT_OPEN:
        hal_trace_slice(hal_trace_thread(), "device", failed ? "open failed" : "open",
                        event->begin_ns, now, "\"group\":%" PRIu32,
                        failed ? 0 : hal_trace_device_group(event->device));
        break;
    case HAL_EVENT_CLOSE:
        hal_trace_slice(hal_trace_thread(), "device", "close", event->begin_ns, now, "%s", "");
        pthread_mutex_lock(&lock);
        hal_map_take(&device_groups, hal_map_key(event->device));
        pthread_mutex_unlock(&lock);
        hal_trace_flush(true);
        break;
    case HAL_EVENT_ALLOCATE:
    case HAL_EVENT_FREE:
        hal_trace_slice(hal_trace_thread(), "memory",
                        failed                          ? "allocate failed"
                        : event->kind == HAL_EVENT_FREE ? "free"
                                                        : "allocate",
                        event->begin_ns, now, "\"bytes\":%" PRIu64, event->bytes);
        if (event->kind == HAL_EVENT_ALLOCATE && !failed) {
            trace_memory(event->device, event->bytes, now);
        }
        break;
    case HAL_EVENT_COMPILE:
        hal_trace_slice(hal_trace_thread(), failed ? "compile failed" : "compile",
                        event->kernel->names, event->begin_ns, now, "%s", "");
        if (!failed) {
            kernel_put(event->kernel);
        }
        break;
    case HAL_EVENT_SUBMIT:
        pthread_mutex_lock(&queue_lock);
        trace_submit(event, status, now);
        pthread_mutex_unlock(&queue_lock);
        break;
    case HAL_EVENT_RECEIVE: {
        pthread_mutex_lock(&queue_lock);
        const hal_queue_trace *trace = queue_trace(event->queue);
        if (trace) {
            hal_trace_slice(trace->line, "collective", event->name, event->begin_ns, now,
                            "\"step\":%" PRIu64 ",\"backend\":\"%s\"", event->value,
                            event->backend);
        }
        pthread_mutex_unlock(&queue_lock);
        break;
    }
    case HAL_EVENT_DESTROY:
        break;
    case HAL_EVENT_WAIT:
        if (event->timeout_ns > 0) {
            hal_trace_slice(hal_trace_thread(), "wait", failed ? "wait failed" : "wait",
                            event->begin_ns, now, "\"point\":%" PRIu64, event->value);
        }
        if (!failed) {
            pthread_mutex_lock(&queue_lock);
            hal_queue_trace *trace = queue_trace(event->queue);
            mark_reached(trace, event->value, now);
            if (trace && trace->thread == hal_trace_thread().number) {
                write_reached_batches(event->queue, trace);
            }
            pthread_mutex_unlock(&queue_lock);
            hal_trace_flush(false);
        }
    }
}

const hal_layer hal_layer_trace = {
    .bit = HAL_LAYER_TRACE,
    .hooks = HAL_HOOK_EVENTS | HAL_HOOK_BATCHES,
    .begin = trace_begin,
    .after = trace_after,
};

void hal_trace_batch_started(hal_queue *queue)
{
    pthread_mutex_lock(&queue_lock);
    hal_queue_trace *trace = queue_trace(queue);
    if (trace) {
        trace->thread = hal_trace_thread().number;
        trace->recording_ns = hal_clock_ns();
        trace->batch_group = trace->group;
    }
    pthread_mutex_unlock(&queue_lock);
}

void hal_trace_set_group(hal_queue *queue, uint32_t number)
{
    pthread_mutex_lock(&queue_lock);
    hal_queue_trace *trace = queue_trace(queue);
    if (trace) {
        trace->group = number;
    }
    pthread_mutex_unlock(&queue_lock);
}

void hal_trace_queue_closing(hal_queue *queue)
{
    pthread_mutex_lock(&queue_lock);
    write_reached_batches(queue, queue_trace(queue));
    pthread_mutex_unlock(&queue_lock);
}
