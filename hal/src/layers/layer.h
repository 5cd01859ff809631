/* Layers: what watches hal's work, and may answer in a plugin's place, when the environment asks:
 *
 *     HAL_LAYERS=validate,fault   a list of layers; fault needs HAL_FAULT, see layers/fault.c
 *     HAL_TRACE=FILE              the trace layer, see layers/trace.c
 *     HAL_DUMP=batch              what queues run is written to files, see layers/dump.c
 *
 * The variables are read when the process first opens a device; a set-uid process ignores them.
 * Every call into a plugin that matters is an event: the layers see it before, where they may
 * refuse it with a status of their own, and after, with the answer. With none on it costs one
 * load. */
#ifndef HAL_SRC_LAYERS_LAYER_H
#define HAL_SRC_LAYERS_LAYER_H

#include "plugin/host.h"
#include "core/queue.h"

#include <hal/plugin.h>
#include <stdatomic.h>

enum { /* layers, outermost first: a call passes them in this order on its way to the plugin */
    HAL_LAYER_DUMP = 8, /* has what the others refuse in its files, too */
    HAL_LAYER_TRACE = 1,
    HAL_LAYER_FAULT = 2,
    HAL_LAYER_VALIDATE = 4 /* sees programs' calls rather than events, see validate.h */
};

enum { /* hal_event.kind: what the plugin is asked for */
    HAL_EVENT_OPEN,     /* device */
    HAL_EVENT_CLOSE,    /* device; cannot fail */
    HAL_EVENT_ALLOCATE, /* device, bytes, and memory once it is there */
    HAL_EVENT_FREE,     /* device, bytes, memory; cannot fail */
    HAL_EVENT_COMPILE,  /* device, source, kernel, whose handle is there once it is made */
    HAL_EVENT_SUBMIT,   /* queue, recording, value */
    HAL_EVENT_WAIT,     /* queue, value, timeout_ns */
    HAL_EVENT_COUNT
};

typedef struct hal_event {
    uint32_t kind;
    hal_device *device;
    hal_queue *queue;
    hal_kernel *kernel;
    const struct hal_kernel_source *source;
    hal_plugin_memory *memory;
    const hal_recording *recording;
    uint64_t bytes;
    uint64_t value;
    uint64_t timeout_ns;
    uint64_t begin_ns; /* filled in: hal_clock_ns before the plugin is asked */
} hal_event;

typedef struct hal_layer {
    uint32_t bit; /* HAL_LAYER_* */
    /* Once, when the layer is switched on. Errors: its variable cannot be followed. */
    hal_status (*begin)(void);
    /* Errors: the plugin is not asked, and this is taken for its answer. May be null. */
    hal_status (*before)(const hal_event *event);
    /* `status` is the plugin's answer, or a layer's. May be null. */
    void (*after)(const hal_event *event, hal_status status);
} hal_layer;

extern const hal_layer hal_layer_dump, hal_layer_trace, hal_layer_fault, hal_layer_validate;

/* The layers that are on; never changes once a device is open. */
extern _Atomic uint32_t hal_layers;

static inline int hal_layers_on(uint32_t bits)
{
    return (atomic_load_explicit(&hal_layers, memory_order_relaxed) & bits) != 0;
}

/* ---- What the trace layer needs beside events, see layers/trace.c ---- */

typedef struct hal_queue_trace hal_queue_trace;

/* The queue's first command since the last batch is about to be recorded. Threads: the queue's. */
void hal_trace_recording(hal_queue *queue);

/* All of the queue's work is done, and its plugin's queue is about to go. Threads: the queue's. */
void hal_trace_closing(hal_queue *queue);

/* Reads the variables, the first time. Threads: one at a time, under the registry's lock.
 * Errors: INVALID_ARGUMENT for what cannot be read, IO for a file that cannot be written; the same
 * again at each call. */
hal_status hal_layers_begin(void);

/* The layers' part before and after a plugin is asked: use hal_event_begin and hal_event_end. */
hal_status hal_layers_before(hal_event *event);
void hal_layers_after(const hal_event *event, hal_status status);

/* Comes right before the plugin is asked. */
static inline hal_status hal_event_begin(hal_event *event)
{
    hal_host_clear_error();
    return hal_layers_on(~0u) ? hal_layers_before(event) : HAL_OK;
}

/* Gives `status` back. */
static inline hal_status hal_event_end(const hal_event *event, hal_status status)
{
    if (hal_layers_on(~0u)) {
        hal_layers_after(event, status);
    }
    return status;
}

#endif
