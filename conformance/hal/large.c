/* large.c: memory beyond 4 GiB, where bytes and offsets need more than 32 bits
 * (promise 23). Only its ends are touched, so that devices whose memory comes with the first touch
 * need little of it. */
#include <hal/ir_build.h>
#include <string.h>

#include "case/cases.h"
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

void cases_hal_large(case_list *list)
{
    case_add(list, beyond_4_gib, NULL, 0, "large/offsets");
    bool through_binding = true;
    case_add(list, beyond_4_gib, &through_binding, sizeof through_binding, "large/binding");
}
