/* Prints and asserts in kernels: what the builder refuses, reports without room, kernels that come
 * from text, and graphs. The conformance cases kernel_print test the rest on every device. */
#include "unit.h"

#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hal_device *device;
static hal_queue *queue;
static char heard[4][256]; /* the last lines of reports */
static uint32_t heard_count;

static void hear(void *user, hal_log_level level, const char *message)
{
    if (strstr(message, "print: ") || strstr(message, "assert: ")) {
        snprintf(heard[heard_count++ % 4], sizeof heard[0], "%s", message);
    }
}

static int begin(void **state)
{
    hal_log_set_callback(hear, NULL, HAL_LOG_INFO);
    return hal_device_open("cpu", &device) || hal_queue_create(device, &queue);
}

static int end(void **state)
{
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}

static hal_ir_builder *builder_create(void)
{
    hal_ir_builder *b;
    assert_ok(hal_ir_builder_create("noisy", &b));
    return b;
}

static void expect_refusal(hal_ir_builder *b, const char *words)
{
    hal_ir_kernel *kernel;
    assert_fails(hal_ir_builder_finish(b, &kernel), HAL_ERROR_INVALID_ARGUMENT, words);
    hal_ir_builder_destroy(b);
}

TEST(wrong_formats_are_refused)
{
    static const struct {
        const char *format;
        uint32_t count;
        const char *words;
    } rows[] = {{"%u %u", 1, "one for %u, value 1 of"},
                {"%f", 1, "one for %f, value 0 of \"%f\", got u32"},
                {"%s", 1, "got \"%s\""},
                {"%.2u", 1, "got \"%.2u\""},
                {"end %", 0, "got \"%\""},
                {"none", 1, "expected 0, as \"none\" has conversions, got 1"},
                {NULL, 0, "a null pointer"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hal_ir_builder *b = builder_create();
        hal_ir_reports(b);
        hal_ir_printf(b, rows[i].format, (hal_ir_value[]){hal_ir_u32(b, 1)}, rows[i].count);
        expect_refusal(b, rows[i].words);
    }
    hal_ir_builder *b = builder_create();
    hal_ir_printf(b, "early", NULL, 0);
    expect_refusal(b, "hal_ir_reports before");
}

/* A kernel of `items` work-items that each print once. */
static hal_ir_kernel *noisy(uint32_t items)
{
    hal_ir_kernel *ir;
    hal_ir_builder *b = builder_create();
    hal_ir_group_size(b, items, 1, 1);
    hal_ir_reports(b);
    hal_ir_printf(b, "%u", (hal_ir_value[]){hal_ir_id(b, HAL_IR_LOCAL_ID, 0)}, 1);
    assert_ok(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    return ir;
}

static hal_kernel *noisy_kernel(uint32_t items)
{
    hal_kernel *kernel;
    hal_ir_kernel *ir = noisy(items);
    assert_ok(hal_kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static void dispatch(hal_kernel *kernel, uint32_t groups)
{
    assert_ok(hal_queue_dispatch(queue, kernel, (uint32_t[]){groups, 1, 1}, NULL, 0, NULL, 0));
}

TEST(reports_without_room_are_counted)
{
    hal_kernel *kernel = noisy_kernel(128);
    heard_count = 0;
    dispatch(kernel, 150);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(heard_count, HAL_IR_REPORTS_MOST + 1);
    assert_non_null(strstr(heard[HAL_IR_REPORTS_MOST % 4], "print: 2817 reports more had no room"));
    heard_count = 0;
    dispatch(kernel, 1); /* there is room again */
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(heard_count, 128);
    hal_kernel_release(kernel);
}

TEST(graphs_report_to_their_queue)
{
    hal_graph *graph;
    hal_kernel *kernel = noisy_kernel(4);
    assert_ok(hal_graph_begin(queue));
    dispatch(kernel, 2);
    assert_ok(hal_graph_end(queue, NULL, 0, &graph));
    heard_count = 0;
    for (int i = 0; i < 3; i++) {
        assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    }
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(heard_count, 3 * 2 * 4);
    hal_graph_destroy(graph);
    hal_kernel_release(kernel);
}

/* The text of a kernel has the key of a format, which this process knows. */
TEST(kernels_from_text_report)
{
    char *text;
    hal_kernel *kernel;
    hal_ir_kernel *ir = noisy(1), *read;
    assert_ok(hal_ir_print(ir, &text));
    assert_ok(hal_ir_parse(text, strlen(text), &read));
    assert_ok(hal_kernel_create(device, read, &kernel));
    heard_count = 0;
    dispatch(kernel, 1);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(heard_count, 1);
    assert_non_null(strstr(heard[0], "print: noisy, group (0, 0, 0), item 0: 0"));
    hal_kernel_release(kernel);
    hal_ir_kernel_destroy(ir);
    hal_ir_kernel_destroy(read);
    free(text);
}

UNIT_MAIN(begin, end)
