/* buffer.c: memory of every kind, through every way in and out; limits, mapping, the pool. */
#include <hal/buffer.h>

#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"

static const char *const kind_names[HAL_MEMORY_KIND_COUNT] = {"device", "upload", "download",
                                                              "shared"};

/* write -> kernel -> copy -> fill of a part -> read, all in memory of one kind. */
static void through_kind(case_run *run, const void *parameters)
{
    const hal_memory_kind kind = *(const uint32_t *)parameters;
    enum { COUNT = 1003 };
    uint32_t words[COUNT];
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = case_buffer(run, run->device, kind, sizeof words);
    hal_buffer *y = case_buffer(run, run->device, kind, sizeof words);
    hal_buffer *z = case_buffer(run, run->device, kind, sizeof words);
    for (uint32_t i = 0; i < COUNT; i++) {
        words[i] = i ^ 0x5a5a;
    }
    const hal_range part = {z, 400, 80};
    case_ok(run, hal_queue_write(run->queue, x, 0, words, sizeof words), "write");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 5, 9);
    case_ok(run, hal_queue_copy(run->queue, range_of(y), range_of(z)), "copy");
    case_ok(run, hal_queue_fill(run->queue, part, 0x01020304), "fill");
    case_ok(run, hal_queue_read(run->queue, z, 0, sizeof words, words), "read");
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t expected = i >= 100 && i < 120 ? 0x01020304 : (i ^ 0x5a5a) * 5 + 9;
        case_check(run, words[i] == expected, "word %u is 0x%x instead of 0x%x", i, words[i],
                   expected);
    }
}

static void map_kind(case_run *run, const void *parameters)
{
    const hal_memory_kind kind = *(const uint32_t *)parameters;
    enum { COUNT = 500 };
    void *pointer = NULL, *again = NULL;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *buffer = case_buffer(run, run->device, kind, COUNT * 4);
    hal_buffer *out = words_create(run, run->queue, COUNT, 0, 0);
    if (kind == HAL_MEMORY_DEVICE) {
        case_claim(run, (run->info->features & HAL_FEATURE_MAP_DEVICE) != 0,
                   "mapping of device memory");
    }
    case_ok(run, hal_buffer_map_begin(buffer, &pointer), "map_begin");
    case_check(run, pointer && (uintptr_t)pointer % 64 == 0, "mapped at %p", pointer);
    for (uint32_t i = 0; i < COUNT; i++) {
        memcpy((char *)pointer + 4 * (size_t)i, &i, 4);
    }
    case_expect(run, hal_buffer_map_begin(buffer, &again), HAL_ERROR_INVALID_STATE, NULL,
                "a second mapping");
    case_ok(run, hal_buffer_map_end(buffer), "map_end");
    case_expect(run, hal_buffer_map_end(buffer), HAL_ERROR_INVALID_STATE, NULL,
                "the end of no mapping");
    scale_dispatch(run, run->queue, kernel, buffer, out, COUNT, 3, 1);
    words_check(run, run->queue, out, COUNT, 1, 3, "what the device read");
    scale_dispatch(run, run->queue, kernel, out, buffer, COUNT, 2, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_buffer_map_begin(buffer, &pointer), "map_begin");
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t word;
        memcpy(&word, (const char *)pointer + 4 * (size_t)i, 4);
        case_check(run, word == 2 * (3 * i + 1), "mapped word %u is %u", i, word);
    }
    case_ok(run, hal_buffer_map_end(buffer), "map_end");
}

/* Sizes around alignments: the last byte can be written and read, also when it is odd. */
static void sizes(case_run *run, const void *parameters)
{
    static const uint64_t bytes[] = {1, 2, 3, 4, 5, 255, 256, 257, 4095, 4097, 65537, 1000001};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        uint8_t *data = case_allocate(run, bytes[i], 1), *read = case_allocate(run, bytes[i], 1);
        for (uint64_t k = 0; k < bytes[i]; k++) {
            data[k] = (uint8_t)(k * 7 + 3);
        }
        hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes[i]);
        case_ok(run, hal_queue_write(run->queue, buffer, 0, data, bytes[i]), "write");
        case_ok(run, hal_queue_read(run->queue, buffer, 0, bytes[i], read), "read");
        case_check(run, memcmp(data, read, bytes[i]) == 0, "%llu bytes are not what was written",
                   (unsigned long long)bytes[i]);
        case_check(run, hal_buffer_get_bytes(buffer) == bytes[i], "%llu bytes are said to be %llu",
                   (unsigned long long)bytes[i], (unsigned long long)hal_buffer_get_bytes(buffer));
    }
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        uint8_t byte = 0;
        hal_buffer *empty = case_buffer(run, run->device, kind, 0);
        case_check(run, hal_buffer_get_bytes(empty) == 0, "an empty buffer has bytes");
        case_ok(run, hal_queue_write(run->queue, empty, 0, &byte, 0), "writing nothing");
        case_ok(run, hal_queue_read(run->queue, empty, 0, 0, &byte), "reading nothing");
        case_expect(run, hal_queue_write(run->queue, empty, 0, &byte, 1),
                    HAL_ERROR_INVALID_ARGUMENT, NULL, "a byte written to an empty buffer");
    }
}

static void refusals(case_run *run, const void *parameters)
{
    hal_buffer *buffer = NULL;
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    case_expect(run, hal_buffer_create(run->device, (hal_memory_kind)99, 64, &buffer), wrong, NULL,
                "kind 99");
    case_expect(run, hal_buffer_create(NULL, HAL_MEMORY_DEVICE, 64, &buffer), wrong, NULL,
                "a null device");
    case_expect(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, 64, NULL), wrong, NULL,
                "a null result");
    void *pointer;
    case_expect(run, hal_buffer_map_begin(NULL, &pointer), wrong, NULL, "mapping of null");
}

static void too_large(case_run *run, const void *parameters)
{
    hal_buffer *buffer = NULL;
    if (run->info->max_allocation < UINT64_MAX) {
        case_expect(run,
                    hal_buffer_create(run->device, HAL_MEMORY_DEVICE, run->info->max_allocation + 1,
                                      &buffer),
                    HAL_ERROR_UNSUPPORTED, NULL, "more than the largest allocation");
    }
    const hal_status status =
        hal_buffer_create(run->device, HAL_MEMORY_DEVICE, UINT64_MAX, &buffer);
    case_check(run, status == HAL_ERROR_UNSUPPORTED || status == HAL_ERROR_OUT_OF_MEMORY,
               "2^64 - 1 bytes gave %s", hal_status_name(status));
    case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, 4096, &buffer),
            "a small buffer afterwards");
    hal_buffer_release(buffer);
}

/* Released memory is reused without asking the device. */
static void reuse(case_run *run, const void *parameters)
{
    hal_memory_statistics before = {0}, after = {0};
    hal_buffer *buffer = NULL;
    for (int turn = 0; turn < 101; turn++) {
        if (turn == 1) {
            case_ok(run, hal_device_get_memory(run->device, &before), "hal_device_get_memory");
        }
        case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, 123456, &buffer),
                "hal_buffer_create");
        hal_buffer_release(buffer);
    }
    case_ok(run, hal_device_get_memory(run->device, &after), "hal_device_get_memory");
    case_check(run,
               after.reuse_count >= before.reuse_count + 100 &&
                   after.allocation_count == before.allocation_count,
               "of 100 buffers of one size %llu were reused and %llu allocated",
               (unsigned long long)(after.reuse_count - before.reuse_count),
               (unsigned long long)(after.allocation_count - before.allocation_count));
}

static void accessors(case_run *run, const void *parameters)
{
    case_check(run,
               hal_buffer_get_bytes(NULL) == 0 && hal_buffer_get_kind(NULL) == 0 &&
                   !hal_buffer_get_device(NULL) && !hal_buffer_retain(NULL),
               "a null buffer gives something");
    hal_buffer_release(NULL);
    hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_SHARED, 77);
    case_check(run,
               hal_buffer_get_bytes(buffer) == 77 &&
                   hal_buffer_get_kind(buffer) == HAL_MEMORY_SHARED &&
                   hal_buffer_get_device(buffer) == run->device,
               "size, kind or device is not what was asked for");
    hal_buffer_set_label(buffer, "a label that is much longer than the 47 characters it has");
    hal_buffer_set_label(buffer, NULL);
    hal_buffer_set_label(NULL, "x");
    case_check(run, hal_buffer_retain(buffer) == buffer, "hal_buffer_retain gives another");
    hal_buffer_release(buffer);
    case_check(run, hal_buffer_get_bytes(buffer) == 77, "released with a reference left");
}

void cases_hal_buffer(case_list *list)
{
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        case_add(list, through_kind, &kind, sizeof kind, "buffer/through(kind=%s)",
                 kind_names[kind]);
        case_add(list, map_kind, &kind, sizeof kind, "buffer/map(kind=%s)", kind_names[kind]);
    }
    case_add(list, sizes, NULL, 0, "buffer/sizes");
    case_add(list, refusals, NULL, 0, "buffer/refusals");
    case_add(list, too_large, NULL, 0, "buffer/too_large");
    case_add(list, reuse, NULL, 0, "buffer/reuse");
    case_add(list, accessors, NULL, 0, "buffer/accessors");
}
