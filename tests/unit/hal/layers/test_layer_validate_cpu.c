/* The validate layer on the cpu plugin: an access of a kernel outside its binding or its shared
 * memory is reported with kernel, instruction and work-item, and does no harm; the rest of the
 * kernel does what it does without the layer. */

#include "unit.h"
#include <hal/external.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 64, BYTES = ITEMS * sizeof(int32_t) };

typedef void body(hal_ir_builder *b, hal_ir_memory_id in, hal_ir_memory_id out, hal_ir_value i);

static char last_line[2048];
static hal_device *device;
static hal_queue *queue;

static void keep_line(void *user, hal_log_level level, const char *message)
{
    (void)user;
    if (level == HAL_LOG_ERROR) {
        snprintf(last_line, sizeof last_line, "%s", message);
    }
}

/* Runs a kernel of one group over in[k] = 100 + k and out[k] = -1, each in the middle of a buffer
 * whose other bytes have to stay as they are. */
static void run(const char *name, body *write_body, int32_t result[ITEMS])
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    hal_buffer *buffers[2];
    int32_t data[3 * ITEMS];
    hal_range ranges[2];
    assert_ok(hal_ir_builder_create(name, &b));
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_I32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_I32, HAL_ACCESS_READ_WRITE);
    write_body(b, in, out, hal_ir_global_id(b, 0));
    assert_ok(hal_ir_builder_finish(b, &ir));
    assert_ok(hal_kernel_create(device, ir, &kernel));
    for (uint32_t k = 0; k < 2; k++) {
        for (int32_t i = 0; i < 3 * ITEMS; i++) {
            data[i] = i < ITEMS || i >= 2 * ITEMS ? 777 : k == 0 ? 100 + i - ITEMS : -1;
        }
        assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, sizeof data, &buffers[k]));
        assert_ok(hal_queue_write(queue, buffers[k], 0, data, sizeof data));
        ranges[k] = (hal_range){buffers[k], BYTES, BYTES};
    }
    const uint32_t grid[3] = {1, 1, 1};
    assert_ok(hal_queue_dispatch(queue, kernel, grid, ranges, 2, NULL, 0));
    assert_ok(hal_queue_read(queue, buffers[1], 0, sizeof data, data));
    for (int32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(data[i], 777);
        assert_int_equal(data[2 * ITEMS + i], 777);
        result[i] = data[ITEMS + i];
    }
    hal_buffer_release(buffers[0]);
    hal_buffer_release(buffers[1]);
    hal_kernel_release(kernel);
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
}

/* One finding with these words; memory outside reads as 0. */
static void astray(const char *name, body *write_body, const char *first, const char *second,
                   int32_t result[ITEMS])
{
    const uint64_t before = hal_validate_get_finding_count();
    last_line[0] = 0;
    run(name, write_body, result);
    if (hal_validate_get_finding_count() != before + 1 || !strstr(last_line, first) ||
        !strstr(last_line, second)) {
        fail_msg("%u findings; \"%s\" and \"%s\" are wanted, there is \"%s\"",
                 (unsigned)(hal_validate_get_finding_count() - before), first, second, last_line);
    }
}

static void load_behind(hal_ir_builder *b, hal_ir_memory_id in, hal_ir_memory_id out,
                        hal_ir_value i)
{
    hal_ir_store(b, out, i, hal_ir_load(b, in, hal_ir_add(b, i, hal_ir_u32(b, 3))));
}

static void load_gathered(hal_ir_builder *b, hal_ir_memory_id in, hal_ir_memory_id out,
                          hal_ir_value i)
{
    const hal_ir_value square = hal_ir_mul(b, i, i); /* from 8 on outside */
    hal_ir_store(b, out, i, hal_ir_load(b, in, square));
}

static void load_uniform(hal_ir_builder *b, hal_ir_memory_id in, hal_ir_memory_id out,
                         hal_ir_value i)
{
    hal_ir_store(b, out, i, hal_ir_load(b, in, hal_ir_u32(b, ITEMS)));
}

static void store_before(hal_ir_builder *b, hal_ir_memory_id in, hal_ir_memory_id out,
                         hal_ir_value i)
{
    const hal_ir_value at = hal_ir_sub(b, hal_ir_cast(b, HAL_TYPE_I32, i), hal_ir_i32(b, 1));
    hal_ir_store(b, out, at, hal_ir_load(b, in, i));
}

static void shared_behind(hal_ir_builder *b, hal_ir_memory_id in, hal_ir_memory_id out,
                          hal_ir_value i)
{
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_I32, ITEMS);
    hal_ir_store(b, tile, i, hal_ir_load(b, in, i));
    hal_ir_barrier(b);
    hal_ir_store(b, out, i, hal_ir_load(b, tile, hal_ir_add(b, i, hal_ir_u32(b, 1))));
}

static void within(hal_ir_builder *b, hal_ir_memory_id in, hal_ir_memory_id out, hal_ir_value i)
{
    const hal_ir_value next = hal_ir_add(b, i, hal_ir_u32(b, 1));
    hal_ir_if(b, hal_ir_lt(b, next, hal_ir_u32(b, ITEMS)));
    hal_ir_store(b, out, i, hal_ir_load(b, in, next));
    hal_ir_end(b);
}

TEST(accesses_outside_are_reported)
{
    int32_t result[ITEMS];
    astray("behind", load_behind, "kernel behind: instruction ",
           "loads element 64 of binding \"in\", which has 64; work-item (61, 0, 0) of group "
           "(0, 0, 0)",
           result);
    for (int32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(result[i], i + 3 < ITEMS ? 103 + i : 0);
    }
    astray("gathered", load_gathered, "kernel gathered: instruction ",
           "loads element 64 of binding \"in\", which has 64; work-item (8, 0, 0)", result);
    assert_int_equal(result[7], 149);
    assert_int_equal(result[8], 0);
    astray("alike", load_uniform, "kernel alike: instruction ", "work-item (0, 0, 0)", result);
    assert_int_equal(result[5], 0);
    astray("before", store_before, "kernel before: instruction ",
           "stores to element -1 of binding \"out\", which has 64; work-item (0, 0, 0)", result);
    assert_int_equal(result[0], 101);
    assert_int_equal(result[ITEMS - 1], -1);
    astray("shared", shared_behind, "kernel shared: instruction ",
           "loads element 64 of shared memory \"tile\", which has 64; work-item (63, 0, 0)",
           result);
    assert_int_equal(result[62], 163);
}

TEST(accesses_within_are_not)
{
    int32_t result[ITEMS];
    const uint64_t before = hal_validate_get_finding_count();
    run("within", within, result);
    assert_int_equal(result[62], 163);
    assert_int_equal(result[63], -1);
    if (hal_validate_get_finding_count() != before) {
        fail_msg("%s", last_line);
    }
}

/* What others own was written by them. */
TEST(imported_memory_has_contents)
{
    uint32_t words[64] = {5}, seen[64] = {0};
    hal_buffer *buffer = NULL;
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uintptr_t)words,
                                      .bytes = sizeof words,
                                      .access = HAL_ACCESS_READ};
    const uint64_t before = hal_validate_get_finding_count();
    assert_ok(hal_buffer_import(device, &handle, NULL, NULL, &buffer));
    assert_ok(hal_queue_read(queue, buffer, 0, sizeof seen, seen));
    assert_int_equal(seen[0], 5);
    assert_int_equal(hal_validate_get_finding_count(), before);
    hal_buffer_release(buffer);
}

/* Rows of which only the numbers were written, not what is between them. */
TEST(a_copy_of_rows_reads_no_gaps)
{
    enum { ROW = 4, PITCH = 16, ROWS = 3 };
    hal_buffer *source, *target;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, PITCH * ROWS, &source));
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, PITCH * ROWS, &target));
    hal_row_copy copy = {.source = source,
                         .target = target,
                         .source_pitch = PITCH,
                         .target_pitch = ROW,
                         .row_bytes = ROW,
                         .rows = ROWS,
                         .slices = 1};
    const uint64_t before = hal_validate_get_finding_count();
    assert_ok(hal_queue_copy_rows(queue, &copy));
    assert_int_equal(hal_validate_get_finding_count(), before + 1); /* nothing was written */
    hal_buffer_release(source);
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, PITCH * ROWS, &source));
    copy.source = source;
    for (uint64_t i = 0; i < ROWS; i++) {
        assert_ok(hal_queue_fill(queue, (hal_range){source, i * PITCH, ROW}, 7));
    }
    assert_ok(hal_queue_copy_rows(queue, &copy));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(hal_validate_get_finding_count(), before + 1);
    hal_buffer_release(source);
    hal_buffer_release(target);
}

static int begin(void **state)
{
    setenv("HAL_LAYERS", "validate", 1);
    setenv("HAL_PLUGIN_PATH", CPU_PLUGINS, 1);
    hal_log_set_callback(keep_line, NULL, 0);
    return hal_device_open("cpu", &device) != HAL_OK || hal_queue_create(device, &queue) != HAL_OK;
}

static int end(void **state)
{
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}

UNIT_MAIN(begin, end)
