/* Contents of device memory in files of HAL_DUMP=batch, see dump_contents.h. */
#include "dump_contents.h"

#include "core/batch.h"
#include "core/device.h"

#include <hal/dump.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW (UINT64_C(16) << 20) /* bytes read and compared at a time */
#define WINDOW_RANGES 64u
#define GRAIN 64u /* bytes that are written or left out together */

/* Ranges of one device that are read together. */
typedef struct window {
    hal_dump_span spans[WINDOW_RANGES];
    hal_dump_range ranges[WINDOW_RANGES];
    uint32_t count;
    uint64_t bytes;
} window;

static uint8_t *window_bytes;

static int span_compare(const void *one, const void *other)
{
    const hal_dump_span *a = one, *b = other;
    if (a->memory->id != b->memory->id) {
        return a->memory->id < b->memory->id ? -1 : 1;
    }
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void spans_merge(hal_dump_spans *spans)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < spans->count; i++) {
        const hal_dump_span next = spans->items[i];
        hal_dump_span *last = count > 0 ? &spans->items[count - 1] : NULL;
        if (last && last->memory == next.memory && next.begin <= last->end) {
            last->end = next.end > last->end ? next.end : last->end;
        } else {
            spans->items[count++] = next;
        }
    }
    spans->count = count;
}

/* The file's contents of a memory, which is declared if it is new. */
static hal_status copy_find(hal_dump_contents *contents, const hal_dump_memory *memory,
                            uint8_t **copy)
{
    *copy = hal_map_get(&contents->copies, memory->id);
    if (*copy) {
        return HAL_OK;
    }
    *copy = calloc(1, memory->bytes + 1);
    if (!*copy || !hal_map_put(&contents->copies, memory->id, *copy)) {
        free(*copy);
        return hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY,
                             "no host memory for a copy of the device's memory");
    }
    hal_payload record = {0};
    hal_payload_u64(&record, memory->id);
    hal_payload_u64(&record, memory->bytes);
    const hal_status status = hal_dump_file_put(contents->file, HAL_DUMP_MEMORY, &record, NULL, 0);
    hal_payload_free(&record);
    return status;
}

static hal_status put_difference(hal_dump_contents *contents, uint32_t kind,
                                 const hal_dump_span *span, const uint8_t *now)
{
    uint8_t *copy = NULL;
    hal_status status = copy_find(contents, span->memory, &copy);
    const uint64_t bytes = span->end - span->begin;
    copy = status == HAL_OK ? copy + span->begin : NULL;
    for (uint64_t at = 0; status == HAL_OK && at < bytes;) {
        uint64_t end = at;
        while (end < bytes) {
            const uint64_t grain = bytes - end < GRAIN ? bytes - end : GRAIN;
            if (memcmp(copy + end, now + end, grain) == 0) {
                break;
            }
            end += grain;
        }
        if (end > at) {
            hal_payload record = {0};
            hal_payload_u64(&record, span->memory->id);
            hal_payload_u64(&record, span->begin + at);
            status = hal_dump_file_put(contents->file, kind, &record, now + at, end - at);
            hal_payload_free(&record);
            memcpy(copy + at, now + at, end - at);
            at = end;
        } else {
            at += GRAIN;
        }
    }
    return status;
}

/* Reads and compares the ranges of a window, and empties it. */
static hal_status put_window(hal_dump_contents *contents, uint32_t kind, window *w,
                             hal_plugin_wait reached)
{
    if (w->count == 0) {
        return HAL_OK;
    }
    const hal_device *device = w->spans[0].memory->device;
    hal_dump_reader *reader = hal_dump_reader_find(device);
    if (!reader) {
        return hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note a device");
    }
    if (device != contents->device) { /* its queues cannot wait; the host has waited */
        reached = (hal_plugin_wait){0};
    }
    hal_status status = hal_dump_read(reader, reached, w->ranges, w->count);
    for (uint32_t i = 0; status == HAL_OK && i < w->count; i++) {
        status = put_difference(contents, kind, &w->spans[i], w->ranges[i].to);
    }
    w->count = 0;
    w->bytes = 0;
    return status;
}

hal_status hal_dump_contents_start(void)
{
    window_bytes = window_bytes ? window_bytes : malloc(WINDOW);
    return window_bytes ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

hal_status hal_dump_spans_collect(const hal_recording *recording, bool written,
                                  hal_dump_spans *spans)
{
    free(spans->items);
    spans->count = 0;
    spans->items = malloc((recording->binding_count + 1) * sizeof *spans->items);
    if (!spans->items) {
        return hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    for (uint32_t c = 0; c < recording->command_count; c++) {
        const hal_command *command = &recording->commands[c];
        const hal_dump_kernel *kernel = hal_dump_kernel_find(command->kernel);
        const uint32_t scratch = kernel ? kernel->scratch : HAL_DUMP_NO_SCRATCH;
        for (uint32_t i = 0; i < command->binding_count; i++) {
            const hal_binding *binding = &recording->bindings[command->binding_first + i];
            if (binding->length == 0 || i == scratch ||
                (written && !(binding->access & HAL_ACCESS_WRITE))) {
                continue;
            }
            const hal_dump_memory *memory = hal_dump_memory_find(binding->memory);
            if (!memory) {
                return hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note memory");
            }
            spans->items[spans->count++] =
                (hal_dump_span){memory, binding->offset, binding->offset + binding->length};
        }
    }
    qsort(spans->items, spans->count, sizeof *spans->items, span_compare);
    spans_merge(spans);
    return HAL_OK;
}

hal_status hal_dump_contents_declare(hal_dump_contents *contents, const hal_dump_memory *memory)
{
    uint8_t *copy;
    return copy_find(contents, memory, &copy);
}

hal_status hal_dump_contents_update(hal_dump_contents *contents, uint32_t kind,
                                    const hal_dump_spans *spans, hal_plugin_wait reached)
{
    window w = {.count = 0};
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < spans->count; i++) {
        const hal_dump_span *span = &spans->items[i];
        for (uint64_t at = span->begin; status == HAL_OK && at < span->end;) {
            if (w.count == WINDOW_RANGES || w.bytes == WINDOW ||
                (w.count > 0 && w.spans[0].memory->device != span->memory->device)) {
                status = put_window(contents, kind, &w, reached);
            }
            const uint64_t left = span->end - at;
            const uint64_t bytes = left < WINDOW - w.bytes ? left : WINDOW - w.bytes;
            w.spans[w.count] = (hal_dump_span){span->memory, at, at + bytes};
            w.ranges[w.count++] =
                (hal_dump_range){span->memory->handle, at, bytes, window_bytes + w.bytes};
            w.bytes += bytes;
            at += bytes;
        }
    }
    return status == HAL_OK ? put_window(contents, kind, &w, reached) : status;
}

hal_status hal_dump_contents_forget(hal_dump_contents *contents, const hal_dump_memory *memory)
{
    uint8_t *copy = hal_map_take(&contents->copies, memory->id);
    if (!copy) {
        return HAL_OK;
    }
    free(copy);
    hal_payload record = {0};
    hal_payload_u64(&record, memory->id);
    const hal_status status = hal_dump_file_put(contents->file, HAL_DUMP_FREE, &record, NULL, 0);
    hal_payload_free(&record);
    return status;
}

void hal_dump_contents_free(hal_dump_contents *contents)
{
    for (uint32_t i = 0; i < contents->copies.capacity; i++) {
        free(contents->copies.entries[i].value);
    }
    hal_map_free(&contents->copies);
}
