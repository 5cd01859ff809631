/* reserved.c: buffers whose parts get memory and lose it. */
#include <hal/hal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "case/cases.h"
#include "hal/fixture.h"

enum { GROWTHS = 5 };

static void buffer_release(void *buffer)
{
    hal_buffer_release(buffer);
}

static hal_buffer *buffer_reserve(case_run *run, uint64_t parts, uint64_t *part)
{
    hal_buffer *buffer = NULL;
    case_claim(run, (run->info->features & HAL_FEATURE_VIRTUAL_MEMORY) != 0, "virtual memory");
    case_ok(run, hal_device_get_part_bytes(run->device, part), "hal_device_get_part_bytes");
    case_ok(run, hal_buffer_reserve(run->device, parts * *part, &buffer), "hal_buffer_reserve");
    case_own(run, buffer_release, buffer);
    return buffer;
}

static void words_fill(case_run *run, hal_buffer *buffer, uint64_t offset, uint64_t bytes,
                       uint32_t pattern)
{
    case_ok(run, hal_queue_fill(run->queue, (hal_range){buffer, offset, bytes}, pattern), "fill");
}

static void word_check(case_run *run, hal_buffer *buffer, uint64_t offset, uint32_t wanted,
                       const char *what)
{
    uint32_t word = 0;
    case_ok(run, hal_queue_read(run->queue, buffer, offset, 4, &word), "hal_queue_read");
    case_check(run, word == wanted, "%s: the word at %llu is %u instead of %u", what,
               (unsigned long long)offset, word, wanted);
}

/* An array grows in place, while batches that use its first parts are in flight. */
static void grows(case_run *run, const void *parameters)
{
    uint64_t part = 0;
    hal_buffer *buffer = buffer_reserve(run, 1 + GROWTHS, &part);
    hal_kernel *kernel = scale_kernel(run, run->device);
    case_ok(run, hal_buffer_commit(buffer, 0, part), "hal_buffer_commit");
    words_fill(run, buffer, 0, part, 7);
    for (uint32_t i = 1; i <= GROWTHS; i++) {
        case_ok(run, hal_buffer_commit(buffer, i * part, part), "hal_buffer_commit");
        words_fill(run, buffer, i * part, part, 7 + i);
    }
    hal_buffer *result = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 4);
    for (uint32_t i = 0; i <= GROWTHS; i++) {
        const hal_range ranges[2] = {{buffer, (i + 1) * part - 4, 4}, range_of(result)};
        case_ok(run, hal_queue_copy(run->queue, ranges[0], ranges[1]), "copy");
        words_check(run, run->queue, result, 1, 7 + i, 0, "the last word of a part");
        word_check(run, buffer, i * part, 7 + i, "the first word of a part");
    }
    /* A kernel across parts. */
    const uint32_t count = (uint32_t)(2 * part / 4);
    hal_buffer *sums = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 2 * part);
    scale_dispatch(run, run->queue, kernel, buffer, sums, count, 3, 1);
    word_check(run, sums, part - 4, 22, "the last result of the first part");
    word_check(run, sums, part, 25, "the first result of the second part");
}

/* Parts lose their memory and get other memory; those next to them keep theirs. */
static void shrinks(case_run *run, const void *parameters)
{
    uint64_t part = 0;
    hal_buffer *buffer = buffer_reserve(run, 4, &part);
    case_ok(run, hal_buffer_commit(buffer, 0, 4 * part), "hal_buffer_commit");
    words_fill(run, buffer, 0, 4 * part, 5);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_buffer_decommit(buffer, part, 2 * part), "hal_buffer_decommit");
    case_expect(run, hal_queue_fill(run->queue, (hal_range){buffer, part, 4}, 1),
                HAL_ERROR_INVALID_ARGUMENT, "hal_buffer_commit", "a fill without memory");
    word_check(run, buffer, part - 4, 5, "the part before");
    word_check(run, buffer, 3 * part, 5, "the part after");
    case_ok(run, hal_buffer_commit(buffer, 2 * part, part), "hal_buffer_commit");
    words_fill(run, buffer, 2 * part, part, 6);
    word_check(run, buffer, 2 * part, 6, "a part with new memory");
    word_check(run, buffer, 3 * part - 4, 6, "a part with new memory");
    word_check(run, buffer, 3 * part, 5, "the part after");
}

/* Parts with memory at each power of two of 8 GiB of addresses. */
static void far_parts(case_run *run, const void *parameters)
{
    enum { POWERS = 33 };
    uint64_t part = 0;
    case_claim(run, (run->info->features & HAL_FEATURE_VIRTUAL_MEMORY) != 0, "virtual memory");
    case_ok(run, hal_device_get_part_bytes(run->device, &part), "hal_device_get_part_bytes");
    hal_buffer *buffer = buffer_reserve(run, (UINT64_C(1) << POWERS) / part, &part);
    for (uint32_t k = 0; k < POWERS; k++) {
        if (UINT64_C(1) << k >= part) {
            case_ok(run, hal_buffer_commit(buffer, UINT64_C(1) << k, part), "hal_buffer_commit");
            words_fill(run, buffer, UINT64_C(1) << k, 4, 70 + k);
        }
    }
    for (uint32_t k = 0; k < POWERS; k++) {
        if (UINT64_C(1) << k >= part) {
            word_check(run, buffer, UINT64_C(1) << k, 70 + k, "a far part");
            case_ok(run, hal_buffer_decommit(buffer, UINT64_C(1) << k, part),
                    "hal_buffer_decommit");
        }
    }
}

/* Twice as many addresses as the device has memory, of which the last part is used. */
static void beyond_memory(case_run *run, const void *parameters)
{
    hal_memory_statistics memory = {0};
    struct rlimit addresses;
    uint64_t part = 0;
    case_claim(run, (run->info->features & HAL_FEATURE_VIRTUAL_MEMORY) != 0, "virtual memory");
    case_ok(run, hal_device_get_part_bytes(run->device, &part), "hal_device_get_part_bytes");
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur != RLIM_INFINITY) {
        case_unsupported(run, "the addresses of the process are limited");
    }
    const uint64_t parts = 2 * (memory.total_bytes / part) + 1;
    hal_buffer *buffer = buffer_reserve(run, parts, &part);
    case_ok(run, hal_buffer_commit(buffer, (parts - 1) * part, part), "hal_buffer_commit");
    words_fill(run, buffer, (parts - 1) * part, part, 8);
    word_check(run, buffer, parts * part - 4, 8, "the end of more addresses than memory");
}

/* Memory that was returned can be given again. */
static void returned(case_run *run, const void *parameters)
{
    uint64_t part = 0;
    hal_buffer *buffer = buffer_reserve(run, 64, &part);
    for (uint32_t turn = 0; turn < 3; turn++) {
        case_ok(run, hal_buffer_commit(buffer, 0, 64 * part), "hal_buffer_commit");
        words_fill(run, buffer, 0, 64 * part, turn);
        word_check(run, buffer, 64 * part - 4, turn, "the last word");
        case_ok(run, hal_buffer_decommit(buffer, 0, 64 * part), "hal_buffer_decommit");
    }
}

static void protects(case_run *run, const void *parameters)
{
    uint64_t part = 0;
    hal_buffer *buffer = buffer_reserve(run, 2, &part);
    case_ok(run, hal_buffer_commit(buffer, 0, 2 * part), "hal_buffer_commit");
    words_fill(run, buffer, 0, 2 * part, 9);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_buffer_protect(buffer, part, part, HAL_ACCESS_READ), "hal_buffer_protect");
    word_check(run, buffer, part, 9, "a part that is read only");
    case_expect(run, hal_queue_fill(run->queue, (hal_range){buffer, part, 4}, 1),
                HAL_ERROR_INVALID_ARGUMENT, "hal_buffer_protect", "a fill of a read-only part");
    words_fill(run, buffer, 0, part, 10);
    word_check(run, buffer, 0, 10, "the part before");
    case_ok(run, hal_buffer_protect(buffer, part, part, HAL_ACCESS_READ_WRITE),
            "hal_buffer_protect");
    words_fill(run, buffer, part, part, 11);
    word_check(run, buffer, 2 * part - 4, 11, "a part that may be written again");
}

/* Lets the process have `room` more bytes of private memory. False where that cannot be limited. */
static bool data_limit(uint64_t room)
{
    unsigned long long kib = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file) && kib == 0) {
        (void)!sscanf(line, "VmData: %llu", &kib);
    }
    if (file) {
        fclose(file);
    }
    const rlim_t most = (rlim_t)kib * 1024 + room;
    return kib > 0 && setrlimit(RLIMIT_DATA, &(struct rlimit){most, RLIM_INFINITY}) == 0;
}

/* More memory than there is: no part gets any, and all is well with less. */
static void refused(case_run *run, const void *parameters)
{
    const uint64_t bytes = UINT64_C(8) << 30, room = UINT64_C(64) << 20;
    uint64_t part = 0;
    struct rlimit before;
#ifdef CASE_SANITIZED
    case_unsupported(run, "a sanitizer ends the process without memory");
#endif
    case_claim(run, (run->info->features & HAL_FEATURE_VIRTUAL_MEMORY) != 0, "virtual memory");
    case_ok(run, hal_device_get_part_bytes(run->device, &part), "hal_device_get_part_bytes");
    if (run->info->kind == HAL_DEVICE_DISCRETE) {
        case_unsupported(run, "the memory of the device cannot be limited here");
    }
    const uint64_t parts = bytes / part > 2 ? bytes / part : 2;
    hal_buffer *buffer = buffer_reserve(run, parts, &part);
    getrlimit(RLIMIT_DATA, &before);
    const bool is_limited = data_limit(room);
    const hal_status status = is_limited ? hal_buffer_commit(buffer, 0, parts * part) : HAL_OK;
    setrlimit(RLIMIT_DATA, &before);
    if (status == HAL_OK) {
        case_unsupported(run, "the memory of a process cannot be limited here");
    }
    case_expect(run, status, HAL_ERROR_OUT_OF_MEMORY, NULL, "memory for too many parts");
    for (uint64_t i = 0; i < parts; i += parts - 1) {
        case_ok(run, hal_buffer_commit(buffer, i * part, part), "hal_buffer_commit");
        words_fill(run, buffer, i * part, part, 3 + (uint32_t)i);
        word_check(run, buffer, (i + 1) * part - 4, 3 + (uint32_t)i, "the end of a part");
    }
}

static void arguments(case_run *run, const void *parameters)
{
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT, state = HAL_ERROR_INVALID_STATE;
    uint64_t part = 0;
    void *pointer = NULL;
    hal_buffer *none = NULL;
    hal_buffer *buffer = buffer_reserve(run, 2, &part);
    case_check(run, part > 0 && (part & (part - 1)) == 0, "a part has %llu bytes",
               (unsigned long long)part);
    case_expect(run, hal_buffer_reserve(run->device, part + 4, &none), wrong, "bytes",
                "a size that is no multiple");
    case_expect(run, hal_buffer_commit(buffer, 0, 3 * part), wrong, "part", "a range beyond");
    case_expect(run, hal_buffer_commit(buffer, 4, part), wrong, "part", "a range within parts");
    case_expect(run, hal_buffer_decommit(buffer, 0, part), state, "without", "a part without");
    case_ok(run, hal_buffer_commit(buffer, 0, part), "hal_buffer_commit");
    case_expect(run, hal_buffer_commit(buffer, 0, 2 * part), state, "with", "a part with memory");
    case_expect(run, hal_buffer_map_begin(buffer, &pointer), HAL_ERROR_UNSUPPORTED, NULL,
                "a reserved buffer that is mapped");
    words_fill(run, buffer, 0, part, 1);
    case_expect(run, hal_buffer_decommit(buffer, 0, part), state, "hal_queue_wait",
                "a buffer that is in use");
    hal_buffer *other = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 64);
    case_expect(run, hal_buffer_commit(other, 0, 64), wrong, "hal_buffer_reserve",
                "a buffer that is not reserved");
}

void cases_hal_reserved(case_list *list)
{
    case_add(list, grows, NULL, 0, "reserved/grows");
    case_add(list, shrinks, NULL, 0, "reserved/shrinks");
    case_add(list, far_parts, NULL, 0, "reserved/far");
    case_add(list, beyond_memory, NULL, 0, "reserved/beyond_memory");
    case_add(list, returned, NULL, 0, "reserved/returned");
    case_add(list, protects, NULL, 0, "reserved/protects");
    case_add(list, refused, NULL, 0, "reserved/refused");
    case_add(list, arguments, NULL, 0, "reserved/arguments");
}
