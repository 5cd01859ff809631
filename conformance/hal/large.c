/* large.c: memory beyond 4 GiB, where bytes and offsets need more than 32 bits
 * (promise 23). Only its ends are touched, so that devices whose memory comes with the first touch
 * need little of it. */
#include <hal/external.h>
#include <hal/ir_build.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/fixture.h"

#define FOUR_GIB (UINT64_C(1) << 32)
#define BEYOND 65536u /* bytes after it */
enum { COUNT = 1000 };

/* out[base + i] = out[base + i] * 3 + i, for i < count. */
static hal_kernel *index_kernel(case_run *run)
{
    hal_ir_builder *b = case_builder(run, "far");
    hal_ir_group_size(b, SCALE_GROUP, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value base = hal_ir_scalar_value(b, "base", HAL_TYPE_U32);
    const hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value at = hal_ir_add(b, base, i);
    const hal_ir_value guard = hal_ir_lt(b, i, count);
    const hal_ir_value loaded = hal_ir_load_wide(b, out, at, 0, 1, guard);
    hal_ir_store_wide(b, out, at, 0, guard,
                      hal_ir_add(b, hal_ir_mul(b, loaded, hal_ir_u32(b, 3)), i));
    return case_kernel(run, b);
}

static void release_far_buffer(void *object)
{
    hal_buffer *buffer = object;
    hal_device *device = hal_buffer_get_device(buffer);
    hal_buffer_release(buffer);
    hal_device_trim(device);
}

/* Words are written beyond 4 GiB, copied on, worked on by a kernel - through a binding that begins
 * there, or through one of the whole buffer - and read; bytes at offsets with equal low 32 bits
 * stay. */
static void beyond_4_gib(case_run *run, const void *parameters)
{
    const bool whole = parameters != NULL;
    const uint64_t bytes = FOUR_GIB + BEYOND, length = COUNT * 4;
    const uint64_t written = FOUR_GIB + 4096, worked = FOUR_GIB + 16384, low = 16384;
    uint32_t words[COUNT], read[COUNT];
    hal_buffer *buffer = NULL;
    case_claim(run, run->info->max_allocation >= bytes, "allocations beyond 4 GiB");
    if (whole) {
        case_claim(run, run->info->max_binding >= bytes, "bindings beyond 4 GiB");
    }
    hal_kernel *kernel = index_kernel(run);
    const hal_status made = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, bytes, &buffer);
    if (made == HAL_ERROR_OUT_OF_MEMORY) {
        return; /* the device has too little memory, and says so */
    }
    case_ok(run, made, "hal_buffer_create");
    case_own(run, release_far_buffer, buffer);
    for (uint32_t i = 0; i < COUNT; i++) {
        words[i] = i * 2654435761u + 7;
    }
    const hal_range from = {buffer, written, length}, to = {buffer, worked, length};
    const hal_range mark = {buffer, low, length}, bound = whole ? range_of(buffer) : to;
    const uint32_t grid[3] = {(COUNT + SCALE_GROUP - 1) / SCALE_GROUP, 1, 1};
    const uint32_t scalars[2] = {whole ? (uint32_t)(worked / 4) : 0, COUNT};
    case_ok(run, hal_queue_fill(run->queue, mark, 0x0badcafe), "fill");
    case_ok(run, hal_queue_write(run->queue, buffer, written, words, length), "write");
    case_ok(run, hal_queue_copy(run->queue, from, to), "copy");
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, &bound, 1, scalars, sizeof scalars),
            "hal_queue_dispatch");
    case_ok(run, hal_queue_read(run->queue, buffer, worked, length, read), "read");
    for (uint32_t i = 0; i < COUNT; i++) {
        case_check(run, read[i] == words[i] * 3 + i, "word %u beyond 4 GiB is 0x%x, not 0x%x", i,
                   read[i], words[i] * 3 + i);
    }
    case_ok(run, hal_queue_read(run->queue, buffer, low, length, read), "read");
    for (uint32_t i = 0; i < COUNT; i++) {
        case_check(run, read[i] == 0x0badcafe, "word %u, 4 GiB below, is 0x%x", i, read[i]);
    }
}

/* ---- Lengths beyond 4 GiB ---- */

enum { UNIT = 4 << 20, AFTER = 4096, PATTERN = 0x2468ace1, MARK = 0x0badcafe };
#define LONG_BYTES (FOUR_GIB + BEYOND)
#define LONG_LENGTH (LONG_BYTES - AFTER)

static void pages_unmap(void *pages)
{
    munmap(pages, LONG_BYTES);
}

/* LONG_BYTES of addresses, of which each UNIT of the first 4 GiB is the same memory: 4 MiB and what
 * is after 4 GiB. */
static void *pages_of_one(case_run *run)
{
    const int file = child_unnamed_file();
    case_check(run, file >= 0 && ftruncate(file, UNIT + BEYOND) == 0, "there is no file in memory");
    uint8_t *pages =
        mmap(NULL, LONG_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool is_there = pages != MAP_FAILED;
    for (uint64_t at = 0; at < LONG_BYTES && is_there; at += UNIT) {
        const uint64_t bytes = at < FOUR_GIB ? UNIT : BEYOND;
        is_there = mmap(pages + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                        at < FOUR_GIB ? 0 : UNIT) != MAP_FAILED;
    }
    close(file);
    if (pages != MAP_FAILED) {
        case_own(run, pages_unmap, pages);
    }
    if (!is_there) {
        case_unsupported(run, "the process has no %llu bytes of addresses",
                         (unsigned long long)LONG_BYTES);
    }
    return pages;
}

/* A buffer of LONG_BYTES: of the device where it has its own memory and much of it, else of few
 * pages of the host. */
static hal_buffer *long_buffer(case_run *run)
{
    hal_memory_statistics memory = {0};
    hal_buffer *buffer = NULL;
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    if (run->info->kind == HAL_DEVICE_DISCRETE) {
        if (memory.free_bytes >= 4 * LONG_BYTES) {
            status = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, LONG_BYTES, &buffer);
        }
    } else {
        const hal_memory_handle handle = {.size = sizeof handle,
                                          .kind = HAL_HANDLE_HOST,
                                          .handle = (uintptr_t)pages_of_one(run),
                                          .bytes = LONG_BYTES,
                                          .access = HAL_ACCESS_READ_WRITE};
        status = hal_buffer_import(run->device, &handle, NULL, NULL, &buffer);
    }
    if (status == HAL_ERROR_OUT_OF_MEMORY || status == HAL_ERROR_UNSUPPORTED) {
        case_unsupported(run, "%llu bytes cannot be had: %s", (unsigned long long)LONG_BYTES,
                         status == HAL_ERROR_UNSUPPORTED ? hal_status_message()
                                                         : "the device has too little memory");
    }
    case_ok(run, status, "a buffer beyond 4 GiB");
    case_own(run, release_far_buffer, buffer);
    case_ok(run, hal_queue_fill(run->queue, (hal_range){buffer, FOUR_GIB, BEYOND}, MARK), "fill");
    return buffer;
}

/* The last words of a range of LONG_LENGTH have the pattern, and the words after it do not. */
static void end_check(case_run *run, hal_buffer *buffer, const char *what)
{
    enum { WORDS = 64 };
    uint32_t words[WORDS], first = 0;
    case_ok(run, hal_queue_read(run->queue, buffer, 0, sizeof first, &first), "read");
    case_ok(run,
            hal_queue_read(run->queue, buffer, LONG_LENGTH - sizeof words / 2, sizeof words, words),
            "read");
    case_check(run, first == PATTERN, "%s of %llu bytes: the first word is 0x%x", what,
               (unsigned long long)LONG_LENGTH, first);
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint32_t expected = i < WORDS / 2 ? PATTERN : MARK;
        case_check(run, words[i] == expected, "%s of %llu bytes: word %d from its end is 0x%x",
                   what, (unsigned long long)LONG_LENGTH, (int)i - WORDS / 2, words[i]);
    }
}

/* A fill and a copy of more than 4 GiB reach their end and no further. */
static void longer_than_4_gib(case_run *run, const void *parameters)
{
    case_claim(run, run->info->max_binding >= LONG_BYTES, "bindings beyond 4 GiB");
    case_claim(run, run->info->max_allocation >= LONG_BYTES, "allocations beyond 4 GiB");
    hal_buffer *from = long_buffer(run), *to = long_buffer(run);
    const hal_range source = {from, 0, LONG_LENGTH}, target = {to, 0, LONG_LENGTH};
    case_ok(run, hal_queue_fill(run->queue, source, PATTERN), "fill");
    end_check(run, from, "a fill");
    case_ok(run, hal_queue_copy(run->queue, source, target), "copy");
    end_check(run, to, "a copy");
}

void cases_hal_large(case_list *list)
{
    case_add(list, longer_than_4_gib, NULL, 0, "large/lengths");
    case_add(list, beyond_4_gib, NULL, 0, "large/offsets");
    bool through_binding = true;
    case_add(list, beyond_4_gib, &through_binding, sizeof through_binding, "large/binding");
}
