/* The dump layer: HAL_DUMP=batch writes what each queue ran, with what its memory held before and
 * after, to a file halyard-<process>-<number>.batch in HAL_DUMP_DIR, else in the current folder.
 * hal/dump.h has the files' form, hal-replay runs them again, docs/layers.md is about both.
 *
 * A batch is run by itself: before it is handed over the queue's work is waited for, so that memory
 * can be looked at, and after it too. The layer keeps a copy of what the file says of each memory
 * that it has seen, and writes what differs. Called by layer.c. */
#include "core/queue.h"
#include "dump_file.h"
#include "dump_kernel.h"
#include "dump_read.h"
#include "layer.h"
#include "base/map.h"
#include "base/status.h"

#include <hal/dump.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW (UINT64_C(16) << 20) /* bytes that are read and compared at a time */
#define WINDOW_RANGES 64u
#define GRAIN 64u /* bytes that are written or left out together */
#define NO_SCRATCH UINT32_MAX

/* What is known of a plugin's objects. */
typedef struct device_note {
    struct device_note *next;
    hal_device *device;
    hal_dump_reader reader;
} device_note;

typedef struct memory_note {
    struct memory_note *next, *before;
    hal_device *device;
    hal_plugin_memory *handle;
    uint64_t id, bytes;
} memory_note;

typedef struct kernel_note {
    struct kernel_note *next;
    hal_device *device;
    hal_plugin_kernel *handle;
    uint64_t id;
    uint32_t scratch; /* a binding whose contents mean nothing, or NO_SCRATCH */
    hal_payload record;
} kernel_note;

/* A range of memory that a batch touches. */
typedef struct span {
    const memory_note *memory;
    uint64_t begin, end;
} span;

typedef struct spans {
    span *items;
    uint32_t count;
} spans;

/* What the file says that a memory holds. */
typedef struct shadow {
    struct shadow *next;
    uint64_t memory;
    uint8_t bytes[];
} shadow;

/* The file of a queue; a queue's record lives on under another name with another base. */
typedef struct dump {
    struct dump *next;
    const hal_queue *queue;
    const hal_device *device;
    uint64_t base;
    hal_dump_file file;
    shadow *shadows;
    hal_map shadow_of; /* by id of the memory */
    hal_map kernels;   /* whose record is written, by id */
    spans written;             /* by the batch in flight */
    int under_way;
    hal_status failed; /* nothing is written any more */
    char *message;
} dump;

static char *folder;
static uint8_t *window;

/* Guards all that follows. A thread that holds it waits for devices only, never for threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static device_note *devices;
static memory_note *memories;
static kernel_note *kernels;
static dump *dumps;
static hal_map memory_of, kernel_of; /* by the plugin's handle */
static uint64_t last_id;

/* ---- Events ---- */

/* Makes a file, to see that files can be made there. */
static hal_status begin(void)
{
    const char *variable = secure_getenv("HAL_DUMP_DIR");
    hal_dump_file file;
    if (!folder) {
        folder = strdup(variable && *variable ? variable : ".");
    }
    if (!window) {
        window = malloc(WINDOW);
    }
    if (!folder || !window) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "HAL_DUMP=batch: no host memory");
    }
    const hal_status status = hal_dump_file_create(folder, &file);
    if (file.handle >= 0) {
        unlink(file.path);
    }
    hal_dump_file_close(&file);
    if (status != HAL_OK) { /* the variable is read again at the next call */
        free(folder);
        folder = NULL;
        return hal_host_failed(status, "opening a device");
    }
    return HAL_OK;
}

/* Where the queue's file stands in the list, or would. */
static dump **place_of(const hal_queue *queue)
{
    dump **at = &dumps;
    while (*at && (*at)->queue != queue) {
        at = &(*at)->next;
    }
    return at;
}

static void end_dump(dump **at)
{
    dump *over = *at;
    *at = over->next;
    if (!over->failed) {
        hal_dump_file_flush(&over->file);
    }
    hal_dump_file_close(&over->file);
    while (over->shadows) {
        shadow *next = over->shadows->next;
        free(over->shadows);
        over->shadows = next;
    }
    hal_map_free(&over->shadow_of);
    hal_map_free(&over->kernels);
    free(over->written.items);
    free(over->message);
    free(over);
}

static hal_status fail(hal_status status, const char *words)
{
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s%s",
             strncmp(words, "HAL_DUMP", 8) == 0 ? "" : "HAL_DUMP=batch: ", words);
    return hal_host_services()->fail(status, sentence);
}

static hal_status put_device(dump *to)
{
    const hal_device_info *info = &to->device->info;
    hal_payload record = {0};
    hal_payload_string(&record, to->device->plugin->name);
    hal_payload_u32(&record, to->device->index);
    hal_payload_string(&record, info->name);
    hal_payload_string(&record, info->driver);
    hal_payload_string(&record, info->architecture);
    hal_payload_u32(&record, info->subgroup_width);
    hal_payload_u32(&record, info->exactness);
    hal_payload_string(&record, hal_version());
    const hal_status status = hal_dump_file_put(&to->file, HAL_DUMP_DEVICE, &record, NULL, 0);
    hal_payload_free(&record);
    return status;
}

static hal_status find_dump(const hal_event *event, dump **found)
{
    const hal_queue *queue = event->queue;
    dump **at = place_of(queue);
    if (*at && (*at)->base != queue->timeline.base) {
        end_dump(at);
    }
    at = place_of(queue);
    if (!*at) {
        dump *made = calloc(1, sizeof *made);
        if (!made) {
            return fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory");
        }
        made->queue = queue;
        made->device = event->device;
        made->base = queue->timeline.base;
        *at = made;
        made->failed = hal_dump_file_create(folder, &made->file);
        made->failed = made->failed ? made->failed : put_device(made);
        made->message = made->failed ? strdup(hal_status_message()) : NULL;
    }
    *found = *at;
    return (*at)->failed ? fail((*at)->failed, (*at)->message ? (*at)->message : "") : HAL_OK;
}

/* All that the batch comes after. The queues that it waits for are visited: they stay. */
static hal_status wait_for_earlier(const hal_event *event)
{
    const hal_queue *queue = event->queue;
    const uint64_t earlier = atomic_load(&queue->timeline.submitted);
    hal_status status = HAL_OK;
    if (earlier > queue->timeline.base) {
        status = event->device->plugin->wait(queue->timeline.handle,
                                             earlier - queue->timeline.base, UINT64_MAX);
    }
    for (uint32_t i = 0; status == HAL_OK && i < event->recording->wait_count; i++) {
        const hal_last_use wait = event->recording->waits[i];
        if (!atomic_load(&wait.timeline->closing) && wait.value > wait.timeline->base) {
            status = wait.timeline->device->plugin->wait(
                wait.timeline->handle, wait.value - wait.timeline->base, UINT64_MAX);
        }
    }
    return status;
}

/* What the file says of a memory; it is told of a new one, which holds zeros. */
static hal_status find_shadow(dump *to, const memory_note *memory, shadow **found)
{
    *found = hal_map_get(&to->shadow_of, memory->id);
    if (*found) {
        return HAL_OK;
    }
    shadow *made = calloc(1, sizeof *made + memory->bytes);
    if (!made || !hal_map_put(&to->shadow_of, memory->id, made)) {
        free(made);
        return fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a copy of the device's memory");
    }
    made->memory = memory->id;
    made->next = to->shadows;
    to->shadows = made;
    *found = made;
    hal_payload record = {0};
    hal_payload_u64(&record, memory->id);
    hal_payload_u64(&record, memory->bytes);
    const hal_status status = hal_dump_file_put(&to->file, HAL_DUMP_MEMORY, &record, NULL, 0);
    hal_payload_free(&record);
    return status;
}

/* Kernels and memory that the file does not know yet. */
static hal_status put_objects(dump *to, const hal_recording *recording)
{
    hal_status status = HAL_OK;
    for (uint32_t c = 0; status == HAL_OK && c < recording->command_count; c++) {
        const hal_command *command = &recording->commands[c];
        if (!command->kernel) {
            continue;
        }
        kernel_note *kernel = hal_map_get(&kernel_of, hal_map_key(command->kernel));
        if (!kernel) {
            return fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note a kernel");
        }
        if (!hal_map_get(&to->kernels, kernel->id)) {
            status = hal_dump_file_put(&to->file, HAL_DUMP_KERNEL, &kernel->record, NULL, 0);
            if (!hal_map_put(&to->kernels, kernel->id, kernel)) {
                status = fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory");
            }
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < recording->binding_count; i++) {
        const hal_binding *binding = &recording->bindings[i];
        shadow *known;
        if (binding->length > 0) {
            const memory_note *memory = hal_map_get(&memory_of, hal_map_key(binding->memory));
            status = memory ? find_shadow(to, memory, &known)
                            : fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note memory");
        }
    }
    return status;
}

static int compare_spans(const void *one, const void *other)
{
    const span *a = one, *b = other;
    if (a->memory->id != b->memory->id) {
        return a->memory->id < b->memory->id ? -1 : 1;
    }
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void merge(spans *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const span next = list->items[i];
        span *last = count > 0 ? &list->items[count - 1] : NULL;
        if (last && last->memory == next.memory && next.begin <= last->end) {
            last->end = next.end > last->end ? next.end : last->end;
        } else {
            list->items[count++] = next;
        }
    }
    list->count = count;
}

/* The ranges that a batch touches, or `written` those that it writes, in order and apart from one
 * another, without what means nothing afterwards. */
static hal_status collect(const hal_recording *recording, int written, spans *found)
{
    free(found->items);
    found->count = 0;
    found->items = malloc((recording->binding_count + 1) * sizeof *found->items);
    if (!found->items) {
        return fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    for (uint32_t c = 0; c < recording->command_count; c++) {
        const hal_command *command = &recording->commands[c];
        const kernel_note *kernel = hal_map_get(&kernel_of, hal_map_key(command->kernel));
        const uint32_t scratch = command->kernel && kernel ? kernel->scratch : NO_SCRATCH;
        for (uint32_t i = 0; i < command->binding_count; i++) {
            const hal_binding *binding = &recording->bindings[command->binding_first + i];
            if (binding->length == 0 || i == scratch ||
                (written && !(binding->access & HAL_ACCESS_WRITE))) {
                continue;
            }
            const memory_note *memory = hal_map_get(&memory_of, hal_map_key(binding->memory));
            if (!memory) {
                return fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note an allocation");
            }
            found->items[found->count++] =
                (span){memory, binding->offset, binding->offset + binding->length};
        }
    }
    qsort(found->items, found->count, sizeof *found->items, compare_spans);
    merge(found);
    return HAL_OK;
}

static hal_dump_reader *reader_of(const hal_device *device)
{
    device_note *note = devices;
    while (note && note->device != device) {
        note = note->next;
    }
    return note ? &note->reader : NULL;
}

static hal_status put_difference(dump *to, uint32_t kind, const span *piece, const uint8_t *now)
{
    shadow *known;
    hal_status status = find_shadow(to, piece->memory, &known);
    const uint64_t bytes = piece->end - piece->begin;
    uint8_t *kept = status == HAL_OK ? known->bytes + piece->begin : NULL;
    for (uint64_t at = 0; status == HAL_OK && at < bytes;) {
        uint64_t end = at;
        while (end < bytes) {
            const uint64_t grain = bytes - end < GRAIN ? bytes - end : GRAIN;
            if (memcmp(kept + end, now + end, grain) == 0) {
                break;
            }
            end += grain;
        }
        if (end > at) {
            hal_payload record = {0};
            hal_payload_u64(&record, piece->memory->id);
            hal_payload_u64(&record, piece->begin + at);
            status = hal_dump_file_put(&to->file, kind, &record, now + at, end - at);
            hal_payload_free(&record);
            memcpy(kept + at, now + at, end - at);
            at = end;
        } else {
            at += GRAIN;
        }
    }
    return status;
}

static hal_status put_window(dump *to, uint32_t kind, const span *pieces, hal_dump_range *ranges,
                             uint32_t count, hal_plugin_wait reached)
{
    if (count == 0) {
        return HAL_OK;
    }
    const hal_device *device = pieces[0].memory->device;
    hal_dump_reader *reader = reader_of(device);
    if (!reader) {
        return fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note a device");
    }
    if (device != to->device) { /* the work has been waited for */
        reached = (hal_plugin_wait){0};
    }
    hal_status status = hal_dump_read(reader, reached, ranges, count);
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = put_difference(to, kind, &pieces[i], ranges[i].to);
    }
    return status;
}

/* Reads ranges in windows, writes what the file does not say yet, and keeps it. */
static hal_status put_changes(dump *to, uint32_t kind, const spans *list, hal_plugin_wait reached)
{
    span pieces[WINDOW_RANGES];
    hal_dump_range ranges[WINDOW_RANGES];
    hal_status status = HAL_OK;
    uint32_t count = 0;
    uint64_t taken = 0;
    for (uint32_t i = 0; status == HAL_OK && i < list->count; i++) {
        const memory_note *memory = list->items[i].memory;
        for (uint64_t at = list->items[i].begin; status == HAL_OK && at < list->items[i].end;) {
            if (count == WINDOW_RANGES || taken == WINDOW ||
                (count > 0 && pieces[0].memory->device != memory->device)) {
                status = put_window(to, kind, pieces, ranges, count, reached);
                count = 0;
                taken = 0;
            }
            const uint64_t left = list->items[i].end - at;
            const uint64_t bytes = left < WINDOW - taken ? left : WINDOW - taken;
            pieces[count] = (span){memory, at, at + bytes};
            ranges[count++] = (hal_dump_range){memory->handle, at, bytes, window + taken};
            taken += bytes;
            at += bytes;
        }
    }
    return status == HAL_OK ? put_window(to, kind, pieces, ranges, count, reached) : status;
}

static hal_status put_batch(dump *to, const hal_recording *recording, uint64_t number)
{
    hal_payload record = {0};
    hal_payload_u64(&record, number);
    hal_payload_u32(&record, recording->command_count);
    for (uint32_t c = 0; c < recording->command_count; c++) {
        const hal_command *command = &recording->commands[c];
        const kernel_note *kernel =
            command->kernel ? hal_map_get(&kernel_of, hal_map_key(command->kernel)) : NULL;
        hal_payload_u16(&record, command->kind);
        hal_payload_u16(&record, command->flags);
        hal_payload_u32(&record, command->binding_count);
        hal_payload_u32(&record, command->scalar_bytes);
        for (uint32_t i = 0; i < 3; i++) {
            hal_payload_u32(&record, command->grid[i]);
        }
        hal_payload_u32(&record, command->pattern);
        hal_payload_u64(&record, kernel ? kernel->id : 0);
        for (uint32_t i = 0; i < command->binding_count; i++) {
            const hal_binding *binding = &recording->bindings[command->binding_first + i];
            const memory_note *memory =
                binding->length > 0 ? hal_map_get(&memory_of, hal_map_key(binding->memory)) : NULL;
            hal_payload_u64(&record, memory ? memory->id : 0);
            hal_payload_u64(&record, binding->offset);
            hal_payload_u64(&record, binding->length);
            hal_payload_u32(&record, binding->access);
            hal_payload_u32(&record, 0);
        }
        hal_payload_bytes(&record, recording->scalars + command->scalar_first,
                          command->scalar_bytes);
    }
    const hal_status status = hal_dump_file_put(&to->file, HAL_DUMP_BATCH, &record, NULL, 0);
    hal_payload_free(&record);
    return status;
}

static hal_status submitting(const hal_event *event)
{
    const hal_recording *recording = event->recording;
    dump *to = NULL;
    spans touched = {0};
    if (recording->command_count == 0) {
        return HAL_OK; /* only waits */
    }
    hal_status status = find_dump(event, &to);
    if (status == HAL_OK) {
        status = wait_for_earlier(event);
    }
    if (status == HAL_OK) {
        status = put_objects(to, recording);
    }
    if (status == HAL_OK) {
        status = collect(recording, 0, &touched);
    }
    if (status == HAL_OK) {
        status = collect(recording, 1, &to->written);
    }
    if (status == HAL_OK) {
        const hal_timeline *timeline = &event->queue->timeline;
        const uint64_t earlier = atomic_load(&timeline->submitted) - timeline->base;
        status = put_changes(to, HAL_DUMP_DATA, &touched,
                             (hal_plugin_wait){earlier ? timeline->handle : NULL, earlier});
    }
    if (status == HAL_OK) {
        status = put_batch(to, recording, event->value - event->queue->timeline.base);
    }
    if (status == HAL_OK) {
        status = hal_dump_file_flush(&to->file);
    }
    if (to) {
        to->under_way = status == HAL_OK;
    }
    free(touched.items);
    return status;
}

static void freed(const hal_event *event)
{
    memory_note *note = hal_map_take(&memory_of, hal_map_key(event->memory));
    for (dump *to = dumps; note && to; to = to->next) {
        shadow *known = hal_map_take(&to->shadow_of, note->id);
        hal_payload record = {0};
        if (known) {
            hal_payload_u64(&record, note->id);
            to->failed = to->failed ? to->failed
                                    : hal_dump_file_put(&to->file, HAL_DUMP_FREE, &record, NULL, 0);
            hal_payload_free(&record);
            shadow **at = &to->shadows;
            while (*at != known) {
                at = &(*at)->next;
            }
            *at = known->next;
            free(known);
        }
    }
    if (note) {
        *(note->before ? &note->before->next : &memories) = note->next;
        if (note->next) {
            note->next->before = note->before;
        }
        free(note);
    }
}

static void closed(const hal_device *device)
{
    for (dump **at = &dumps; *at;) {
        if ((*at)->device == device) {
            end_dump(at);
        } else {
            at = &(*at)->next;
        }
    }
    for (kernel_note **at = &kernels; *at;) {
        kernel_note *note = *at;
        if (note->device != device) {
            at = &note->next;
            continue;
        }
        *at = note->next;
        hal_map_take(&kernel_of, hal_map_key(note->handle));
        hal_payload_free(&note->record);
        free(note);
    }
    for (device_note **at = &devices; *at; at = &(*at)->next) {
        device_note *note = *at;
        if (note->device == device) {
            *at = note->next;
            hal_dump_reader_end(&note->reader);
            free(note);
            return;
        }
    }
}

static hal_status before(const hal_event *event)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&lock);
    if (event->kind == HAL_EVENT_SUBMIT) {
        status = submitting(event);
    } else if (event->kind == HAL_EVENT_FREE) {
        freed(event);
    } else if (event->kind == HAL_EVENT_CLOSE) {
        closed(event->device);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* What goes wrong here is told by the next batch, as this one has been handed over. */
static void submitted(const hal_event *event, hal_status status)
{
    dump *to = *place_of(event->queue);
    if (!to || !to->under_way) {
        return;
    }
    const hal_queue *queue = event->queue;
    const uint64_t value = event->value - queue->timeline.base;
    hal_payload outcome = {0};
    hal_status written = HAL_OK;
    if (status == HAL_OK) {
        status = event->device->plugin->wait(queue->timeline.handle, value, UINT64_MAX);
    }
    if (status == HAL_OK) {
        written = put_changes(to, HAL_DUMP_RESULT, &to->written,
                              (hal_plugin_wait){queue->timeline.handle, value});
    }
    hal_payload_u32(&outcome, (uint32_t)status);
    hal_payload_string(&outcome, status == HAL_OK ? "" : hal_status_message());
    if (written == HAL_OK) {
        written = hal_dump_file_put(&to->file, HAL_DUMP_OUTCOME, &outcome, NULL, 0);
    }
    if (written == HAL_OK) {
        written = hal_dump_file_flush(&to->file);
    }
    if (written != HAL_OK) {
        to->failed = hal_host_failed(written, "after an earlier batch");
        to->message = strdup(hal_status_message());
    }
    hal_payload_free(&outcome);
    to->under_way = 0;
}

/* What cannot be noted for want of host memory is missed at the first batch that uses it, which
 * fails then. */
static void opened(hal_device *device)
{
    device_note *note = calloc(1, sizeof *note);
    if (note) {
        note->device = device;
        note->reader.device = device;
        note->next = devices;
        devices = note;
    }
}

static void allocated(const hal_event *event)
{
    memory_note *note = calloc(1, sizeof *note);
    if (!note || !hal_map_put(&memory_of, hal_map_key(event->memory), note)) {
        free(note);
        return;
    }
    note->device = event->device;
    note->handle = event->memory;
    note->bytes = event->bytes;
    note->id = ++last_id;
    note->next = memories;
    if (memories) {
        memories->before = note;
    }
    memories = note;
}

/* A handle that comes back is another kernel. */
static void compiled(const hal_event *event)
{
    kernel_note *note = hal_map_get(&kernel_of, hal_map_key(event->kernel->handle));
    if (!note) {
        note = calloc(1, sizeof *note);
        if (!note || !hal_map_put(&kernel_of, hal_map_key(event->kernel->handle), note)) {
            free(note);
            return;
        }
        note->handle = event->kernel->handle;
        note->next = kernels;
        kernels = note;
    }
    note->device = event->device;
    note->id = ++last_id;
    note->scratch = event->source->gemm ? HAL_DUMP_GEMM_WORKSPACE : NO_SCRATCH;
    hal_payload_free(&note->record);
    hal_payload_u64(&note->record, note->id);
    hal_dump_describe(&note->record, event->source);
}

static void after(const hal_event *event, hal_status status)
{
    pthread_mutex_lock(&lock);
    if (event->kind == HAL_EVENT_SUBMIT) {
        submitted(event, status);
    } else if (status == HAL_OK && event->kind == HAL_EVENT_OPEN) {
        opened(event->device);
    } else if (status == HAL_OK && event->kind == HAL_EVENT_ALLOCATE) {
        allocated(event);
    } else if (status == HAL_OK && event->kind == HAL_EVENT_COMPILE) {
        compiled(event);
    }
    pthread_mutex_unlock(&lock);
}

const hal_layer hal_layer_dump = {
    .bit = HAL_LAYER_DUMP,
    .hooks = HAL_HOOK_EVENTS,
    .begin = begin,
    .before = before,
    .after = after,
};
