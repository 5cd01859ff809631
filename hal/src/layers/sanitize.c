/* The sanitize layer's events, see sanitize.h. */
#include "sanitize.h"

#include "core/buffer.h"
#include "core/device.h"
#include "core/queue.h"
#include "core/record.h"
#include "ir/legalise.h"
#include "layer.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/platform.h"
#include "base/status.h"

#include <hal/ir_build.h>

#include <pthread.h>
#include <stdlib.h>

/* Guards the whole layer. Its holder waits for devices, never for other threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LAYER)

static hal_map device_of; /* by hal_device */
static uint32_t checks;   /* HAL_CHECK_*; constant after the variable is read */
static bool stops;        /* after a finding the next batch fails */

/* A kernel on its way to the plugin. */
typedef struct given_kernel {
    hal_kernel_source source; /* event.given_source */
    hal_ir_kernel *legal;
    hal_sanitize_kernel *kernel;
} given_kernel;

static hal_status sanitize_begin(void)
{
    static const struct {
        const char *word;
        uint32_t check;
    } words[] = {{"bounds", HAL_CHECK_BOUNDS},
                 {"init", HAL_CHECK_INIT},
                 {"race", HAL_CHECK_RACE},
                 {"math", HAL_CHECK_MATH},
                 {"nan", HAL_CHECK_NAN}};
    const char *variable = secure_getenv("HAL_SANITIZE");
    checks = 0;
    for (uint32_t i = 0; variable && i < sizeof words / sizeof *words; i++) {
        checks |= hal_list_has(variable, words[i].word) ? words[i].check : 0;
    }
    stops = variable && hal_list_has(variable, "stop");
    hal_log_show_errors();
    return HAL_OK;
}

/* The bindings of reports and shadows, and the words that note accesses to shared memory, are taken
 * from what programs have. */
static void device_opened(hal_device *device)
{
    hal_sanitize_device *made = calloc(1, sizeof *made);
    if (!made || !hal_map_put(&device_of, hal_map_key(device), made)) {
        free(made);
        hal_log(HAL_LOG_WARN, "sanitize: no host memory: %s is not checked", device->info.name);
        return;
    }
    made->device = device;
    made->info = device->info;
    const uint32_t races = (checks & HAL_CHECK_RACE) != 0, inits = (checks & HAL_CHECK_INIT) != 0;
    uint32_t *max_bindings = &device->info.max_bindings;
    made->has_shadows = (checks & HAL_CHECK_INIT) != 0;
    made->has_zones = (checks & HAL_CHECK_BOUNDS) != 0;
    made->waits = stops || races || inits;
    *max_bindings -= *max_bindings > 1 + races ? 1 + races : 0;
    *max_bindings /= *max_bindings >= 1 + inits ? 1 + inits : 1;
    device->info.shared_bytes /= 1 + races + inits;
    device->limited_by = "HAL_SANITIZE";
}

static void device_closing(const hal_device *device)
{
    hal_sanitize_device *closed = hal_map_take(&device_of, hal_map_key(device));
    if (closed) {
        hal_sanitize_flight_read(closed);
        for (hal_sanitize_kernel *kernel; (kernel = hal_sanitize_kernel_take_of(closed)) != NULL;) {
            hal_sanitize_log_totals(kernel);
            hal_sanitize_kernel_free(kernel);
        }
        hal_sanitize_shadows_free(closed);
        hal_sanitize_calls_forget(closed, NULL);
        hal_sanitize_reports_free(closed);
        free(closed);
    }
}

static void memory_allocated(const hal_event *event)
{
    hal_sanitize_device *device = hal_map_get(&device_of, hal_map_key(event->device));
    if (device && (device->has_shadows || device->has_zones)) {
        hal_sanitize_memory *memory = hal_sanitize_memory_made(device, event->memory, event->bytes);
        if (memory && device->has_zones) {
            hal_sanitize_zone_begin(memory);
        }
    }
}

static void memory_freeing(const hal_event *event)
{
    hal_sanitize_memory *memory = hal_sanitize_memory_find(event->memory);
    if (memory) {
        hal_sanitize_flight_read(memory->device);
        hal_sanitize_zone_end(memory);
        hal_sanitize_memory_freeing(event->memory);
    }
}

/* A kernel with checks, and its reports. Errors: it cannot have them; the message says why. */
static hal_status kernel_instrument(hal_sanitize_device *device, const hal_ir_kernel *built,
                                    given_kernel *given)
{
    hal_sanitize_kernel *kernel = given->kernel;
    kernel->device = device;
    HAL_TRY(hal_ir_instrument(built, checks, &device->info, &kernel->checked));
    if (!kernel->checked.kernel) {
        return HAL_OK;
    }
    const uint32_t sites = kernel->checked.site_count;
    kernel->scalar_bytes = kernel->checked.kernel->scalar_bytes;
    kernel->totals = calloc((size_t)sites + 1, sizeof *kernel->totals);
    HAL_TRY(kernel->totals ? HAL_OK : hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory"));
    HAL_TRY(hal_ir_kernel_copy(built, &kernel->built));
    hal_ir_hash(built, kernel->hash);
    HAL_TRY(hal_ir_legalise(kernel->checked.kernel, &device->info, &given->legal));
    return hal_sanitize_reports_take(device, sizeof(hal_ir_report) * (sites + 1), &kernel->reports);
}

/* Native code has no checks, and a plugin's own products and attention are refused for the portable
 * ones. */
static hal_status kernel_compiling(hal_event *event)
{
    const hal_kernel_source *source = event->source;
    hal_sanitize_device *device = hal_map_get(&device_of, hal_map_key(event->device));
    if (hal_kernel_source_is_described(source)) {
        return hal_host_services()->fail(hal_host_services(), HAL_ERROR_UNSUPPORTED,
                                         "HAL_SANITIZE: the plugin's own kernels have no checks");
    }
    if (!device || source->code) {
        return HAL_OK;
    }
    given_kernel *given = calloc(1, sizeof *given);
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (given && (given->kernel = calloc(1, sizeof *given->kernel)) != NULL) {
        status = kernel_instrument(device, source->built, given);
    } else {
        hal_fail(status, "no host memory");
    }
    if (status != HAL_OK) {
        hal_log(HAL_LOG_WARN, "sanitize: kernel %s is not checked: %s", event->kernel->names,
                hal_status_message());
    }
    if (status == HAL_OK && given->kernel->checked.unchecked > 0) {
        hal_log(HAL_LOG_WARN, "sanitize: kernel %s: %u memories are not checked: no room",
                event->kernel->names, given->kernel->checked.unchecked);
    }
    if (status == HAL_OK && given->legal) {
        given->source = (hal_kernel_source){.ir = given->legal, .built = source->built};
        event->given_source = &given->source;
        return HAL_OK;
    }
    if (given) {
        hal_sanitize_kernel_free(given->kernel);
        hal_ir_kernel_destroy(given->legal);
    }
    free(given);
    return HAL_OK;
}

/* Ends a kernel with checks; of a handle that has none nothing is done. */
static void kernel_destroying(const hal_plugin_kernel *handle)
{
    hal_sanitize_kernel *kernel = hal_sanitize_kernel_find(handle);
    if (kernel) {
        hal_sanitize_flight_read(kernel->device);
        hal_sanitize_kernel_take(handle);
        hal_sanitize_log_totals(kernel);
        hal_sanitize_reports_give(kernel->device, &kernel->reports);
        hal_sanitize_kernel_free(kernel);
    }
}

static void kernel_compiled(const hal_event *event, hal_status status)
{
    given_kernel *given = (given_kernel *)event->given_source;
    if (status == HAL_OK) {
        if (given && hal_sanitize_kernel_put(event->kernel->handle, given->kernel)) {
            given->kernel = NULL;
        }
    }
    if (given) {
        hal_sanitize_kernel_free(given->kernel);
        hal_ir_kernel_destroy(given->legal);
        free(given);
    }
}

static hal_status batch_submitting(hal_event *event)
{
    hal_recording *copy = NULL;
    if (stops && hal_sanitize_first_finding()[0]) {
        return hal_host_services()->fail(hal_host_services(), HAL_ERROR_INVALID_STATE,
                                         hal_sanitize_first_finding());
    }
    hal_sanitize_device *device = hal_map_get(&device_of, hal_map_key(event->device));
    if (!device) {
        return HAL_OK;
    }
    uint32_t first;
    HAL_TRY(hal_sanitize_copy_batch(event, device, &copy, &first));
    if (copy && !device->waits) {
        if (device->flight_count == HAL_SANITIZE_FLIGHT) {
            hal_sanitize_flight_read(device);
        }
        if (device->flight_count < HAL_SANITIZE_FLIGHT) { /* else other threads submit them all */
            hal_sanitize_flight_add(device, event, copy, first);
        }
    }
    event->given_recording = copy;
    return HAL_OK;
}

/* The host waits for the batch, and reads its reports. */
static void batch_end(const hal_event *event, hal_sanitize_device *device)
{
    const hal_timeline *timeline = &event->queue->timeline;
    const hal_sanitize_batch batch = {.queue = event->queue,
                                      .value = event->value,
                                      .recording = (hal_recording *)event->recording,
                                      .given = event->given_recording};
    if (event->device->plugin->wait(timeline->handle, event->value - timeline->base, UINT64_MAX) !=
        HAL_OK) {
        hal_sanitize_shadows_give_up(device);
        return;
    }
    hal_sanitize_reports_read(device, &batch, 1);
    if (device->has_zones) {
        hal_sanitize_zones_read(&batch, 1);
    }
}

static void batch_submitted(const hal_event *event, hal_status status)
{
    hal_recording *copy = (hal_recording *)event->given_recording;
    hal_sanitize_device *device = hal_map_get(&device_of, hal_map_key(event->device));
    if (!device || (copy && hal_sanitize_flight_begin(device, copy, status))) {
        return;
    }
    if (copy && status == HAL_OK) {
        batch_end(event, device);
    } else if (copy) {
        hal_sanitize_shadows_give_up(device);
    }
    hal_sanitize_calls_forget(device, event->recording);
    if (copy) {
        hal_sanitize_users_trim(event->queue);
        hal_recording_destroy(copy);
    }
}

static void flight_read_of(const hal_device *of)
{
    hal_sanitize_device *device = hal_map_get(&device_of, hal_map_key(of));
    if (device) {
        hal_sanitize_flight_read(device);
    }
}

/* ---- Calls of programs that change what was written ---- */

static hal_sanitize_memory *memory_of_buffer(const hal_buffer *buffer)
{
    const hal_memory *memory = atomic_load(&buffer->memory);
    return memory ? hal_sanitize_memory_find(memory->handle) : NULL;
}

void hal_sanitize_buffer_created(const hal_buffer *buffer)
{
    pthread_mutex_lock(&lock);
    hal_sanitize_memory *memory = memory_of_buffer(buffer);
    if (memory) {
        memory->is_new = true;
    }
    pthread_mutex_unlock(&lock);
}

void hal_sanitize_command_recorded(const hal_queue *queue, const hal_action *action)
{
    const hal_recording *batch = queue->recorder.recording;
    pthread_mutex_lock(&lock);
    hal_sanitize_device *device = hal_map_get(&device_of, hal_map_key(queue->timeline.device));
    if (device) {
        hal_sanitize_calls_note(device, queue, batch);
    }
    for (uint32_t i = 0; i < action->range_count; i++) {
        hal_sanitize_memory *memory =
            action->ranges[i].buffer ? memory_of_buffer(action->ranges[i].buffer) : NULL;
        if (memory && memory->is_new) {
            hal_sanitize_memory_used(memory, batch);
        }
    }
    pthread_mutex_unlock(&lock);
}

bool hal_sanitize_is_on(void)
{
    return checks != 0;
}

void hal_sanitize_group_set(hal_queue *queue, const char *calls)
{
    pthread_mutex_lock(&lock);
    hal_sanitize_calls_set(queue, calls);
    pthread_mutex_unlock(&lock);
}

void hal_sanitize_buffer_exported(const hal_buffer *buffer)
{
    pthread_mutex_lock(&lock);
    hal_sanitize_memory *memory = memory_of_buffer(buffer);
    if (memory) {
        hal_sanitize_shadow_drop(memory);
    }
    pthread_mutex_unlock(&lock);
}

void hal_sanitize_waited(const hal_queue *queue)
{
    pthread_mutex_lock(&lock);
    if (queue) {
        flight_read_of(queue->timeline.device);
    }
    pthread_mutex_unlock(&lock);
}

void hal_sanitize_host_access(const hal_range *range, uint32_t access)
{
    pthread_mutex_lock(&lock);
    hal_sanitize_memory *memory = memory_of_buffer(range->buffer);
    if (memory && memory->is_new) { /* the host waits for earlier uses before it accesses memory */
        memory->is_new = false;
        hal_sanitize_written_set(memory, 0, memory->bytes, false);
    }
    if (memory && (access & HAL_ACCESS_WRITE)) {
        hal_sanitize_written_set(memory, range->offset, range->length, true);
    }
    pthread_mutex_unlock(&lock);
}

static hal_status sanitize_before(hal_event *event)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&lock);
    if (event->kind == HAL_EVENT_COMPILE) {
        status = kernel_compiling(event);
    } else if (event->kind == HAL_EVENT_DESTROY) {
        kernel_destroying(event->kernel->handle);
    } else if (event->kind == HAL_EVENT_SUBMIT) {
        status = batch_submitting(event);
    } else if (event->kind == HAL_EVENT_CLOSE) {
        device_closing(event->device);
    } else if (event->kind == HAL_EVENT_ALLOCATE && event->is_unmapped &&
               (checks & HAL_CHECK_BOUNDS)) {
        event->more_bytes = HAL_SANITIZE_ZONE_BYTES + 4; /* it begins at a multiple of 4 */
    } else if (event->kind == HAL_EVENT_FREE) {
        memory_freeing(event);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void sanitize_after(const hal_event *event, hal_status status)
{
    pthread_mutex_lock(&lock);
    if (event->kind == HAL_EVENT_COMPILE) {
        kernel_compiled(event, status);
    } else if (event->kind == HAL_EVENT_SUBMIT) {
        batch_submitted(event, status);
    } else if (event->kind == HAL_EVENT_WAIT && status == HAL_OK) {
        flight_read_of(event->device);
    } else if (event->kind == HAL_EVENT_OPEN && status == HAL_OK) {
        device_opened(event->device);
    } else if (event->kind == HAL_EVENT_ALLOCATE && status == HAL_OK && event->is_unmapped) {
        memory_allocated(event);
    }
    pthread_mutex_unlock(&lock);
}

const hal_layer hal_layer_sanitize = {
    .bit = HAL_LAYER_SANITIZE,
    .hooks = HAL_HOOK_EVENTS | HAL_HOOK_CALLS,
    .begin = sanitize_begin,
    .before = sanitize_before,
    .after = sanitize_after,
};
