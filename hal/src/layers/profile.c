/* The profile: HAL_PROFILE=FILE. The trace layer writes its events into a page (profile.html, whose
 * script draws them); this file adds what only the page shows: transfers as the program calls them,
 * buffers with their labels, and groups of calls that became kernels (hal/profile.h).
 *
 * Called by layer.c and by programs. */
#include "base/clock.h"
#include "base/number.h"
#include "base/platform.h"
#include "core/buffer.h"
#include "core/queue.h"
#include "core/record.h"
#include "layer.h"
#include "peaks.h"
#include "trace_file.h"

#include <hal/profile.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The call that a thread is in. Calls nest where hal itself makes one. */
typedef struct profile_call {
    const char *name;
    uint32_t depth;
    uint64_t begin_ns;
    uint64_t host_bytes, copy_bytes; /* by the host, and by copies on the queue */
} profile_call;

static _Thread_local profile_call call;
static _Atomic bool is_on;
static _Atomic uint32_t last_group;

static hal_status profile_begin(void)
{
    atomic_store(&is_on, true);
    return HAL_OK;
}

/* What the page compares kernels with. */
static void profile_after(const hal_event *event, hal_status status)
{
    hal_device *device = event->device;
    hal_device_peaks peaks;
    char rates[288], name[160];
    if (event->kind != HAL_EVENT_OPEN || status != HAL_OK || !hal_peaks_find(device, &peaks)) {
        return;
    }
    snprintf(name, sizeof name, "%s:%u", device->plugin->name, device->index);
    snprintf(rates, sizeof rates,
             "multiply-adds of f32 %s, f64 %s; matrix units of f16 %s, bf16 %s, f32 %s, "
             "f64 %s TFLOP/s; a launch %s us, a wait %s us",
             HAL_NUMBER(peaks.add_f32 / 1e12, 2), HAL_NUMBER(peaks.add_f64 / 1e12, 2),
             HAL_NUMBER(peaks.matrix_f16 / 1e12, 2), HAL_NUMBER(peaks.matrix_bf16 / 1e12, 2),
             HAL_NUMBER(peaks.matrix_f32 / 1e12, 2), HAL_NUMBER(peaks.matrix_f64 / 1e12, 2),
             HAL_NUMBER(peaks.launch_ns / 1e3, 2), HAL_NUMBER(peaks.wait_ns / 1e3, 2));
    hal_trace_instant(hal_trace_thread(), "peaks", name, rates,
                      "\"device\":%" PRIu32 ",\"copy\":%s,\"add f32\":%s,\"add f64\":%s"
                      ",\"matrix f16\":%s,\"matrix bf16\":%s,\"matrix f32\":%s"
                      ",\"matrix f64\":%s",
                      hal_trace_device_group(device), HAL_NUMBER(peaks.copy / 1e9, 1),
                      HAL_NUMBER(peaks.add_f32 / 1e9, 1), HAL_NUMBER(peaks.add_f64 / 1e9, 1),
                      HAL_NUMBER(peaks.matrix_f16 / 1e9, 1), HAL_NUMBER(peaks.matrix_bf16 / 1e9, 1),
                      HAL_NUMBER(peaks.matrix_f32 / 1e9, 1), HAL_NUMBER(peaks.matrix_f64 / 1e9, 1));
}

const hal_layer hal_layer_profile = {
    .bit = HAL_LAYER_PROFILE,
    .hooks = HAL_HOOK_CALLS | HAL_HOOK_EVENTS,
    .begin = profile_begin,
    .after = profile_after,
};

/* Calls that move data between the host and a device, or wait: the others take no time. */
static bool call_is_shown(const char *name)
{
    static const char *const shown[] = {"hal_queue_write", "hal_queue_read", "hal_queue_transfer"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (strcmp(name, shown[i]) == 0) {
            return true;
        }
    }
    return false;
}

void hal_profile_call_begun(const char *name)
{
    if (call.depth++ == 0) {
        call.name = name;
        call.host_bytes = call.copy_bytes = 0;
        call.begin_ns = hal_clock_ns();
    }
}

void hal_profile_call_ended(void)
{
    if (--call.depth == 0 && call_is_shown(call.name)) {
        hal_trace_slice(hal_trace_thread(), "transfer", call.name + strlen("hal_queue_"),
                        call.begin_ns, hal_clock_ns(), "\"bytes\":%" PRIu64,
                        call.host_bytes > call.copy_bytes ? call.host_bytes : call.copy_bytes);
    }
}

/* A transfer is done by the host, by copies, or by both one after the other (staging memory). */
void hal_profile_host_access(const hal_range *range)
{
    call.host_bytes += range->length;
}

void hal_profile_command_recorded(const hal_action *action)
{
    call.copy_bytes += action->kind == HAL_COMMAND_COPY ? action->ranges[0].length : 0;
}

static void buffer_event(const hal_buffer *buffer, const char *what, const char *label)
{
    hal_trace_instant(hal_trace_thread(), "buffer", what, label,
                      "\"buffer\":\"%" PRIxPTR "\",\"bytes\":%" PRIu64, (uintptr_t)buffer,
                      buffer->bytes);
}

void hal_profile_object_created(hal_object_kind kind, const void *object)
{
    if (kind == HAL_OBJECT_BUFFER) {
        buffer_event(object, "create", "");
    }
}

void hal_profile_object_retired(hal_object_kind kind, const void *object)
{
    if (kind == HAL_OBJECT_BUFFER) {
        buffer_event(object, "release", "");
    }
}

/* The peak that products are compared with. Types without one of their own count as BF16 on matrix
 * units, as F32 without them. */
static const char *unit_of(hal_type type, bool on_matrix_units)
{
    if (!on_matrix_units) {
        return type == HAL_TYPE_F64 ? "add f64" : "add f32";
    }
    return type == HAL_TYPE_F64   ? "matrix f64"
           : type == HAL_TYPE_F32 ? "matrix f32"
           : type == HAL_TYPE_F16 ? "matrix f16"
                                  : "matrix bf16";
}

void hal_profile_gemm_created(const hal_kernel *kernel, const hal_gemm_description *description)
{
    const hal_gemm_description *d = description;
    const bool is_strict =
        d->type_a == HAL_TYPE_F64 || (d->type_a == HAL_TYPE_F32 && d->precision == HAL_GEMM_STRICT);
    const double count = (double)d->m * (double)d->n * (double)d->k;
    const uint32_t products = d->type_offsets == HAL_TYPE_NONE && d->batch > 1 ? d->batch : 1;
    hal_trace_kernel_operations(kernel, 2 * count * products, unit_of(d->type_a, !is_strict));
}

void hal_profile_buffer_labelled(const hal_buffer *buffer, const char *label)
{
    buffer_event(buffer, "label", label);
}

int hal_profile_is_on(void)
{
    return atomic_load_explicit(&is_on, memory_order_relaxed) || hal_sanitize_is_on() ||
           hal_dump_has_calls();
}

int hal_profile_is_unfused(void)
{
    return hal_dump_is_unfused();
}

void hal_profile_group_begin(hal_queue *queue, const char *calls, const char *end)
{
    if (queue && calls && hal_sanitize_is_on()) {
        hal_sanitize_group_set(queue, calls);
    }
    if (queue && calls && hal_dump_has_calls()) {
        hal_dump_group_set(queue, calls);
    }
    if (atomic_load_explicit(&is_on, memory_order_relaxed) && queue && calls && end) {
        const uint32_t number = atomic_fetch_add(&last_group, 1) + 1;
        hal_trace_set_group(queue, number);
        char copy[1001]; /* bounded: a line of the file */
        snprintf(copy, sizeof copy, "%s", calls);
        hal_trace_instant(hal_trace_thread(), "group", copy, end, "\"group\":%" PRIu32, number);
    }
}

void hal_profile_value(hal_queue *queue, const hal_range *range, hal_type type, uint64_t number,
                       const char *name)
{
    if (queue && range && range->buffer && name && hal_dump_has_calls()) {
        hal_dump_value_note(queue, range, type, number, name);
    }
}

void hal_profile_operations(const hal_kernel *kernel, const uint32_t grid[3], const void *scalars,
                            uint32_t scalar_bytes, double operations, hal_type type,
                            int on_matrix_units)
{
    if (atomic_load_explicit(&is_on, memory_order_relaxed) && kernel && grid &&
        (scalars || scalar_bytes == 0)) {
        hal_trace_dispatch_operations(kernel, grid, scalars, scalar_bytes, operations,
                                      unit_of(type, on_matrix_units != 0));
    }
}

void hal_profile_group_end(hal_queue *queue)
{
    if (queue && hal_sanitize_is_on()) {
        hal_sanitize_group_set(queue, NULL);
    }
    if (atomic_load_explicit(&is_on, memory_order_relaxed) && queue) {
        hal_trace_set_group(queue, 0);
    }
}
