/* HAL_SANITIZE=bounds on the cpu plugin: findings name the line that built a record, and what is
 * written after the end of an allocation without a kernel that has checks is found once. */
#include "sanitize_lines.h"
#include "unit.h"

#include <hal/external.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 4, BYTES = 101 }; /* no multiple of 4, so the red zone begins 3 bytes later */

static int begin(void **state)
{
    (void)state;
    setenv("HAL_PLUGIN_PATH", CPU_PLUGINS, 1);
    setenv("HAL_SANITIZE", "bounds", 1);
    hal_log_set_callback(keep_line, NULL, HAL_LOG_ERROR);
    return hal_device_open("cpu", &device) || hal_queue_create(device, &queue);
}

static int end(void **state)
{
    (void)state;
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}

static void assert_found(const char *words)
{
    assert_int_equal(line_count, 1);
    if (!strstr(lines[0], words)) {
        fail_msg("expected \"%s\" in: %s", words, lines[0]);
    }
    line_count = 0;
}

TEST(a_finding_names_the_line_of_the_builder)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    hal_buffer *buffer = NULL;
    char words[64];
    assert_ok(hal_ir_builder_create("stored", &b));
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0), one = hal_ir_u32(b, 1);
    const hal_ir_value twice = hal_ir_mul(HAL_IR_AT(b), i, hal_ir_u32(b, 2));
    const int line = __LINE__ + 1;
    hal_ir_store(HAL_IR_AT(b), out, twice, one);
    hal_ir_set_position(b, NULL, 0);
    assert_ok(hal_ir_builder_finish(b, &ir));
    assert_ok(hal_kernel_create(device, ir, &kernel));
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, 4 * 6, &buffer));
    const hal_range range = {buffer, 0, 4 * 6};
    const uint32_t grid[3] = {1, 1, 1};
    assert_ok(hal_queue_dispatch(queue, kernel, grid, &range, 1, NULL, 0));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    snprintf(words, sizeof words, "test_layer_sanitize_zones.c:%d), binding \"out\"", line);
    assert_found(words);
    assert_non_null(strstr(lines[0], "index 6, work-item (3, 0, 0)"));
    hal_buffer_release(buffer);
    hal_kernel_release(kernel);
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
}

/* A kernel that stores to the first words of the buffer, and the wait for it. */
static void dispatch_checked(hal_buffer *buffer)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    assert_ok(hal_ir_builder_create("checked", &b));
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_global_id(b, 0), hal_ir_u32(b, 1));
    assert_ok(hal_ir_builder_finish(b, &ir));
    assert_ok(hal_kernel_create(device, ir, &kernel));
    const hal_range range = {buffer, 0, 4 * ITEMS};
    const uint32_t grid[3] = {1, 1, 1};
    assert_ok(hal_queue_dispatch(queue, kernel, grid, &range, 1, NULL, 0));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_kernel_release(kernel);
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
}

TEST(a_write_after_the_end_is_found_once)
{
    hal_buffer *buffer = NULL;
    hal_memory_handle handle = {.size = sizeof handle};
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, BYTES, &buffer));
    assert_ok(hal_buffer_export(buffer, HAL_HANDLE_HOST, &handle));
    const hal_range first = {buffer, 0, 64};
    assert_ok(hal_queue_fill(queue, first, 0));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(line_count, 0);
    uint8_t *bytes = (uint8_t *)(uintptr_t)handle.handle + handle.offset;
    uint8_t *zone = bytes + BYTES;
    while (memcmp(zone, "\xa5\xe5\x0b\x7a", 4) != 0) { /* a block may be larger than the buffer */
        assert_true(zone < bytes + 4096);
        zone++;
    }
    zone[4] = 1;
    dispatch_checked(buffer); /* whose stores are all seen, so no zone is looked at */
    assert_int_equal(line_count, 0);
    for (int turn = 0; turn < 2; turn++) {
        assert_ok(hal_queue_fill(queue, first, 1));
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    }
    assert_found("write after the end of an allocation of ");
    assert_non_null(strstr(lines[0], "word 1 after it is 0x7a0be501; in batch "));
    assert_non_null(strstr(lines[0], "written by command 1"));
    hal_buffer_release(buffer);
}

UNIT_MAIN(begin, end)
