/* mock_shim.c: driver.h without Metal; see mock_shim.h. Objects are counted blocks. */
#include "mock_shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mock_state mock;

typedef struct object {
    int references;
    uint64_t bytes; /* of a buffer */
    char name;      /* of a buffer: a letter by the order of creation */
    uint64_t value; /* of an event */
    void *host;
    struct object *signal; /* of commands: the event that they set, to */
    uint64_t signal_value;
} object;

static char next_name;

void mock_reset(void)
{
    const int objects = mock.objects;
    memset(&mock, 0, sizeof mock);
    mock.objects = objects;
    mock.progress = METAL_DONE;
    mock.max_group_items = 1024;
    mock.subgroup_width = 32;
    next_name = 'A';
}

static void say(const char *format, ...)
{
    const size_t used = strlen(mock.calls);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(mock.calls + used, sizeof mock.calls - used, format, arguments);
    va_end(arguments);
}

static void *object_new(void)
{
    object *made = calloc(1, sizeof *made);
    made->references = 1;
    mock.objects++;
    return made;
}

void metal_shim_retain(void *any)
{
    if (any) {
        ((object *)any)->references++;
    }
}

void metal_shim_release(void *any)
{
    object *which = any;
    if (which && --which->references == 0) {
        mock.allocated -= which->bytes;
        mock.objects--;
        free(which->host);
        free(which);
    }
}

uint32_t metal_shim_devices(metal_gpu **gpus, uint32_t capacity)
{
    const uint32_t count = capacity < 3 ? capacity : 3;
    for (uint32_t i = 0; i < count; i++) {
        gpus[i] = object_new();
        ((object *)gpus[i])->value = i;
    }
    return count;
}

void metal_shim_describe(metal_gpu *gpu, metal_facts *facts)
{
    const uint64_t which = ((object *)(void *)gpu)->value;
    memset(facts, 0, sizeof *facts);
    snprintf(facts->name, sizeof facts->name, "%s",
             which == 0   ? "Mock M1 Max"
             : which == 1 ? "Mock Radeon"
                          : "Mock GeForce 320M");
    snprintf(facts->system, sizeof facts->system, "Version 13.0");
    facts->registry_id = 0x1000 + which;
    facts->working_set = UINT64_C(1) << 30;
    facts->max_buffer = UINT64_C(1) << 29;
    facts->max_threads[0] = facts->max_threads[1] = facts->max_threads[2] = 1024;
    facts->shared_bytes = 32768;
    facts->apple_family = which == 0 ? 7 : 0;
    facts->mac2 = which < 2;
    facts->unified = which == 0;
}

uint64_t metal_shim_allocated(metal_gpu *gpu)
{
    (void)gpu;
    return mock.allocated;
}

metal_buffer *metal_shim_buffer(metal_gpu *gpu, uint64_t bytes, bool is_private, void **host)
{
    (void)gpu;
    *host = NULL;
    if (mock.no_buffer) {
        return NULL;
    }
    object *made = object_new();
    made->bytes = bytes;
    made->name = next_name++;
    made->host = is_private ? NULL : calloc(1, bytes < 4096 ? bytes : 4096);
    mock.allocated += bytes;
    *host = made->host;
    return (metal_buffer *)(void *)made;
}

metal_buffer *metal_shim_buffer_of_host(metal_gpu *gpu, void *pages, uint64_t bytes)
{
    (void)gpu;
    (void)pages;
    (void)bytes;
    return NULL;
}

uint64_t metal_shim_buffer_length(metal_buffer *buffer)
{
    return ((object *)(void *)buffer)->bytes;
}

metal_stream *metal_shim_stream(metal_gpu *gpu, uint32_t commands_in_flight)
{
    (void)gpu;
    (void)commands_in_flight;
    return object_new();
}

metal_fence *metal_shim_fence(metal_gpu *gpu)
{
    (void)gpu;
    return object_new();
}

metal_event *metal_shim_event(metal_gpu *gpu)
{
    (void)gpu;
    return object_new();
}

uint64_t metal_shim_event_value(metal_event *event)
{
    return ((object *)(void *)event)->value;
}

void metal_shim_event_set(metal_event *event, uint64_t value)
{
    ((object *)(void *)event)->value = value;
}

bool metal_shim_event_wait(metal_event *event, uint64_t value, uint64_t milliseconds)
{
    (void)milliseconds;
    return ((object *)(void *)event)->value >= value;
}

void *metal_shim_library(metal_gpu *gpu, const char *source, metal_error *error)
{
    (void)gpu;
    mock.libraries++;
    if (!strstr(source, "kernel void")) {
        snprintf(error->message, sizeof error->message, "program_source: no kernel");
        return NULL;
    }
    return object_new();
}

metal_pipeline *metal_shim_pipeline(metal_gpu *gpu, void *library,
                                    const metal_pipeline_request *request,
                                    metal_pipeline_facts *facts, metal_error *error)
{
    (void)gpu;
    (void)library;
    (void)error;
    mock.archives_used += request->archive && request->only_archive;
    *facts = (metal_pipeline_facts){.max_group_items = mock.max_group_items,
                                    .subgroup_width = mock.subgroup_width};
    return object_new();
}

metal_archive *metal_shim_archive(metal_gpu *gpu, const char *path, metal_error *error)
{
    (void)gpu;
    char word[8] = "";
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (file) {
        fread(word, 1, 6, file);
        fclose(file);
    }
    if (path && strcmp(word, "binary") != 0) {
        snprintf(error->message, sizeof error->message, "no archive");
        return NULL;
    }
    return object_new();
}

bool metal_shim_archive_add(metal_archive *archive, void *library,
                            const metal_pipeline_request *request, metal_error *error)
{
    (void)error;
    return archive && library && request != NULL;
}

bool metal_shim_archive_save(metal_archive *archive, const char *path, metal_error *error)
{
    (void)archive;
    (void)error;
    FILE *file = fopen(path, "wb");
    if (!file) {
        return false;
    }
    mock.archives_written++;
    fputs("binary", file);
    return fclose(file) == 0;
}

void metal_shim_temporary_folder(char *path, size_t size)
{
    snprintf(path, size, "/tmp/");
}

metal_commands *metal_shim_commands(metal_stream *stream)
{
    (void)stream;
    if (mock.no_commands) {
        return NULL;
    }
    return object_new();
}

void metal_shim_commands_wait_event(metal_commands *commands, metal_event *event, uint64_t value)
{
    (void)commands;
    (void)event;
    say("await %d; ", (int)value);
}

void metal_shim_commands_signal_event(metal_commands *commands, metal_event *event, uint64_t value)
{
    object *which = (object *)(void *)commands;
    which->signal = (object *)(void *)event;
    which->signal_value = value;
    say("signal %d; ", (int)value);
}

void metal_shim_commands_commit(metal_commands *commands)
{
    (void)commands;
    mock.commits++;
    say("commit\n");
}

void metal_shim_commands_finish(metal_commands *commands)
{
    (void)commands;
}

metal_progress metal_shim_commands_progress(metal_commands *commands, double *end,
                                            metal_error *error)
{
    object *which = (object *)(void *)commands;
    if (mock.progress == METAL_DONE) {
        which->signal->value = which->signal_value;
        *end = 1e-3 * (double)which->signal_value;
    } else if (mock.progress == METAL_FAILED) {
        error->code = mock.error_code;
        snprintf(error->message, sizeof error->message, "mock");
    }
    return mock.progress;
}

metal_compute *metal_shim_compute(metal_commands *commands, metal_fence *fence)
{
    (void)commands;
    if (mock.no_encoder) {
        return NULL;
    }
    say("compute%s; ", fence ? " after fence" : "");
    return object_new();
}

void metal_shim_compute_pipeline(metal_compute *compute, metal_pipeline *pipeline)
{
    (void)compute;
    (void)pipeline;
    say("pipeline; ");
}

void metal_shim_compute_buffer(metal_compute *compute, metal_buffer *buffer, uint64_t offset,
                               uint32_t index)
{
    (void)compute;
    say("buffer %u %c+%d; ", index, ((object *)(void *)buffer)->name, (int)offset);
}

void metal_shim_compute_offset(metal_compute *compute, uint64_t offset, uint32_t index)
{
    (void)compute;
    say("offset %u +%d; ", index, (int)offset);
}

void metal_shim_compute_bytes(metal_compute *compute, const void *bytes, uint32_t length,
                              uint32_t index)
{
    (void)compute;
    (void)bytes;
    say("bytes %u %u; ", index, length);
}

void metal_shim_compute_dispatch(metal_compute *compute, const uint32_t groups[3],
                                 const uint32_t items[3])
{
    (void)compute;
    say("dispatch %u of %u; ", groups[0], items[0]);
}

void metal_shim_compute_dispatch_indirect(metal_compute *compute, metal_buffer *groups,
                                          uint64_t offset, const uint32_t items[3])
{
    (void)compute;
    say("dispatch %c+%d of %u; ", ((object *)(void *)groups)->name, (int)offset, items[0]);
}

void metal_shim_compute_barrier(metal_compute *compute)
{
    (void)compute;
    say("barrier; ");
}

void metal_shim_compute_end(metal_compute *compute, metal_fence *fence)
{
    (void)fence;
    say("end; ");
    metal_shim_release(compute);
}

metal_blit *metal_shim_blit(metal_commands *commands, metal_fence *fence)
{
    (void)commands;
    if (mock.no_encoder) {
        return NULL;
    }
    say("blit%s; ", fence ? " after fence" : "");
    return object_new();
}

void metal_shim_blit_copy(metal_blit *blit, metal_buffer *from, uint64_t from_offset,
                          metal_buffer *to, uint64_t to_offset, uint64_t bytes)
{
    (void)blit;
    say("copy %c+%d %c+%d %d; ", ((object *)(void *)from)->name, (int)from_offset,
        ((object *)(void *)to)->name, (int)to_offset, (int)bytes);
}

void metal_shim_blit_fill(metal_blit *blit, metal_buffer *buffer, uint64_t offset, uint64_t bytes,
                          uint8_t value)
{
    (void)blit;
    say("fill %c+%d %d with %u; ", ((object *)(void *)buffer)->name, (int)offset, (int)bytes,
        value);
}

void metal_shim_blit_end(metal_blit *blit, metal_fence *fence)
{
    (void)fence;
    say("end; ");
    metal_shim_release(blit);
}
