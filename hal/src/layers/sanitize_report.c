/* The reports of kernels with checks: their memory, and their text. */
#include "sanitize.h"

#include "core/device.h"
#include "findings.h"
#include "base/array.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ir/position.h"
#include "ir/report.h"

#include <hal/ir_build.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Mapped memory that reports are taken from. */
struct hal_sanitize_chunk {
    hal_sanitize_chunk *next;
    hal_plugin_memory *memory;
    uint8_t *view;
    uint64_t bytes, used;
};

static char first_finding[HAL_MESSAGE_BYTES];

static hal_sanitize_chunk *chunk_create(hal_sanitize_device *device, uint64_t bytes,
                                        hal_status *status)
{
    const hal_plugin_entries *plugin = device->device->plugin;
    hal_plugin_device *handle = device->device->handle;
    void *view = NULL;
    hal_sanitize_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk) {
        *status = HAL_ERROR_OUT_OF_MEMORY;
        return NULL;
    }
    *status = plugin->memory_allocate(handle, HAL_MEMORY_SHARED, bytes, &chunk->memory);
    if (*status == HAL_OK &&
        (*status = plugin->memory_map(handle, chunk->memory, &view)) != HAL_OK) {
        plugin->memory_free(handle, chunk->memory);
    }
    if (*status != HAL_OK) {
        free(chunk);
        return NULL;
    }
    chunk->view = view;
    chunk->bytes = bytes;
    chunk->next = device->chunks;
    device->chunks = chunk;
    return chunk;
}

/* Clears words, or makes what a kernel wrote visible. */
static void reports_clear(const hal_sanitize_device *device, const hal_sanitize_reports *reports)
{
    const hal_plugin_entries *plugin = device->device->plugin;
    memset(reports->words, 0, reports->bytes);
    if (plugin->memory_flush) {
        plugin->memory_flush(device->device->handle, reports->memory, reports->offset,
                             reports->bytes);
    }
}

bool hal_sanitize_reports_invalidate(const hal_sanitize_device *device,
                                     const hal_sanitize_reports *reports, uint64_t bytes)
{
    const hal_plugin_entries *plugin = device->device->plugin;
    return !plugin->memory_invalidate ||
           plugin->memory_invalidate(device->device->handle, reports->memory, reports->offset,
                                     bytes) == HAL_OK;
}

void hal_sanitize_finding_log(const char *text)
{
    hal_log(HAL_LOG_ERROR, "sanitize: %s", text);
    if (!first_finding[0]) {
        snprintf(first_finding, sizeof first_finding, "sanitize: %s", text);
    }
}

void hal_sanitize_text_add_batches(hal_text *text, const hal_sanitize_device *device,
                                   uint64_t first, uint64_t last)
{
    hal_text_add(text, last > first ? "batches %llu to " : "batch ", (unsigned long long)first);
    hal_text_add(text, "%llu of %s:%u", (unsigned long long)(last > first ? last : first),
                 device->device->plugin->name, device->device->index);
}

/* The element that a report's index means: with the record's offset. */
static long long report_element(const hal_ir_kernel *built, const hal_ir_site *site,
                                const hal_ir_report *report)
{
    const hal_ir_record *record = &built->records[site->record];
    const bool is_source =
        record->opcode == HAL_IR_ASYNC_COPY && !hal_ir_is_shared(built, site->memory);
    const hal_type type = built->records[is_source ? record->d : record->a].type;
    const uint64_t bits = report->index[0] | (uint64_t)report->index[1] << 32;
    const int64_t index = type == HAL_TYPE_I32 ? (int32_t)report->index[0] : (int64_t)bits;
    return record->opcode == HAL_IR_ASYNC_COPY
               ? index
               : (int64_t)((uint64_t)index + (uint64_t)record->imm); /* may be beyond 64 bits */
}

/* The memory of a fault, and the element. `command` is the dispatch; null: not known. */
static void text_add_memory(hal_text *text, const hal_ir_kernel *built, const hal_ir_site *site,
                            const hal_ir_report *report, const hal_recording *batch,
                            const hal_command *command)
{
    const hal_ir_memory *memory = &built->memories[site->memory];
    const bool is_shared = hal_ir_is_shared(built, site->memory);
    uint64_t count = memory->count;
    if (!is_shared && command) {
        count = batch->bindings[command->binding_first + site->memory].length /
                hal_type_size(memory->type);
    }
    hal_text_add(text, ", %s \"%s\"", is_shared ? "shared array" : "binding",
                 built->names + memory->name);
    if (is_shared || command) {
        hal_text_add(text, " of %llu elements", (unsigned long long)count);
    }
    const uint32_t width = built->records[site->record].width;
    const long long first = report_element(built, site, report);
    hal_text_add(text, ", index %lld", first);
    if (width > 1) {
        hal_text_add(text, " to %lld%s", (long long)((uint64_t)first + width - 1),
                     first % width ? " (misaligned)" : "");
    }
}

static void text_add_place(hal_text *text, const hal_ir_kernel *built, const hal_ir_report *report)
{
    const uint32_t *size = built->group_size;
    hal_text_add(text, ", work-item (%u, %u, %u) of group (%u, %u, %u)", report->item % size[0],
                 report->item / size[0] % size[1], report->item / size[0] / size[1],
                 report->group[0], report->group[1], report->group[2]);
}

/* Who else accessed an element of a binding: see instrument_race.c. */
static void text_add_other(hal_text *text, const hal_ir_kernel *built, const hal_ir_report *report)
{
    const uint32_t word = report->values[0][0];
    bool has_barrier = false;
    for (uint32_t i = 0; i < built->record_count; i++) {
        has_barrier |= built->records[i].opcode == HAL_IR_BARRIER;
    }
    if (HAL_IR_ACCESS_BY_SEVERAL(word)) {
        hal_text_add(text, ", with several %s", has_barrier ? "groups" : "work-items");
    } else {
        hal_text_add(text, ", with %s %u of the dispatch", has_barrier ? "group" : "work-item",
                     HAL_IR_ACCESS_WHO(word));
    }
}

static const char *result_text(uint32_t origin)
{
    return origin & HAL_IR_ORIGIN_NAN ? "nan" : origin & HAL_IR_ORIGIN_NEGATIVE ? "-inf" : "inf";
}

/* The values that the fault is about. */
static void text_add_values(hal_text *text, const hal_ir_kernel *built, const hal_ir_site *site,
                            const hal_ir_report *report)
{
    const hal_ir_record *record = &built->records[site->record];
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    if (site->fault == HAL_IR_FAULT_RACE && !hal_ir_is_shared(built, site->memory)) {
        text_add_other(text, built, report);
    } else if (site->fault == HAL_IR_FAULT_RACE) {
        if (report->values[0][0] == report->item) { /* several have read the element */
            hal_text_add(text, ", with work-items of the group");
        } else {
            hal_text_add(text, ", with work-item %u of the group", report->values[0][0]);
        }
    } else if (site->fault == HAL_IR_FAULT_INDEX) {
        hal_text_add(text, ", exactly ");
        hal_ir_add_value_text(text, HAL_TYPE_I64, report->values[0]);
    } else if (record->opcode == HAL_IR_STORE &&
               (record->width == 1 || site->fault == HAL_IR_FAULT_STORE)) {
        hal_text_add(text, ", value ");
        hal_ir_add_value_text(text, built->records[record->c].type, report->values[0]);
    } else if (site->memory == HAL_IR_NONE) {
        const bool is_nan = site->fault == HAL_IR_FAULT_NAN;
        if (is_nan) {
            hal_text_add(text, ", result %s", result_text(report->index[0]));
        }
        const bool has_values = !is_nan || !(report->index[0] & HAL_IR_ORIGIN_OF_OTHER);
        for (uint32_t i = 0; has_values && i < count && i < 2; i++) {
            hal_text_add(text, i == 0 ? ", of " : " and ");
            hal_ir_add_value_text(text, built->records[operands[i]].type, report->values[i]);
        }
        if (is_nan) {
            hal_text_add(text, ", which record %u stores", report->record);
        }
    }
}

/* A report's command among batches that have ended: where in which of them its dispatch was. */
typedef struct report_place {
    const hal_sanitize_batch *batch;
    const hal_command *command; /* null: not known */
    uint32_t index;             /* of the program's commands */
    uint64_t last;              /* batch that has the same kernel there */
} report_place;

static report_place report_find(const hal_sanitize_kernel *kernel, const hal_ir_report *report,
                                const hal_sanitize_batch *batches, uint32_t count)
{
    report_place place = {.batch = batches};
    for (uint32_t i = 0; i < count; i++) {
        const hal_sanitize_batch *batch = &batches[i];
        const uint32_t index = report->dispatch - hal_sanitize_first_name(batch->queue);
        if (index >= batch->recording->command_count - batch->first) {
            continue;
        }
        const hal_command *command = &batch->recording->commands[batch->first + index];
        if (hal_sanitize_kernel_find(command->kernel) != kernel) {
            continue;
        }
        if (!place.command) {
            place = (report_place){batch, command, index, batch->value};
        } else if (place.batch->queue == batch->queue) {
            place.last = batch->value;
        }
    }
    return place;
}

static void report_log(const hal_sanitize_kernel *kernel, uint32_t number,
                       const hal_ir_report *report, const report_place *place,
                       const hal_sanitize_device *device)
{
    const hal_ir_kernel *built = kernel->built;
    const hal_ir_site *site = &kernel->checked.sites[number];
    const hal_recording *recording = place->batch->recording;
    hal_text text = {0};
    hal_text_add(&text, "%s: kernel %s, record %u (", hal_ir_fault_text(site->fault),
                 built->names + built->name, site->record);
    hal_ir_print_record(&text, built, site->record);
    const hal_ir_position position = hal_ir_position_find(kernel->hash, site->record);
    if (position.file) {
        hal_text_add(&text, ", %s:%u", position.file, position.line);
    }
    hal_text_add(&text, ")");
    if (site->memory != HAL_IR_NONE) {
        text_add_memory(&text, built, site, report, recording, place->command);
    }
    text_add_place(&text, built, report);
    text_add_values(&text, built, site, report);
    hal_text_add(&text, "; %u times in ", report->count);
    hal_sanitize_text_add_batches(&text, device, place->batch->value, place->last);
    const char *calls =
        place->command ? hal_sanitize_calls_find(device, recording, place->index) : NULL;
    if (place->command) {
        hal_text_add(&text, ", first in command %u", place->index + 1);
    }
    if (calls) {
        hal_text_add(&text, ", of the calls %s", calls);
    }
    hal_sanitize_finding_log(hal_text_get(&text));
    hal_text_free(&text);
}

/* The place in all kernels of the same IR. */
static uint64_t site_hash(const hal_sanitize_kernel *kernel, const hal_ir_site *site)
{
    return XXH3_64bits_withSeed(kernel->hash, sizeof kernel->hash,
                                (uint64_t)site->record << 8 | (uint64_t)site->fault);
}

static void kernel_read(hal_sanitize_kernel *kernel, const hal_sanitize_batch *batches,
                        uint32_t count, const hal_sanitize_device *device)
{
    const hal_sanitize_reports *reports = &kernel->reports;
    if (!hal_sanitize_reports_invalidate(kernel->device, reports, sizeof(hal_ir_report)) ||
        reports->words[0] == 0) {
        return;
    }
    hal_sanitize_reports_invalidate(kernel->device, reports, reports->bytes);
    for (uint32_t i = 0; i < kernel->checked.site_count; i++) {
        hal_ir_report report;
        memcpy(&report, reports->words + (uint64_t)(i + 1) * HAL_IR_REPORT_WORDS, sizeof report);
        kernel->totals[i] += report.count;
        if (report.count > 0 && hal_finding_is_new(site_hash(kernel, &kernel->checked.sites[i]))) {
            const report_place place = report_find(kernel, &report, batches, count);
            report_log(kernel, i, &report, &place, device);
            kernel->totals[i] = 0; /* the log has them */
        }
    }
    reports_clear(kernel->device, reports);
}

hal_status hal_sanitize_reports_take(hal_sanitize_device *device, uint64_t bytes,
                                     hal_sanitize_reports *reports)
{
    enum { CHUNK = 1 << 20 };
    const uint64_t alignment =
        device->info.binding_alignment > 64 ? device->info.binding_alignment : 64;
    const uint64_t room = (bytes + alignment - 1) / alignment * alignment;
    for (uint32_t i = device->spare_count; i-- > 0;) {
        if (device->spares[i].bytes == bytes) {
            *reports = device->spares[i];
            device->spares[i] = device->spares[--device->spare_count];
            reports_clear(device, reports);
            return HAL_OK;
        }
    }
    hal_sanitize_chunk *chunk = device->chunks;
    hal_status status = HAL_OK;
    if (!chunk || chunk->bytes - chunk->used < room) {
        chunk = chunk_create(device, room > CHUNK ? room : CHUNK, &status);
    }
    if (!chunk) {
        return status;
    }
    *reports = (hal_sanitize_reports){.memory = chunk->memory,
                                      .offset = chunk->used,
                                      .bytes = bytes,
                                      .words = (uint32_t *)(chunk->view + chunk->used)};
    chunk->used += room;
    reports_clear(device, reports);
    return HAL_OK;
}

void hal_sanitize_reports_give(hal_sanitize_device *device, hal_sanitize_reports *reports)
{
    if (reports->words && HAL_ARRAY_RESERVE(device->spares, device->spare_capacity,
                                            (uint64_t)device->spare_count + 1)) {
        device->spares[device->spare_count++] = *reports;
    }
    reports->words = NULL;
}

void hal_sanitize_reports_free(hal_sanitize_device *device)
{
    free(device->spares);
    device->spares = NULL;
    device->spare_count = device->spare_capacity = 0;
    while (device->chunks) {
        hal_sanitize_chunk *chunk = device->chunks;
        device->chunks = chunk->next;
        device->device->plugin->memory_free(device->device->handle, chunk->memory);
        free(chunk);
    }
}

void hal_sanitize_reports_read(const hal_sanitize_device *device, const hal_sanitize_batch *batches,
                               uint32_t count)
{
    static uint64_t readings;
    readings++;
    for (uint32_t i = 0; i < count; i++) {
        const hal_recording *recording = batches[i].recording;
        for (uint32_t k = 0; k < recording->command_count; k++) {
            hal_sanitize_kernel *kernel = hal_sanitize_kernel_find(recording->commands[k].kernel);
            if (kernel && kernel->reading != readings) {
                kernel->reading = readings;
                kernel_read(kernel, batches + i, count - i, device);
            }
        }
    }
}

void hal_sanitize_log_totals(const hal_sanitize_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->checked.site_count; i++) {
        const hal_ir_site *site = &kernel->checked.sites[i];
        if (kernel->totals[i] > 0) {
            hal_log(HAL_LOG_ERROR, "sanitize: %s: kernel %s, record %u: %llu times more",
                    hal_ir_fault_text(site->fault), kernel->built->names + kernel->built->name,
                    site->record, (unsigned long long)kernel->totals[i]);
        }
    }
}

const char *hal_sanitize_first_finding(void)
{
    return first_finding;
}
