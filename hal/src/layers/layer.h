/* Layers observe calls into plugins, and may answer in place of a plugin. Variables enable them:
 *
 *     HAL_LAYERS=validate,fault   a list of layers; fault needs HAL_FAULT, see layers/fault.c
 *     HAL_TRACE=FILE              the trace layer, see layers/trace.c
 *     HAL_PROFILE=FILE            the same as a page, see layers/profile.c
 *     HAL_DUMP=batch or calls     the dump layer, see layers/dump.c
 *     HAL_SANITIZE=LIST           the sanitize layer, see layers/sanitize.h
 *
 * The variables are read when the process first opens a device; a set-uid process ignores them.
 * layer.c then installs its table of hooks in core (core/hooks.h): every call into a plugin is an
 * event that layers see before, where they may refuse it, and after, with the answer. */
#ifndef HAL_SRC_LAYERS_LAYER_H
#define HAL_SRC_LAYERS_LAYER_H

#include "core/hooks.h"

enum { /* hal_layer.bit */
       HAL_LAYER_TRACE = 1,
       HAL_LAYER_FAULT = 2,
       HAL_LAYER_VALIDATE = 4, /* sees calls of programs, not events; see validate.h */
       HAL_LAYER_DUMP = 8,
       HAL_LAYER_PROFILE = 16, /* sees calls of programs; its events go to the trace's files */
       HAL_LAYER_SANITIZE = 32
};

typedef struct hal_layer {
    uint32_t bit;   /* HAL_LAYER_* */
    uint32_t hooks; /* HAL_HOOK_* that it needs */
    /* Called once, when the layer is enabled. Errors: its variable is invalid. */
    hal_status (*begin)(void);
    /* After an error the plugin is not called: the status is its answer. May be null. */
    hal_status (*before)(hal_event *event);
    /* `status` is the answer of the plugin or of a layer. May be null. */
    void (*after)(const hal_event *event, hal_status status);
} hal_layer;

extern const hal_layer hal_layer_dump, hal_layer_trace, hal_layer_fault, hal_layer_validate,
    hal_layer_profile, hal_layer_sanitize;

/* ---- Calls of libraries for the dump layer, see hal/profile.h ---- */

/* Whether HAL_DUMP has the word calls; then a batch has one command. */
bool hal_dump_has_calls(void);
bool hal_dump_is_unfused(void); /* the word unfused */
void hal_dump_group_set(hal_queue *queue, const char *calls);
void hal_dump_value_note(hal_queue *queue, const hal_range *range, hal_type type, uint64_t number,
                         const char *call);

/* Reads the variables, begins their layers and installs the hooks. Does nothing after the first
 * success; reads the variables again after an error. Threads: any.
 * Errors: INVALID_ARGUMENT for an invalid value, IO for a file that cannot be written. */
hal_status hal_layers_start(void);

/* ---- Hooks of the trace layer, see core/hooks.h ---- */

void hal_trace_batch_started(hal_queue *queue);
void hal_trace_queue_closing(hal_queue *queue);

/* Sets the number of operations of a dispatch of the kernel; `unit` is a key of the page's peaks
 * (profile.c), and stays valid. */
void hal_trace_kernel_operations(const hal_kernel *kernel, double operations, const char *unit);

/* The same of dispatches over a grid with these scalars. */
void hal_trace_dispatch_operations(const hal_kernel *kernel, const uint32_t grid[3],
                                   const void *scalars, uint32_t scalar_bytes, double operations,
                                   const char *unit);

/* The group of lines of a device. Threads: any. */
uint32_t hal_trace_device_group(hal_device *device);

/* The following commands of the queue are of group `number`; 0: of none. */
void hal_trace_set_group(hal_queue *queue, uint32_t number);

/* ---- Hooks of the sanitize layer, see core/hooks.h ---- */

void hal_sanitize_buffer_created(const hal_buffer *buffer);

/* Whether the layer is on; the words of the calls that record on the queue from now on, null: of
 * none. */
bool hal_sanitize_is_on(void);
void hal_sanitize_group_set(hal_queue *queue, const char *calls);
void hal_sanitize_command_recorded(const hal_queue *queue, const hal_action *action);
void hal_sanitize_buffer_exported(const hal_buffer *buffer);
/* The host has waited for work of the queue, or for all of it before the queue is closed. */
void hal_sanitize_waited(const hal_queue *queue);
void hal_sanitize_host_access(const hal_range *range, uint32_t access);

/* ---- Hooks of the profile, see core/hooks.h ---- */

void hal_profile_object_created(hal_object_kind kind, const void *object);
void hal_profile_object_retired(hal_object_kind kind, const void *object);
void hal_profile_gemm_created(const hal_kernel *kernel, const hal_gemm_description *description);
void hal_profile_buffer_labelled(const hal_buffer *buffer, const char *label);
void hal_profile_call_begun(const char *call);
void hal_profile_call_ended(void);
void hal_profile_host_access(const hal_range *range);
void hal_profile_command_recorded(const hal_action *action);

#endif
