/* Bad input at every call: each has its status and a sentence that names the argument, and nothing
 * is touched. Fork, and destroying nothing. */
#include "mock_device.h"

#include <hal/memory_peaks.h>
#include <sys/wait.h>
#include <unistd.h>

static hal_device *second;
static hal_buffer *buffer;
static hal_buffer *foreign;

/* A plugin that reports success without an object: an error, and nothing leaks. */
DEVICE_TEST(success_without_an_object)
{
    const char *const words = "expected an object of the plugin, got success without one";
    const hal_status status = HAL_ERROR_INTERNAL;
    mock->fail_with = MOCK_NOTHING;
    hal_device *made_device = NULL;
    hal_buffer *made_buffer = NULL;
    hal_queue *made_queue = NULL;
    hal_kernel *made_kernel = NULL;
    void *pointer = NULL;
    mock->fail_in[MOCK_DEVICE_OPEN] = 1;
    assert_fails(hal_device_open("mock:2", &made_device), status, words);
    assert_null(made_device);
    mock->fail_in[MOCK_ALLOCATE] = 1;
    assert_fails(hal_buffer_create(device, HAL_MEMORY_DEVICE, 3 << 20, &made_buffer), status,
                 words);
    assert_null(made_buffer);
    mock->fail_in[MOCK_QUEUE] = 1;
    assert_fails(hal_queue_create(device, &made_queue), status, words);
    assert_null(made_queue);
    mock->fail_in[MOCK_KERNEL] = 1;
    hal_ir_kernel *ir = mock_ir(4711);
    assert_fails(hal_kernel_create(device, ir, &made_kernel), status, words);
    assert_null(made_kernel);
    assert_ok(hal_kernel_create(device, ir, &made_kernel));
    hal_kernel_release(made_kernel);
    hal_ir_kernel_destroy(ir);
    assert_ok(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 3 << 20, &made_buffer));
    mock->fail_in[MOCK_MAP] = 1;
    assert_fails(hal_buffer_map_begin(made_buffer, &pointer), status, words);
    assert_null(pointer);
    assert_ok(hal_buffer_map_begin(made_buffer, &pointer));
    assert_ok(hal_buffer_map_end(made_buffer));
    hal_buffer_release(made_buffer);
    mock_reset(mock);
}

/* A call with a null argument, which the message names. */
#define null_is_named(call, argument)              \
    assert_fails(call, HAL_ERROR_INVALID_ARGUMENT, \
                 ": " argument ": expected a valid pointer, got null")

DEVICE_TEST(null_handles_are_named)
{
    hal_buffer *made_buffer = (hal_buffer *)1;
    hal_queue *made_queue = (hal_queue *)1;
    hal_kernel *made_kernel = (hal_kernel *)1;
    hal_memory_statistics now;
    hal_memory_peaks peaks;
    hal_graph *graph;
    void *pointer;
    const uint32_t grid[3] = {1, 1, 1};
    const hal_status bad = HAL_ERROR_INVALID_ARGUMENT;
    null_is_named(hal_registry_report_create(NULL), "report");
    null_is_named(hal_device_get_memory(NULL, &now), "device");
    null_is_named(hal_device_get_memory(device, NULL), "statistics");
    null_is_named(hal_device_trim(NULL), "device");
    null_is_named(hal_device_reset_memory_peaks(NULL), "device");
    null_is_named(hal_device_get_memory_peaks(NULL, &peaks), "device");
    null_is_named(hal_device_get_memory_peaks(device, NULL), "peaks");
    null_is_named(hal_buffer_create(NULL, 0, 4, &made_buffer), "device");
    assert_null(made_buffer);
    null_is_named(hal_buffer_create(device, 0, 4, NULL), "buffer");
    null_is_named(hal_buffer_map_begin(NULL, &pointer), "buffer");
    null_is_named(hal_buffer_map_begin(buffer, NULL), "pointer");
    null_is_named(hal_buffer_map_end(NULL), "buffer");
    null_is_named(hal_queue_create(NULL, &made_queue), "device");
    assert_null(made_queue);
    null_is_named(hal_queue_create(device, NULL), "queue");
    null_is_named(hal_queue_flush(NULL, NULL), "queue");
    null_is_named(hal_queue_wait(NULL, 0), "queue");
    null_is_named(hal_queue_wait_point(NULL, (hal_point){0}), "queue");
    null_is_named(hal_queue_dispatch(NULL, kernel, grid, NULL, 0, NULL, 0), "queue");
    null_is_named(hal_queue_dispatch(queue, NULL, grid, NULL, 0, NULL, 0), "kernel");
    null_is_named(hal_queue_dispatch(queue, kernel, NULL, NULL, 0, NULL, 0), "grid");
    null_is_named(hal_queue_copy(NULL, (hal_range){0}, (hal_range){0}), "queue");
    assert_fails(hal_queue_copy(queue, (hal_range){0}, (hal_range){buffer, 0, 4}), bad,
                 ": source: expected a buffer, got null");
    assert_fails(hal_queue_copy(queue, (hal_range){buffer, 0, 4}, (hal_range){0}), bad,
                 ": target: expected a buffer, got null");
    assert_fails(hal_queue_fill(queue, (hal_range){0}, 0), bad,
                 ": target: expected a buffer, got null");
    null_is_named(hal_queue_fill(NULL, (hal_range){buffer, 0, 4}, 0), "queue");
    null_is_named(hal_queue_write(queue, NULL, 0, "", 1), "buffer");
    null_is_named(hal_queue_write(queue, buffer, 0, NULL, 1), "data");
    null_is_named(hal_queue_read(queue, buffer, 0, 1, NULL), "data");
    null_is_named(hal_queue_transfer(queue, NULL, 0, queue, buffer, 0, 1), "source");
    null_is_named(hal_queue_transfer(queue, buffer, 0, queue, NULL, 0, 1), "target");
    null_is_named(hal_queue_transfer(queue, buffer, 0, NULL, buffer, 0, 1), "queue");
    null_is_named(hal_kernel_create(device, NULL, &made_kernel), "ir");
    null_is_named(hal_kernel_create(device, NULL, NULL), "kernel");
    null_is_named(hal_kernel_create_native(device, NULL, "", 0, "", NULL, &made_kernel), "format");
    null_is_named(hal_kernel_create_gemm(device, NULL, &made_kernel, NULL), "description");
    null_is_named(hal_kernel_create_attention(device, NULL, &made_kernel), "description");
    null_is_named(hal_graph_begin(NULL), "queue");
    null_is_named(hal_graph_end(NULL, NULL, 0, &graph), "queue");
    null_is_named(hal_graph_launch(NULL, NULL, NULL, 0), "queue");
}

DEVICE_TEST(null_is_released_and_asked)
{
    hal_device_release(NULL);
    hal_buffer_release(NULL);
    hal_kernel_release(NULL);
    hal_queue_destroy(NULL);
    hal_graph_destroy(NULL);
    hal_registry_report_destroy(NULL);
    hal_buffer_set_label(NULL, "x");
    assert_null(hal_device_retain(NULL));
    assert_null(hal_buffer_retain(NULL));
    assert_null(hal_kernel_retain(NULL));
    assert_null(hal_device_get_info(NULL));
    assert_null(hal_buffer_get_device(NULL));
    assert_null(hal_queue_get_device(NULL));
    assert_string_equal(hal_device_get_plugin_name(NULL), "");
    assert_string_equal(hal_kernel_get_name(NULL), "");
    assert_int_equal(hal_buffer_get_bytes(NULL) + hal_buffer_get_kind(NULL) +
                         hal_device_get_index(NULL) + hal_graph_get_command_count(NULL) +
                         (uint32_t)hal_buffer_is_shared(NULL),
                     0);
}

DEVICE_TEST(sizes_of_buffers)
{
    hal_buffer *made = NULL;
    assert_fails(hal_buffer_create(device, HAL_MEMORY_KIND_COUNT, 4, &made),
                 HAL_ERROR_INVALID_ARGUMENT, "kind: expected one of HAL_MEMORY_*, got 4");
    assert_fails(hal_buffer_create(device, 0, UINT64_MAX, &made), HAL_ERROR_UNSUPPORTED,
                 "bytes: expected at most 536870912, the largest allocation of mock:0");
    assert_fails(hal_buffer_create(device, 0, (UINT64_C(1) << 29) + 1, &made),
                 HAL_ERROR_UNSUPPORTED, "536870913");
    assert_null(made);
}

/* An empty buffer is used like any other: all of it is an empty range. */
DEVICE_TEST(empty_buffers)
{
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        hal_buffer *empty = NULL;
        assert_ok(hal_buffer_create(device, (hal_memory_kind)kind, 0, &empty));
        assert_int_equal(hal_buffer_get_bytes(empty), 0);
        assert_int_equal(hal_buffer_get_kind(empty), kind);
        const hal_range whole = {empty, 0, HAL_WHOLE};
        uint32_t word = 7;
        assert_ok(hal_queue_fill(queue, whole, 1));
        assert_ok(hal_queue_copy(queue, whole, whole));
        assert_ok(hal_queue_write(queue, empty, 0, &word, 0));
        assert_ok(hal_queue_read(queue, empty, 0, 0, &word));
        assert_int_equal(word, 7);
        assert_fails(hal_queue_write(queue, empty, 0, &word, 1), HAL_ERROR_INVALID_ARGUMENT,
                     "expected a range within the 0 bytes");
        if (kind != HAL_MEMORY_DEVICE) {
            void *pointer = NULL;
            assert_ok(hal_buffer_map_begin(empty, &pointer));
            assert_non_null(pointer);
            assert_ok(hal_buffer_map_end(empty));
        }
        hal_buffer_release(empty);
    }
}

DEVICE_TEST(ranges_that_do_not_fit)
{
    const hal_status bad = HAL_ERROR_INVALID_ARGUMENT;
    hal_buffer_set_label(buffer, "weights");
    assert_fails(hal_queue_fill(queue, (hal_range){buffer, 1028, 4}, 0), bad,
                 "target: expected a range within the 1026 bytes of \"weights\", got offset 1028 "
                 "and length 4");
    assert_fails(hal_queue_fill(queue, (hal_range){buffer, 4, UINT64_MAX - 1}, 0), bad,
                 "expected a range within");
    assert_fails(hal_queue_fill(queue, (hal_range){buffer, UINT64_MAX - 3, 8}, 0), bad,
                 "expected a range within");
    assert_fails(hal_queue_fill(queue, (hal_range){buffer, 2, 4}, 0), bad,
                 "expected an offset that is a multiple of 4 bytes, got 2");
    assert_fails(hal_queue_fill(queue, (hal_range){buffer, 0, 6}, 0), bad, "length 6");
    assert_fails(hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, 0), bad, "length 1026");
    assert_fails(hal_queue_fill(queue, (hal_range){foreign, 0, 4}, 0), bad,
                 "target: expected a buffer of mock:0, the queue's device, got \"\" of mock:1");
    assert_fails(hal_queue_copy(queue, (hal_range){buffer, 0, 8}, (hal_range){buffer, 16, 4}), bad,
                 "target: expected 8 bytes, the length of source, got 4");
    assert_fails(hal_queue_copy(queue, (hal_range){buffer, 0, 8}, (hal_range){buffer, 4, 8}), bad,
                 "target: expected no overlap with source");
    assert_fails(hal_queue_copy(queue, (hal_range){buffer, 0, 6}, (hal_range){buffer, 16, 6}), bad,
                 "source: expected a multiple of 4 bytes or a range that ends with its buffer, got "
                 "length 6");
    assert_fails(hal_queue_copy(queue, (hal_range){buffer, 2, 4}, (hal_range){buffer, 16, 4}), bad,
                 "source: expected a multiple of 4 bytes, got offset 2");
    assert_fails(hal_queue_copy(queue, (hal_range){buffer, 0, 4}, (hal_range){foreign, 0, 4}), bad,
                 "target: expected a buffer of mock:0");
    assert_fails(hal_queue_write(queue, buffer, 1000, "", 27), bad,
                 "got offset 1000 and 27 "
                 "bytes");
    assert_fails(hal_queue_write(queue, buffer, UINT64_MAX, "", 1), bad,
                 "buffer: expected a range within");
    char out[4];
    assert_fails(hal_queue_read(queue, buffer, 1, UINT64_MAX, out), bad,
                 "buffer: expected a range within");
    assert_fails(hal_queue_write(queue, foreign, 0, "", 1), bad, "expected a buffer of mock:0");
    assert_fails(hal_queue_transfer(queue, buffer, 1000, queue, buffer, 0, 27), bad,
                 "source: expected a range within");
    assert_fails(hal_queue_transfer(queue, buffer, 0, queue, buffer, 9, 10), bad,
                 "target: expected no overlap with source");
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(mock->calls[MOCK_SUBMIT], 0);
}

DEVICE_TEST(dispatches_that_do_not_fit)
{
    const hal_status bad = HAL_ERROR_INVALID_ARGUMENT;
    const uint32_t grid[3] = {1, 1, 1};
    const uint32_t large[3] = {1, 65536, 1};
    const int32_t scalar = 0;
    hal_buffer *huge = mock_buffer(device, UINT64_C(300) << 20);
    hal_range bindings[2] = {{buffer, 0, 512}, {buffer, 512, HAL_WHOLE}};
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 1, &scalar, 4), bad,
                 "binding_count: expected 2, as kernel shift declares, got 1");
    assert_fails(hal_queue_dispatch(queue, kernel, grid, NULL, 2, &scalar, 4), bad,
                 "bindings: expected a valid pointer, got null");
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 8), bad,
                 "scalar_bytes: expected 4, as kernel shift declares, got 8");
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 2, NULL, 4), bad,
                 "scalars: expected a valid pointer, got null");
    assert_fails(hal_queue_dispatch(queue, kernel, large, bindings, 2, &scalar, 4), bad,
                 "grid[1]: expected at most 65535, the device's limit, got 65536");
    bindings[1].offset = 500;
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 4), bad,
                 "hal_queue_dispatch: bindings[1] (\"out\" of kernel shift): expected an offset "
                 "that is a multiple of the device's 16 bytes, got 500");
    bindings[1].offset = 496;
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 4), bad,
                 "bindings[1] (\"out\" of kernel shift): expected no overlap with a written range, "
                 "got one with bindings[0] (\"in\")");
    bindings[1].offset = 2048;
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 4), bad,
                 "expected a range within");
    bindings[1] = (hal_range){foreign, 0, HAL_WHOLE};
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 4), bad,
                 "expected a buffer of mock:0");
    bindings[1] = (hal_range){huge, 0, HAL_WHOLE};
    assert_fails(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 4), bad,
                 "expected at most 268435456 bytes, the device's limit, got length 314572800");
    hal_kernel *of_other = mock_kernel(second, 1);
    assert_fails(hal_queue_dispatch(queue, of_other, grid, bindings, 2, &scalar, 4), bad,
                 "kernel: expected one of mock:0, the queue's device, got shift of mock:1");
    hal_kernel_release(of_other);
    hal_buffer_release(huge);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(mock->calls[MOCK_SUBMIT], 0);
}

DEVICE_TEST(kernels_beyond_the_device)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *made = NULL;
    hal_ir_builder_create("wide", &b);
    hal_ir_group_size(b, 16, 32, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_u32(b, 0), hal_ir_u32(b, 1));
    assert_ok(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    assert_fails(hal_kernel_create(device, ir, &made), HAL_ERROR_UNSUPPORTED, "wide");
    assert_fails(hal_kernel_create(device, ir, &made), HAL_ERROR_UNSUPPORTED, "512");
    assert_null(made);
    hal_ir_kernel_destroy(ir);

    hal_ir_builder_create("greedy", &b);
    const hal_ir_memory_id more = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id shared = hal_ir_shared(b, "shared", HAL_TYPE_U32, 9000);
    hal_ir_store(b, shared, hal_ir_u32(b, 0), hal_ir_u32(b, 1));
    hal_ir_store(b, more, hal_ir_u32(b, 0), hal_ir_load(b, shared, hal_ir_u32(b, 0)));
    assert_ok(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    assert_fails(hal_kernel_create(device, ir, &made), HAL_ERROR_UNSUPPORTED, "greedy");
    assert_fails(hal_kernel_create(device, ir, &made), HAL_ERROR_UNSUPPORTED, "36000");
    hal_ir_kernel_destroy(ir);

    hal_ir_builder_create_fragment("piece", &b);
    hal_ir_output(b, 0, hal_ir_input(b, 0, HAL_TYPE_F32));
    assert_ok(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    assert_fails(hal_kernel_create(device, ir, &made), HAL_ERROR_INVALID_ARGUMENT,
                 "ir: expected a kernel, got fragment piece");
    hal_ir_kernel_destroy(ir);
}

DEVICE_TEST(labels_are_cut)
{
    char text[100];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    hal_buffer_set_label(buffer, text);
    assert_int_equal(hal_queue_fill(queue, (hal_range){buffer, 4096, 4}, 0),
                     HAL_ERROR_INVALID_ARGUMENT);
    text[47] = 0;
    assert_non_null(strstr(hal_status_message(), text));
    text[47] = 'x';
    text[48] = 0;
    assert_null(strstr(hal_status_message(), text));
    hal_buffer_set_label(buffer, NULL);
    assert_int_equal(hal_buffer_get_bytes(buffer), 1026);
    assert_int_equal(hal_buffer_get_kind(buffer), HAL_MEMORY_DEVICE);
    assert_ptr_equal(hal_buffer_get_device(buffer), device);
    assert_ptr_equal(hal_queue_get_device(queue), device);
}

/* Promise 4: everything of the plugin that can fail does, at each place, and leaves nothing. */
DEVICE_TEST(failures_leave_nothing_behind)
{
    for (int entry = 0; entry < MOCK_ENTRIES; entry++) {
        if (entry == MOCK_ENUMERATE || entry == MOCK_DEVICE_OPEN) {
            continue;
        }
        for (int nth = 1; nth < 6; nth++) {
            hal_queue *own = NULL;
            hal_buffer *a = NULL;
            hal_buffer *up = NULL;
            hal_kernel *made = NULL;
            hal_graph *graph = NULL;
            void *pointer;
            char data[64] = {0};
            hal_memory_statistics now;
            hal_ir_kernel *ir = mock_ir(50 + nth);
            mock->fail_in[entry] = nth;
            mock->fail_with = nth % 2 ? HAL_ERROR_INTERNAL : HAL_ERROR_OUT_OF_MEMORY;
            hal_device_trim(device);
            hal_queue_create(device, &own);
            hal_buffer_create(device, HAL_MEMORY_DEVICE, 64, &a);
            hal_buffer_create(device, HAL_MEMORY_UPLOAD, 64, &up);
            hal_kernel_create(device, ir, &made);
            hal_device_get_memory(device, &now);
            hal_buffer_map_begin(up, &pointer);
            hal_queue_write(own, a, 0, data, 64);
            hal_queue_fill(own, (hal_range){a, 0, 64}, 1);
            hal_queue_flush(own, NULL);
            hal_queue_copy(own, (hal_range){a, 0, 32}, (hal_range){a, 32, 32});
            hal_queue_read(own, a, 0, 64, data);
            if (hal_graph_begin(own) == HAL_OK) {
                hal_queue_fill(own, (hal_range){a, 0, 64}, 2);
                hal_graph_end(own, NULL, 0, &graph);
                hal_graph_launch(own, graph, NULL, 0);
            }
            hal_queue_wait(own, HAL_WAIT_FOREVER);
            mock->fail_in[entry] = 0;
            hal_graph_destroy(graph);
            hal_kernel_release(made);
            hal_buffer_release(a);
            hal_buffer_release(up);
            hal_queue_destroy(own);
            hal_ir_kernel_destroy(ir);
        }
    }
    assert_ok(hal_device_trim(device));
    assert_int_equal(mock->live_queues, 1);
    assert_int_equal(mock->live_kernels, 1);
    assert_int_equal(mock->live_memories, 2);
    assert_int_equal(mock->misuses, 0);
}

/* Promise 25. */
DEVICE_TEST(a_forked_child_is_told)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hal_memory_statistics now;
        int wrong = hal_device_get_memory(device, &now) != HAL_ERROR_INVALID_STATE;
        wrong |= (!strstr(hal_status_message(), "forked")) << 1;
        wrong |= (hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 1) != HAL_ERROR_INVALID_STATE)
                 << 2;
        wrong |= (hal_queue_flush(queue, NULL) != HAL_ERROR_INVALID_STATE) << 3;
        hal_kernel_release(kernel);
        hal_buffer_release(buffer);
        hal_queue_destroy(queue);
        hal_device_release(device);
        hal_device *own = NULL;
        wrong |= (hal_device_open("mock", &own) != HAL_OK || own == device) << 4;
        hal_device_release(own);
        _exit(wrong);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 1));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
}

DEVICE_TEST(opened_and_closed_a_thousand_times)
{
    for (int i = 0; i < 1000; i++) {
        hal_device *again = mock_open("mock_two");
        hal_queue *own = mock_queue(again);
        hal_buffer *own_buffer = mock_buffer(again, 64);
        hal_device_release(again); /* the order of releases is free */
        assert_ok(hal_queue_fill(own, (hal_range){own_buffer, 0, 64}, 1));
        hal_queue_destroy(own);
        hal_buffer_release(own_buffer);
    }
    mock_is_clean(mock_find("mock_two"));
}

DEVICE_TEST(the_version_is_told)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", HAL_VERSION_MAJOR, HAL_VERSION_MINOR,
             HAL_VERSION_PATCH);
    assert_string_equal(hal_version(), text);
}

static int begin(void **state)
{
    mock_find("mock")->device_count = 3;
    device_begin(state);
    second = mock_open("mock:1");
    buffer = mock_buffer(device, 1026);
    foreign = mock_buffer(second, 1024);
    return 0;
}

static int end(void **state)
{
    hal_device_release(device);
    hal_kernel_release(kernel);
    hal_buffer_release(foreign);
    hal_device_release(second);
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    mock_is_clean(mock);
    return 0;
}

UNIT_MAIN(begin, end)
