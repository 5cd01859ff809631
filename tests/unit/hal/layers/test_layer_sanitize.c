/* The sanitize layer on the cpu plugin, beyond what level sanitize of hal-conformance tests on
 * every plugin: findings name the line that built a record and the calls on arrays; writes after
 * the end of an allocation are found, and what others may write is not; with stop later batches
 * fail. */
#include "sanitize_lines.h"
#include "unit.h"

#include <hal/external.h>
#include <hal/hal.h>
#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 4, BYTES = 100 };

static int begin(void **state)
{
    (void)state;
    setenv("HAL_PLUGIN_PATH", CPU_PLUGINS, 1);
    setenv("HAL_SANITIZE", "bounds,init,nan,stop", 1);
    return hal_device_open("cpu", &device) || hal_queue_create(device, &queue);
}

static int end(void **state)
{
    (void)state;
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}

static void listen(void)
{
    line_count = 0;
    hal_log_set_callback(keep_line, NULL, HAL_LOG_ERROR);
}

static void assert_line(uint32_t count, const char *words)
{
    hal_log_set_callback(NULL, NULL, 0);
    assert_int_equal(line_count, count);
    if (count > 0 && !strstr(lines[count - 1], words)) {
        fail_msg("expected \"%s\" in: %s", words, lines[count - 1]);
    }
}

static hal_buffer *buffer_of(uint64_t bytes)
{
    hal_buffer *buffer = NULL;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, bytes, &buffer));
    return buffer;
}

/* out[i] = in[i] over ITEMS elements. */
static hal_status copy_by_kernel(hal_buffer *in, hal_buffer *out)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    assert_ok(hal_ir_builder_create("copied", &b));
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_store(b, y, i, hal_ir_load(b, x, i));
    assert_ok(hal_ir_builder_finish(b, &ir));
    assert_ok(hal_kernel_create(device, ir, &kernel));
    const hal_range ranges[2] = {{in, 0, ITEMS * 4}, {out, 0, ITEMS * 4}};
    const uint32_t grid[3] = {1, 1, 1};
    hal_status status = hal_queue_dispatch(queue, kernel, grid, ranges, 2, NULL, 0);
    status = status == HAL_OK ? hal_queue_wait(queue, HAL_WAIT_FOREVER) : status;
    hal_kernel_release(kernel);
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
    return status;
}

/* Memory that others may write has no unwritten bytes. */
TEST(exported_memory_counts_as_written)
{
    hal_buffer *in = buffer_of(BYTES), *out = buffer_of(BYTES);
    hal_memory_handle handle = {.size = sizeof handle};
    assert_ok(hal_buffer_export(in, HAL_HANDLE_HOST, &handle));
    listen();
    assert_ok(copy_by_kernel(in, out));
    assert_line(0, "");
    hal_buffer_release(in);
    hal_buffer_release(out);
}

/* What a buffer's memory held for an earlier buffer was not written by it, though earlier commands
 * of the batch still read it. */
TEST(reused_memory_keeps_what_earlier_commands_need)
{
    hal_buffer *out = buffer_of(BYTES), *first = buffer_of(4096);
    const hal_range whole = {first, 0, 4096}, part = {first, 0, ITEMS * 4},
                    target = {out, 0, ITEMS * 4};
    listen();
    assert_ok(hal_queue_fill(queue, whole, 7));
    assert_ok(hal_queue_copy(queue, part, target));
    hal_buffer_release(first);
    hal_buffer *second = buffer_of(4096); /* the same block */
    assert_ok(hal_queue_fill(queue, (hal_range){second, 1024, 1024}, 8));
    assert_ok(copy_by_kernel(out, second));
    assert_line(0, "");
    hal_buffer_release(second);
    hal_buffer_release(out);
}

/* The checks take bindings from programs, and the error says so. */
TEST(a_kernel_with_too_many_bindings_names_the_layer)
{
    const uint32_t most = hal_device_get_info(device)->max_bindings;
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    assert_int_equal(most, (HAL_IR_MAX_BINDINGS - 1) / 2); /* init: a shadow for each */
    assert_ok(hal_ir_builder_create("wide", &b));
    for (uint32_t i = 0; i <= most; i++) {
        char name[8];
        snprintf(name, sizeof name, "b%u", i);
        hal_ir_binding(b, name, HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    }
    assert_ok(hal_ir_builder_finish(b, &ir));
    assert_int_equal(hal_kernel_create(device, ir, &kernel), HAL_ERROR_UNSUPPORTED);
    assert_message("bindings on cpu:0, of which HAL_SANITIZE takes the others, got 12");
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
}

/* From here on there are findings: of the first one, later batches fail. */
TEST(a_finding_names_the_calls_and_stops_later_batches)
{
    ops_context *context = NULL;
    const int64_t shape[1] = {3};
    const float values[3] = {1, 0, 2};
    float results[3];
    assert_ok(ops_context_create(queue, &context));
    assert_ok(ops_scope_begin(context));
    ops_array *x = ops_array_from_host(context, HAL_TYPE_F32, 1, shape, values);
    const int line = __LINE__ + 1;
    ops_array *y = OPS_AT(context, ops_log(x));
    listen();
    (void)ops_array_read(y, sizeof results, results);
    char words[64];
    snprintf(words, sizeof words, "of the calls log@test_layer_sanitize.c:%d", line);
    assert_line(1, words);
    assert_non_null(strstr(lines[0], "result -inf, of 0"));
    hal_buffer *buffer = buffer_of(64);
    const hal_range range = {buffer, 0, 64};
    hal_status status = hal_queue_fill(queue, range, 0);
    status = status == HAL_OK ? hal_queue_wait(queue, HAL_WAIT_FOREVER) : status;
    assert_int_equal(status, HAL_ERROR_INVALID_STATE);
    assert_message("sanitize: NaN or infinity from finite operands");
    hal_buffer_release(buffer);
    ops_scope_end(context);
    ops_context_destroy(context);
}

UNIT_MAIN(begin, end)
