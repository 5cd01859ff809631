/* coherence.c: mapped memory that host and device write in turn: in one line of a cache, at offsets
 * within it, and only in part. */
#include <hal/hal.h>
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"

static const char *const kind_names[HAL_MEMORY_KIND_COUNT] = {"device", "upload", "download",
                                                              "shared"};

typedef struct mapped_case {
    hal_memory_kind kind;
    uint64_t offset; /* of the binding */
} mapped_case;

static void claim_mapping(case_run *run, hal_memory_kind kind)
{
    if (kind == HAL_MEMORY_DEVICE) {
        case_claim(run, (run->info->features & HAL_FEATURE_MAP_DEVICE) != 0,
                   "mapping of device memory");
    }
}

/* Writes start, start + step, ... through the host's view. */
static void words_map(case_run *run, hal_buffer *buffer, uint32_t count, uint32_t start,
                      uint32_t step)
{
    void *pointer = NULL;
    case_ok(run, hal_buffer_map_begin(buffer, &pointer), "hal_buffer_map_begin");
    case_check(run, (uintptr_t)pointer % 256 == 0, "mapped at %p, which is no multiple of 256",
               pointer);
    for (uint32_t i = 0; i < count; i++) {
        ((uint32_t *)pointer)[i] = start + i * step;
    }
    case_ok(run, hal_buffer_map_end(buffer), "hal_buffer_map_end");
}

static void bytes_check(case_run *run, const uint8_t *seen, const uint8_t *expected, uint32_t bytes,
                        const char *what)
{
    for (uint32_t i = 0; i < bytes; i++) {
        case_check(run, seen[i] == expected[i], "%s: byte %u is 0x%x instead of 0x%x", what, i,
                   seen[i], expected[i]);
    }
}

/* Kernels write some words of each line, then the host some bytes of the same lines, before it has
 * seen what the kernels wrote; then kernels again. */
static void one_line(case_run *run, const void *parameters)
{
    enum { LINES = 64, WORDS = 16, COUNT = LINES * WORDS, BYTES = 4 * COUNT };
    const hal_memory_kind kind = ((const mapped_case *)parameters)->kind;
    const uint32_t unit = run->info->binding_alignment > 16 ? run->info->binding_alignment / 4 : 4;
    uint32_t model[COUNT], seen[COUNT];
    uint8_t *bytes = (uint8_t *)model;
    claim_mapping(run, kind);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, 4, 1, 1);
    hal_buffer *buffer = case_buffer(run, run->device, kind, BYTES);
    hal_buffer *other = words_create(run, run->queue, COUNT, 0, 0);
    words_map(run, buffer, COUNT, 0x11000000, 3);
    for (uint32_t i = 0; i < COUNT; i++) {
        model[i] = 0x11000000 + 3 * i;
    }
    const uint32_t grid[3] = {1, 1, 1};
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < COUNT; i += 2 * unit) {
            const hal_range ranges[2] = {range_of(x), {buffer, 4ull * i, 16}};
            const scale_scalars scalars = {3, 7, turn + i};
            case_ok(
                run,
                hal_queue_dispatch(run->queue, kernel, grid, ranges, 2, &scalars, sizeof scalars),
                "hal_queue_dispatch");
            for (uint32_t k = 0; k < 3; k++) {
                model[i + k] = (k + 1) * 7 + turn + i;
            }
        }
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        for (uint32_t i = 13; i + 8 < BYTES; i += 64) { /* the last byte of a word, and some more */
            const uint8_t own[5] = {(uint8_t)i, (uint8_t)turn, 3, 4, 5};
            const uint32_t length = 2 + i / 64 % 4;
            case_ok(run, hal_queue_write(run->queue, buffer, i, own, length), "hal_queue_write");
            memcpy(bytes + i, own, length);
        }
    }
    for (uint32_t i = 0; i < COUNT; i += 2 * unit) { /* ranges that end within a word */
        case_ok(run, hal_queue_read(run->queue, buffer, 4ull * i, 9 + i / 2 % 3, seen),
                "hal_queue_read");
        bytes_check(run, (uint8_t *)seen, bytes + 4ull * i, 9 + i / 2 % 3,
                    "a part that the host reads");
    }
    case_ok(run, hal_queue_copy(run->queue, range_of(buffer), range_of(other)), "hal_queue_copy");
    case_ok(run, hal_queue_read(run->queue, buffer, 0, BYTES, seen), "hal_queue_read");
    bytes_check(run, (uint8_t *)seen, bytes, BYTES, "what the host sees");
    case_ok(run, hal_queue_read(run->queue, other, 0, BYTES, seen), "hal_queue_read");
    bytes_check(run, (uint8_t *)seen, bytes, BYTES, "what the device sees");
}

/* A kernel writes a part of a binding that it only writes, at an offset; the rest stays. */
static void partly_written(case_run *run, const void *parameters)
{
    enum { COUNT = 12000, WRITTEN = 100 };
    const mapped_case *tested = parameters;
    uint32_t *seen = case_allocate(run, COUNT, sizeof *seen);
    claim_mapping(run, tested->kind);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, WRITTEN, 1, 1);
    hal_buffer *buffer = case_buffer(run, run->device, tested->kind, 4 * COUNT);
    words_map(run, buffer, COUNT, 5, 7);
    const uint32_t first = (uint32_t)tested->offset / 4, grid[3] = {4, 1, 1};
    const hal_range ranges[2] = {range_of(x), {buffer, tested->offset, HAL_WHOLE}};
    const scale_scalars scalars = {WRITTEN, 3, 2};
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, ranges, 2, &scalars, sizeof scalars),
            "hal_queue_dispatch");
    case_ok(run, hal_queue_read(run->queue, buffer, 0, 4 * COUNT, seen), "hal_queue_read");
    for (uint32_t i = 0; i < COUNT; i++) {
        const bool is_written = i >= first && i < first + WRITTEN;
        const uint32_t expected = is_written ? 3 * (i - first + 1) + 2 : 5 + 7 * i;
        case_check(run, seen[i] == expected, "word %u, which the kernel %s, is %u instead of %u", i,
                   is_written ? "writes" : "does not write", seen[i], expected);
    }
}

/* 4 MiB and some words that the host writes, a kernel changes and the host reads. */
static void many_pages(case_run *run, const void *parameters)
{
    enum { COUNT = (1 << 20) + 129 };
    const hal_memory_kind kind = ((const mapped_case *)parameters)->kind;
    void *pointer = NULL;
    claim_mapping(run, kind);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = case_buffer(run, run->device, kind, 4ull * COUNT);
    hal_buffer *y = case_buffer(run, run->device, kind, 4ull * COUNT);
    words_map(run, x, COUNT, 9, 5);
    words_map(run, y, COUNT, 1, 0);
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 3, 1);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_buffer_map_begin(y, &pointer), "hal_buffer_map_begin");
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t word = ((const uint32_t *)pointer)[i], expected = (9 + 5 * i) * 3 + 1;
        case_check(run, word == expected, "mapped word %u is %u instead of %u", i, word, expected);
    }
    case_ok(run, hal_buffer_map_end(y), "hal_buffer_map_end");
}

/* Words at each power of two of 128 MiB that the host writes one by one, a kernel changes, and the
 * host reads one by one; then all that the host writes at once. */
static void far_words(case_run *run, const void *parameters)
{
    enum { FIRST_POWER = 10, LAST_POWER = 27, COUNT = LAST_POWER - FIRST_POWER + 1 };
    const uint64_t bytes = (UINT64_C(1) << LAST_POWER) + 4096;
    const hal_memory_kind kind = ((const mapped_case *)parameters)->kind;
    hal_memory_statistics memory = {0};
    void *pointer = NULL;
    claim_mapping(run, kind);
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    if (run->info->max_allocation < bytes || memory.free_bytes < 4 * bytes) {
        case_unsupported(run, "the device has %llu bytes free",
                         (unsigned long long)memory.free_bytes);
    }
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *buffer = case_buffer(run, run->device, kind, bytes);
    hal_buffer *seen = words_create(run, run->queue, COUNT, 0, 0);
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t k = 0; k < COUNT; k++) {
            const uint64_t at = UINT64_C(1) << (FIRST_POWER + k);
            const uint32_t word = 100 * turn + k, grid[3] = {1, 1, 1};
            const hal_range out = {seen, 4ull * k, 4}, in = {buffer, at, 4};
            case_ok(run, hal_queue_write(run->queue, buffer, at, &word, 4), "hal_queue_write");
            case_ok(run, hal_queue_copy(run->queue, in, out), "hal_queue_copy");
            const hal_range next[2] = {in, {buffer, at + 256, 4}};
            const scale_scalars scalars = {1, 3, 1};
            case_ok(run,
                    hal_queue_dispatch(run->queue, kernel, grid, next, 2, &scalars, sizeof scalars),
                    "hal_queue_dispatch");
            if (turn == 0) { /* the host writes the next word itself, as no batch uses the buffer */
                case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
            }
        }
        words_check(run, run->queue, seen, COUNT, 100 * turn, 1, "what the device sees");
        for (uint32_t k = 0; k < COUNT; k++) {
            const uint64_t at = (UINT64_C(1) << (FIRST_POWER + k)) + 256;
            uint32_t word = 0;
            case_ok(run, hal_queue_read(run->queue, buffer, at, 4, &word), "hal_queue_read");
            case_check(run, word == 3 * (100 * turn + k) + 1,
                       "the host sees %u at %llu, where a kernel wrote %u", word,
                       (unsigned long long)at, 3 * (100 * turn + k) + 1);
        }
    }
    for (uint32_t turn = 0; turn < 3; turn++) {
        const uint32_t word = 55 + turn;
        case_ok(run, hal_queue_write(run->queue, buffer, 4096, &word, 4), "hal_queue_write");
        case_ok(run,
                hal_queue_copy(run->queue, (hal_range){buffer, 4096, 4}, (hal_range){seen, 0, 4}),
                "hal_queue_copy");
        words_check(run, run->queue, seen, 1, word, 0, "a word that is written again and again");
    }
    case_ok(run, hal_buffer_map_begin(buffer, &pointer), "hal_buffer_map_begin");
    ((uint32_t *)pointer)[bytes / 4 - 1] = 77;
    case_ok(run, hal_buffer_map_end(buffer), "hal_buffer_map_end");
    case_ok(run,
            hal_queue_copy(run->queue, (hal_range){buffer, bytes - 4, 4}, (hal_range){seen, 0, 4}),
            "hal_queue_copy");
    words_check(run, run->queue, seen, 1, 77, 0, "the last word of 128 MiB that were mapped");
}

void cases_hal_coherence(case_list *list)
{
    static const uint64_t offsets[] = {0, 256, 4096, 8192 + 768};
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        mapped_case tested = {.kind = kind};
        case_add(list, one_line, &tested, sizeof tested, "coherence/one_line(kind=%s)",
                 kind_names[kind]);
        case_add(list, many_pages, &tested, sizeof tested, "coherence/4_mib(kind=%s)",
                 kind_names[kind]);
        case_add(list, far_words, &tested, sizeof tested, "coherence/far(kind=%s)",
                 kind_names[kind]);
        for (uint32_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
            tested.offset = offsets[i];
            case_add(list, partly_written, &tested, sizeof tested,
                     "coherence/partly_written(kind=%s,offset=%u)", kind_names[kind],
                     (uint32_t)offsets[i]);
        }
    }
}
