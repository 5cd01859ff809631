/* Files of queues in HAL_DUMP=batch, see dump_queue.h. */
#include "dump_queue.h"

#include "core/buffer.h"
#include "core/queue.h"
#include "dump_contents.h"
#include "plugin/host.h"
#include "base/array.h"
#include "base/map.h"
#include "base/status.h"

#include <hal/dump.h>
#include <hal/hal.h>
#include <stdlib.h>
#include <string.h>

/* Destroyed queues are recycled with another base; each life has a file. */
typedef struct queue_file {
    const hal_queue *queue;
    const hal_device *device;
    uint64_t base;
    hal_dump_file file;
    hal_dump_contents contents;
    hal_map kernels;        /* written to the file, by id */
    hal_dump_spans written; /* by the batch in flight */
    bool in_flight;
    char *calls;         /* of the values that follow; null: none */
    hal_payload *values; /* records of values that wait for the batch in recording */
    uint32_t value_count, value_capacity;
    hal_status failed; /* nothing more is written */
    char *message;
} queue_file;

static const char *folder;
static hal_map file_of; /* by queue */

/* Writes the values that the submitted batches have computed. */
static hal_status put_values(queue_file *to)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < to->value_count; i++) {
        if (status == HAL_OK) {
            status = hal_dump_file_put(&to->file, HAL_DUMP_VALUE, &to->values[i], NULL, 0);
        }
        hal_payload_free(&to->values[i]);
    }
    to->value_count = 0;
    return status;
}

static void file_end(queue_file *over)
{
    hal_map_take(&file_of, hal_map_key(over->queue));
    if (!over->failed) {
        hal_dump_file_flush(&over->file);
    }
    hal_dump_file_close(&over->file);
    hal_dump_contents_free(&over->contents);
    hal_map_free(&over->kernels);
    free(over->written.items);
    free(over->message);
    for (uint32_t i = 0; i < over->value_count; i++) {
        hal_payload_free(&over->values[i]);
    }
    free(over->values);
    free(over->calls);
    free(over);
}

static hal_status put_device(queue_file *to)
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

static hal_status file_find(const hal_queue *queue, queue_file **found)
{
    queue_file *file = hal_map_get(&file_of, hal_map_key(queue));
    if (file && file->base != queue->timeline.base) {
        file_end(file);
        file = NULL;
    }
    if (!file) {
        file = calloc(1, sizeof *file);
        if (!file || !hal_map_put(&file_of, hal_map_key(queue), file)) {
            free(file);
            return hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory");
        }
        file->queue = queue;
        file->device = queue->timeline.device;
        file->base = queue->timeline.base;
        file->contents = (hal_dump_contents){.file = &file->file, .device = file->device};
        file->failed = hal_dump_file_create(folder, &file->file);
        file->failed = file->failed ? file->failed : put_device(file);
        file->message = file->failed ? strdup(hal_status_message()) : NULL;
    }
    *found = file;
    return file->failed ? hal_dump_fail(file->failed, file->message ? file->message : "") : HAL_OK;
}

/* Waits for all that the batch comes after. The queues that it waits for are pinned. */
static hal_status wait_for_earlier(const hal_event *event)
{
    const hal_queue *queue = event->queue;
    const uint64_t earlier = atomic_load(&queue->timeline.submitted);
    hal_status status = HAL_OK;
    if (earlier > queue->timeline.base) {
        status = event->device->plugin->wait(queue->timeline.handle, earlier - queue->timeline.base,
                                             UINT64_MAX);
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

/* Writes kernels and memories that the file does not have yet. */
static hal_status put_objects(queue_file *to, const hal_recording *recording)
{
    hal_status status = HAL_OK;
    for (uint32_t c = 0; status == HAL_OK && c < recording->command_count; c++) {
        const hal_command *command = &recording->commands[c];
        if (!command->kernel) {
            continue;
        }
        const hal_dump_kernel *kernel = hal_dump_kernel_find(command->kernel);
        if (!kernel) {
            return hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note a kernel");
        }
        if (!hal_map_get(&to->kernels, kernel->id)) {
            status = hal_dump_file_put(&to->file, HAL_DUMP_KERNEL, &kernel->record, NULL, 0);
            if (!hal_map_put(&to->kernels, kernel->id, to)) {
                status = hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory");
            }
        }
    }
    for (uint32_t i = 0; status == HAL_OK && i < recording->binding_count; i++) {
        const hal_binding *binding = &recording->bindings[i];
        if (binding->length > 0) {
            const hal_dump_memory *memory = hal_dump_memory_find(binding->memory);
            status = memory
                         ? hal_dump_contents_declare(&to->contents, memory)
                         : hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to note memory");
        }
    }
    return status;
}

static hal_status put_batch(queue_file *to, const hal_recording *recording, uint64_t number)
{
    hal_payload record = {0};
    hal_payload_u64(&record, number);
    hal_payload_u32(&record, recording->command_count);
    for (uint32_t c = 0; c < recording->command_count; c++) {
        const hal_command *command = &recording->commands[c];
        const hal_dump_kernel *kernel = hal_dump_kernel_find(command->kernel);
        hal_payload_u16(&record, command->kind);
        hal_payload_u16(&record, command->flags);
        hal_payload_u32(&record, command->binding_count);
        hal_payload_u32(&record, command->scalar_bytes);
        for (uint32_t i = 0; i < 3; i++) {
            hal_payload_u32(&record, command->grid[i]);
        }
        hal_payload_u32(&record, 0);
        hal_payload_u64(&record, kernel ? kernel->id : 0);
        for (uint32_t i = 0; i < command->binding_count; i++) {
            const hal_binding *binding = &recording->bindings[command->binding_first + i];
            const hal_dump_memory *memory =
                binding->length > 0 ? hal_dump_memory_find(binding->memory) : NULL;
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

static hal_status put_batch_and_inputs(queue_file *to, const hal_event *event)
{
    const hal_recording *recording = event->recording;
    const hal_timeline *timeline = &event->queue->timeline;
    const uint64_t earlier = atomic_load(&timeline->submitted) - timeline->base;
    hal_dump_spans used = {0};
    hal_status status = put_objects(to, recording);
    if (status == HAL_OK) {
        status = hal_dump_spans_collect(recording, false, &used);
    }
    if (status == HAL_OK) {
        status = hal_dump_spans_collect(recording, true, &to->written);
    }
    if (status == HAL_OK) {
        status = hal_dump_contents_update(
            &to->contents, HAL_DUMP_DATA, &used,
            (hal_plugin_wait){.queue = earlier ? timeline->handle : NULL, .value = earlier});
    }
    if (status == HAL_OK) {
        status = put_batch(to, recording, event->value - timeline->base);
    }
    free(used.items);
    return status == HAL_OK ? hal_dump_file_flush(&to->file) : status;
}

void hal_dump_queue_set_folder(const char *new_folder)
{
    folder = new_folder;
}

hal_status hal_dump_queue_submitting(const hal_event *event)
{
    queue_file *to = NULL;
    if (event->recording->command_count == 0) {
        return HAL_OK; /* only waits */
    }
    hal_status status = file_find(event->queue, &to);
    if (status == HAL_OK) {
        status = wait_for_earlier(event);
    }
    if (status == HAL_OK) {
        status = put_batch_and_inputs(to, event);
    }
    if (to) {
        to->in_flight = status == HAL_OK;
    }
    return status;
}

void hal_dump_queue_submitted(const hal_event *event, hal_status status)
{
    const hal_timeline *timeline = &event->queue->timeline;
    queue_file *to = hal_map_get(&file_of, hal_map_key(event->queue));
    if (!to || !to->in_flight) {
        return;
    }
    const uint64_t value = event->value - timeline->base;
    hal_payload outcome = {0};
    hal_status written = HAL_OK;
    if (status == HAL_OK) {
        status = event->device->plugin->wait(timeline->handle, value, UINT64_MAX);
    }
    if (status == HAL_OK) {
        written =
            hal_dump_contents_update(&to->contents, HAL_DUMP_RESULT, &to->written,
                                     (hal_plugin_wait){.queue = timeline->handle, .value = value});
    }
    hal_payload_u32(&outcome, (uint32_t)status);
    hal_payload_string(&outcome, status == HAL_OK ? "" : hal_status_message());
    if (written == HAL_OK) {
        written = hal_dump_file_put(&to->file, HAL_DUMP_OUTCOME, &outcome, NULL, 0);
    }
    if (written == HAL_OK) {
        written = put_values(to);
    }
    if (written == HAL_OK) {
        written = hal_dump_file_flush(&to->file);
    }
    if (written != HAL_OK) {
        to->failed = hal_host_failed(written, "after an earlier batch");
        to->message = strdup(hal_status_message());
    }
    hal_payload_free(&outcome);
    to->in_flight = false;
}

void hal_dump_queue_set_calls(const hal_queue *queue, const char *calls)
{
    queue_file *to = NULL;
    if (file_find(queue, &to) == HAL_OK) {
        free(to->calls);
        to->calls = strdup(calls);
    }
}

void hal_dump_queue_note_value(const hal_queue *queue, const hal_range *range, hal_type type,
                               uint64_t number, const char *call)
{
    queue_file *to = NULL;
    const hal_memory *in = atomic_load(&range->buffer->memory);
    const hal_dump_memory *memory = hal_dump_memory_find(in->handle);
    /* The commands of a graph in recording have not run. */
    if (queue->graph || !memory || file_find(queue, &to) != HAL_OK ||
        !HAL_ARRAY_RESERVE(to->values, to->value_capacity, (uint64_t)to->value_count + 1)) {
        return;
    }
    hal_payload *record = &to->values[to->value_count++];
    *record = (hal_payload){0};
    hal_payload_u64(record, number);
    hal_payload_u64(record, memory->id);
    hal_payload_u64(record, range->offset);
    hal_payload_u64(record, range->length);
    hal_payload_u32(record, type);
    hal_payload_string(record, call);
    hal_payload_string(record, to->calls ? to->calls : call);
    if (queue->recorder.recording->command_count == 0) {
        put_values(to);
    }
}

void hal_dump_queue_memory_freeing(const hal_dump_memory *memory)
{
    for (uint32_t i = 0; i < file_of.capacity; i++) {
        queue_file *to = file_of.entries[i].value;
        if (to && !to->failed) {
            to->failed = hal_dump_contents_forget(&to->contents, memory);
        }
    }
}

void hal_dump_queue_device_closing(const hal_device *device)
{
    for (uint32_t i = 0; i < file_of.capacity;) {
        queue_file *file = file_of.entries[i].value;
        if (file && file->device == device) {
            file_end(file); /* may move another one to i */
        } else {
            i++;
        }
    }
}
