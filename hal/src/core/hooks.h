/* The one table through which core calls the layers above it: validate, trace, fault, dump and
 * sanitize.
 *
 * `hal_hooks_mask` says which kinds of hooks somebody listens to. Each call site tests it first,
 * so with no layer on a hook costs one relaxed load. A new hook is a field of hal_hooks, an inline
 * function below that tests the mask, and an entry in the table of layers/layer.c. */
#ifndef HAL_SRC_CORE_HOOKS_H
#define HAL_SRC_CORE_HOOKS_H

#include "plugin/host.h"

#include <hal/queue.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Complete in batch.h, queue.h and kernel.h, which the sources that use hooks include. */
typedef struct hal_recording hal_recording;
typedef struct hal_action hal_action;
struct hal_kernel_source;

enum {                       /* hal_hooks_mask: bits for kinds of hooks */
       HAL_HOOK_EVENTS = 1,  /* calls into plugins: event_before, event_after */
       HAL_HOOK_CALLS = 2,   /* calls of programs: object_... to cycle_found, and queue_closing */
       HAL_HOOK_BATCHES = 4, /* batch_started and queue_closing; a batch has one command only */
};

/* Objects that programs have. */
typedef enum hal_object_kind {
    HAL_OBJECT_DEVICE,
    HAL_OBJECT_BUFFER,
    HAL_OBJECT_KERNEL,
    HAL_OBJECT_QUEUE,
    HAL_OBJECT_GRAPH,
    HAL_OBJECT_KIND_COUNT
} hal_object_kind;

/* The call into the plugin, and the fields of its event. */
typedef enum hal_event_kind {
    HAL_EVENT_OPEN,     /* device */
    HAL_EVENT_CLOSE,    /* device; cannot fail */
    HAL_EVENT_ALLOCATE, /* device, bytes, is_unmapped; after success memory */
    HAL_EVENT_FREE,     /* device, bytes, memory; cannot fail */
    HAL_EVENT_COMPILE,  /* device, source, kernel; after success the kernel has its handle */
    HAL_EVENT_DESTROY,  /* device, kernel, which has a handle; cannot fail */
    HAL_EVENT_SUBMIT,   /* queue, recording, value */
    HAL_EVENT_WAIT,     /* queue, value, timeout_ns */
    HAL_EVENT_RECEIVE   /* queue, value, name: no call; a rank waited from begin_ns on for step
                         * `value` of the collective `name`; event_after only */
} hal_event_kind;

typedef struct hal_event {
    hal_event_kind kind;
    hal_device *device;
    hal_queue *queue;
    hal_kernel *kernel;
    const struct hal_kernel_source *source;
    hal_plugin_memory *memory;
    const hal_recording *recording;
    /* What the plugin gets in place of `source` and `recording`; set by event_before, which keeps
     * it until event_after. Null: those. */
    const struct hal_kernel_source *given_source;
    const hal_recording *given_recording;
    uint64_t bytes;
    uint64_t
        more_bytes; /* of ALLOCATE: that the plugin allocates after `bytes`; set by event_before */
    bool is_unmapped; /* of ALLOCATE: memory of hal that the host does not map */
    uint64_t value;
    uint64_t timeout_ns;
    uint64_t begin_ns;   /* hal_clock_ns before the plugin is called; set by event_before */
    const char *name;    /* of a collective */
    const char *backend; /* that moves its data */
} hal_event;

typedef struct hal_hooks {
    /* Errors: the plugin is not called; the status takes the place of its answer. */
    hal_status (*event_before)(hal_event *event);
    void (*event_after)(const hal_event *event, hal_status status);

    /* The program has one more reference to an object, which may be new. */
    void (*object_created)(hal_object_kind kind, const void *object, const hal_device *device,
                           const char *name, uint64_t bytes);
    /* Errors: INVALID_STATE for a released object, INVALID_ARGUMENT for an address that is not an
     * object of the kind. Null is accepted. The call must not touch the object then. */
    hal_status (*object_use)(hal_object_kind kind, const void *object, const char *call);
    hal_status (*object_retain)(hal_object_kind kind, const void *object, const char *call);
    hal_status (*object_release)(hal_object_kind kind, const void *object, const char *call);
    /* A thread's call on a queue or graph begins and ends. Errors: as object_use; INVALID_STATE
     * while another thread is inside a call on it. */
    hal_status (*object_enter)(hal_object_kind kind, const void *object, const char *call);
    void (*object_leave)(hal_object_kind kind, const void *object);
    /* Takes the description of a destroyed object of `bytes`, and disposes of it later. */
    void (*object_retire)(hal_object_kind kind, void *object, uint64_t bytes,
                          void (*dispose)(void *));

    void (*buffer_labelled)(const hal_buffer *buffer, const char *label);
    void (*buffer_mapped)(const hal_buffer *buffer);
    void (*buffer_unmapped)(const hal_buffer *buffer);
    /* From now on others may access the memory without a call of hal. */
    void (*buffer_exported)(const hal_buffer *buffer);
    void (*gemm_created)(const hal_kernel *kernel, const hal_gemm_description *description,
                         uint64_t workspace_bytes);
    void (*attention_created)(const hal_kernel *kernel,
                              const hal_attention_description *description);
    /* Errors: as object_use; INVALID_ARGUMENT for a binding that is too small. */
    hal_status (*dispatch)(const hal_kernel *kernel, const hal_range *bindings,
                           uint32_t binding_count);
    void (*command_recorded)(const hal_queue *queue, const hal_action *action);
    /* The host itself reads or writes a range in the queue's order. */
    void (*host_access)(const hal_queue *queue, const hal_range *range, uint32_t access);
    /* A batch was submitted as `value`, or dropped. */
    void (*batch_flushed)(const hal_queue *queue, uint64_t value, hal_status status);
    /* The queue, or the host where queue is null, waits for a point. */
    void (*point_waited)(const hal_queue *queue, hal_point point);

    /* Writes what a queue is, and what its first deferred batch waits for. Under the lock of
     * deferred.c, as the next one. */
    void (*queue_describe)(const hal_queue *queue, char *text, size_t bytes);
    /* Each of the queues that `text` names waits for the next one, the last one for the first;
     * unless `is_certain`, only if no other thread records a step for one that waits. */
    void (*cycle_found)(const char *text, bool is_certain);

    /* The first command of a batch is about to be recorded. Threads: the queue's. */
    void (*batch_started)(hal_queue *queue);
    /* The queue's work is complete and its plugin's queue is about to be destroyed. */
    void (*queue_closing)(hal_queue *queue);
} hal_hooks;

/* HAL_HOOK_*; 0 until hooks are installed. */
extern _Atomic uint32_t hal_hooks_mask;

/* Installs the table, which is valid for the life of the process, for the kinds of hooks in
 * `mask`; at most once. Threads: under the registry's lock, before a device is open. */
void hal_hooks_install(const hal_hooks *hooks, uint32_t mask);

/* The installed table. Only after hal_hooks_on has returned 1. */
const hal_hooks *hal_hooks_table(void);

static inline bool hal_hooks_on(uint32_t kinds)
{
    return (atomic_load_explicit(&hal_hooks_mask, memory_order_relaxed) & kinds) != 0;
}

/* ---- Calls into plugins ---- */

/* Comes right before the plugin is called; an error takes the place of the call. */
static inline hal_status hal_event_begin(hal_event *event)
{
    hal_host_clear_error();
    return hal_hooks_on(HAL_HOOK_EVENTS) ? hal_hooks_table()->event_before(event) : HAL_OK;
}

static inline void hal_event_end(const hal_event *event, hal_status status)
{
    if (hal_hooks_on(HAL_HOOK_EVENTS)) {
        hal_hooks_table()->event_after(event, status);
    }
}

/* ---- Calls of programs: the fields of hal_hooks, where they are on ---- */

static inline void hal_hook_created(hal_object_kind kind, const void *object,
                                    const hal_device *device, const char *name, uint64_t bytes)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->object_created(kind, object, device, name, bytes);
    }
}

static inline hal_status hal_hook_use(hal_object_kind kind, const void *object, const char *call)
{
    return hal_hooks_on(HAL_HOOK_CALLS) ? hal_hooks_table()->object_use(kind, object, call)
                                        : HAL_OK;
}

static inline hal_status hal_hook_retain(hal_object_kind kind, const void *object, const char *call)
{
    return hal_hooks_on(HAL_HOOK_CALLS) ? hal_hooks_table()->object_retain(kind, object, call)
                                        : HAL_OK;
}

static inline hal_status hal_hook_release(hal_object_kind kind, const void *object,
                                          const char *call)
{
    return hal_hooks_on(HAL_HOOK_CALLS) ? hal_hooks_table()->object_release(kind, object, call)
                                        : HAL_OK;
}

static inline hal_status hal_hook_enter(hal_object_kind kind, const void *object, const char *call)
{
    return hal_hooks_on(HAL_HOOK_CALLS) ? hal_hooks_table()->object_enter(kind, object, call)
                                        : HAL_OK;
}

/* Returns `status`. */
static inline hal_status hal_hook_leave(hal_object_kind kind, const void *object, hal_status status)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->object_leave(kind, object);
    }
    return status;
}

static inline void hal_hook_retire(hal_object_kind kind, void *object, uint64_t bytes,
                                   void (*dispose)(void *))
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->object_retire(kind, object, bytes, dispose);
    } else {
        dispose(object);
    }
}

static inline void hal_hook_labelled(const hal_buffer *buffer, const char *label)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->buffer_labelled(buffer, label);
    }
}

static inline void hal_hook_mapped(const hal_buffer *buffer)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->buffer_mapped(buffer);
    }
}

static inline void hal_hook_unmapped(const hal_buffer *buffer)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->buffer_unmapped(buffer);
    }
}

static inline void hal_hook_exported(const hal_buffer *buffer)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->buffer_exported(buffer);
    }
}

static inline void hal_hook_gemm_created(const hal_kernel *kernel,
                                         const hal_gemm_description *description,
                                         uint64_t workspace_bytes)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->gemm_created(kernel, description, workspace_bytes);
    }
}

static inline void hal_hook_attention_created(const hal_kernel *kernel,
                                              const hal_attention_description *description)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->attention_created(kernel, description);
    }
}

static inline void hal_hook_recorded(const hal_queue *queue, const hal_action *action)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->command_recorded(queue, action);
    }
}

static inline void hal_hook_host_access(const hal_queue *queue, const hal_range *range,
                                        uint32_t access)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->host_access(queue, range, access);
    }
}

static inline void hal_hook_flushed(const hal_queue *queue, uint64_t value, hal_status status)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->batch_flushed(queue, value, status);
    }
}

static inline void hal_hook_waited(const hal_queue *queue, hal_point point)
{
    if (hal_hooks_on(HAL_HOOK_CALLS)) {
        hal_hooks_table()->point_waited(queue, point);
    }
}

#endif
