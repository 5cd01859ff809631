/* large.c: memory beyond 4 GiB, where bytes and offsets need more than 32 bits
 * (promise 23). Only its ends are touched, so that devices whose memory comes with the first touch
 * need little of it. */
#include <hal/ir_build.h>
#include <string.h>

#include "cases.h"
#include "hal/hal_case.h"

#define FOUR_GIB (UINT64_C(1) << 32)
#define BEYOND 65536u /* bytes after it */
enum { COUNT = 1000 };

/* out[base + i] = out[base + i] * 3 + i, for i < count. */
static hal_kernel *index_kernel(case_run *run)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (!case_ok(run, hal_ir_builder_create("far", &b), "hal_ir_builder_create")) {
        return NULL;
    }
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
    if (case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
        case_ok(run, hal_kernel_create(run->device, ir, &kernel), "hal_kernel_create");
    }
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
    return kernel;
}

/* Words are written beyond 4 GiB, copied on, worked on by a kernel - through a binding that begins
 * there, or through one of the whole buffer - and read; bytes at offsets with equal low 32 bits
 * stay. */
static void beyond_4_gib(case_run *run, const void *parameters)
{
    const bool whole = parameters != NULL;
    const uint64_t bytes = FOUR_GIB + BEYOND, length = COUNT * 4;
    const uint64_t written = FOUR_GIB + 4096, worked = FOUR_GIB + 16384, low = 16384;
    uint32_t words[COUNT], back[COUNT];
    hal_buffer *buffer = NULL;
    case_claim(run, run->info->max_allocation >= bytes, "allocations beyond 4 GiB");
    if (whole) {
        case_claim(run, run->info->max_binding >= bytes, "bindings beyond 4 GiB");
    }
    const hal_status made = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, bytes, &buffer);
    if (made == HAL_ERROR_OUT_OF_MEMORY) {
        return; /* it is what the device can, and is said */
    }
    hal_kernel *kernel = index_kernel(run);
    for (uint32_t i = 0; i < COUNT; i++) {
        words[i] = i * 2654435761u + 7;
    }
    const hal_range from = {buffer, written, length}, to = {buffer, worked, length};
    const hal_range mark = {buffer, low, length};
    const hal_range all = {buffer, 0, HAL_WHOLE}, part = {buffer, worked, length};
    const uint32_t grid[3] = {(COUNT + SCALE_GROUP - 1) / SCALE_GROUP, 1, 1};
    const uint32_t scalars[2] = {whole ? (uint32_t)(worked / 4) : 0, COUNT};
    bool well =
        case_ok(run, made, "hal_buffer_create") && kernel != NULL &&
        case_ok(run, hal_queue_fill(run->queue, mark, 0x0badcafe), "fill") &&
        case_ok(run, hal_queue_write(run->queue, buffer, written, words, length), "write") &&
        case_ok(run, hal_queue_copy(run->queue, from, to), "copy") &&
        case_ok(run,
                hal_queue_dispatch(run->queue, kernel, grid, whole ? &all : &part, 1, scalars,
                                   sizeof scalars),
                "hal_queue_dispatch") &&
        case_ok(run, hal_queue_read(run->queue, buffer, worked, length, back), "read");
    for (uint32_t i = 0; i < COUNT && well; i++) {
        well = case_check(run, back[i] == words[i] * 3 + i,
                          "word %u beyond 4 GiB is 0x%x, not 0x%x", i, back[i], words[i] * 3 + i);
    }
    well = well && case_ok(run, hal_queue_read(run->queue, buffer, low, length, back), "read");
    for (uint32_t i = 0; i < COUNT && well; i++) {
        well = case_check(run, back[i] == 0x0badcafe, "word %u, 4 GiB below, is 0x%x", i, back[i]);
    }
    hal_kernel_release(kernel);
    hal_buffer_release(buffer);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
}

void cases_hal_large(case_list *list)
{
    case_add(list, beyond_4_gib, NULL, 0, "large/offsets");
    bool through_binding = true;
    case_add(list, beyond_4_gib, &through_binding, sizeof through_binding, "large/binding");
}
