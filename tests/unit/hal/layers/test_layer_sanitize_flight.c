/* Batches whose reports the sanitize layer reads later: when the program waits, when many are in
 * flight, and before their queue, kernel, memory or device ends. On the cpu plugin. */
#include "sanitize_lines.h"
#include "unit.h"

#include <hal/hal.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 4 };

static hal_buffer *buffer;
static uint32_t kernels; /* made so far: each is another one, whose findings are new */

static int begin(void **state)
{
    (void)state;
    setenv("HAL_PLUGIN_PATH", CPU_PLUGINS, 1);
    setenv("HAL_SANITIZE", "bounds", 1);
    return hal_device_open("cpu", &device) || hal_queue_create(device, &queue) ||
           hal_buffer_create(device, HAL_MEMORY_DEVICE, 4096, &buffer);
}

static int end(void **state)
{
    (void)state;
    hal_log_set_callback(NULL, NULL, 0);
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}

/* out[i + past] = i. */
static hal_kernel *kernel_writing(uint32_t past)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    assert_ok(hal_ir_builder_create("writes", &b));
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value value = hal_ir_add(b, i, hal_ir_u32(b, kernels++));
    hal_ir_store(b, out, hal_ir_add(b, i, hal_ir_u32(b, past)), value);
    assert_ok(hal_ir_builder_finish(b, &ir));
    assert_ok(hal_kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
    return kernel;
}

/* A batch of one command on the first `elements` of the buffer. */
static hal_point submit(hal_queue *to, hal_kernel *kernel, uint32_t elements)
{
    const hal_range range = {buffer, 0, 4ull * elements};
    const uint32_t grid[3] = {1, 1, 1};
    hal_point point = {0};
    assert_ok(hal_queue_dispatch(to, kernel, grid, &range, 1, NULL, 0));
    assert_ok(hal_queue_flush(to, &point));
    return point;
}

static void listen(void)
{
    line_count = 0;
    hal_log_set_callback(keep_line, NULL, HAL_LOG_ERROR);
}

static void assert_found(const char *words)
{
    assert_int_equal(line_count, 1);
    if (!strstr(lines[0], words)) {
        fail_msg("expected \"%s\" in: %s", words, lines[0]);
    }
    line_count = 0;
}

TEST(findings_come_when_the_program_waits)
{
    hal_kernel *kernel = kernel_writing(1);
    listen();
    for (uint32_t i = 0; i < 3; i++) {
        submit(queue, kernel, ITEMS);
    }
    assert_int_equal(line_count, 0);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_found("3 times in batches");
    hal_kernel_release(kernel);
}

/* Where several batches in flight have kernels with faults, each finding has its own batch's. */
TEST(a_finding_names_the_batch_of_its_kernel)
{
    hal_kernel *right = kernel_writing(0), *wrong = kernel_writing(2);
    listen();
    submit(queue, right, ITEMS);
    const hal_point second = submit(queue, wrong, ITEMS + 1);
    submit(queue, right, 2 * ITEMS);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    char words[64];
    snprintf(words, sizeof words, "1 times in batch %llu of cpu:0, first in command 1",
             (unsigned long long)second.value);
    assert_non_null(strstr(lines[0], "of 5 elements"));
    assert_found(words);
    hal_kernel_release(right);
    hal_kernel_release(wrong);
}

TEST(a_program_that_never_waits_is_told)
{
    hal_kernel *kernel = kernel_writing(1);
    listen();
    for (uint32_t i = 0; i < 100; i++) {
        submit(queue, kernel, ITEMS);
    }
    assert_found("in batch");
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_kernel_release(kernel); /* logs how often it was found after that */
    assert_found("times more");
}

TEST(a_queue_that_is_closed_has_no_batches_in_flight)
{
    hal_kernel *kernel = kernel_writing(1);
    hal_queue *other = NULL;
    assert_ok(hal_queue_create(device, &other));
    listen();
    submit(other, kernel, ITEMS);
    hal_queue_destroy(other);
    assert_found("1 times in batch");
    hal_kernel_release(kernel);
}

TEST(a_kernel_that_is_released_has_told_its_findings)
{
    hal_kernel *kernel = kernel_writing(1);
    listen();
    submit(queue, kernel, ITEMS);
    hal_kernel_release(kernel);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_found("1 times in batch");
}

/* The other queue's batches are read as well, each kernel's once. */
TEST(queues_with_one_kernel_share_its_reports)
{
    hal_kernel *kernel = kernel_writing(1);
    hal_queue *other = NULL;
    assert_ok(hal_queue_create(device, &other));
    listen();
    submit(other, kernel, ITEMS);
    submit(queue, kernel, ITEMS);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_found("2 times in batch");
    hal_queue_destroy(other);
    assert_int_equal(line_count, 0);
    hal_kernel_release(kernel);
}

/* The batch after an allocation begins its red zone, which only batches that use it copy back. */
TEST(memory_that_a_batch_does_not_use_has_no_findings)
{
    hal_buffer *unused = NULL;
    hal_kernel *kernel = kernel_writing(0);
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, 1 << 24, &unused));
    listen();
    submit(queue, kernel, ITEMS);
    submit(queue, kernel, ITEMS);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(line_count, 0);
    hal_buffer_release(unused);
    hal_kernel_release(kernel);
}

UNIT_MAIN(begin, end)
