/* Graphs: kept commands, slots, and lives of what they use. */
#include "mock_device.h"

/* Keeps: fill a with `pattern`, copy a to b. */
static hal_graph *fill_and_copy(hal_buffer *a, hal_buffer *b, uint32_t pattern, int slots)
{
    hal_buffer *const both[2] = {a, b};
    hal_graph *graph = NULL;
    assert_ok(hal_graph_begin(queue));
    assert_ok(hal_queue_fill(queue, (hal_range){a, 0, HAL_WHOLE}, pattern));
    assert_ok(hal_queue_copy(queue, (hal_range){a, 0, HAL_WHOLE}, (hal_range){b, 0, HAL_WHOLE}));
    assert_ok(hal_graph_end(queue, both, (uint32_t)slots, &graph));
    return graph;
}

static uint32_t first_word(hal_buffer *buffer)
{
    uint32_t word = 0;
    assert_ok(hal_queue_read(queue, buffer, 0, sizeof word, &word));
    return word;
}

DEVICE_TEST(graphs_run_when_launched)
{
    hal_buffer *a = mock_buffer(device, 64);
    hal_buffer *b = mock_buffer(device, 64);
    assert_ok(hal_queue_fill(queue, (hal_range){b, 0, HAL_WHOLE}, 1));
    hal_graph *graph = fill_and_copy(a, b, 7, 0);
    assert_int_equal(hal_graph_get_command_count(graph), 2);
    assert_int_equal(first_word(b), 1);
    assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    assert_int_equal(first_word(b), 7);
    for (int i = 0; i < 3; i++) {
        assert_ok(hal_queue_fill(queue, (hal_range){b, 0, HAL_WHOLE}, 1));
        assert_ok(hal_graph_launch(queue, graph, NULL, 0));
        assert_int_equal(first_word(b), 7);
    }
    hal_graph_destroy(graph);
    hal_buffer_release(a);
    hal_buffer_release(b);
}

DEVICE_TEST(slots_take_other_buffers)
{
    hal_buffer *a = mock_buffer(device, 64);
    hal_buffer *b = mock_buffer(device, 64);
    hal_buffer *c = mock_buffer(device, 128);
    hal_buffer *small = mock_buffer(device, 60);
    hal_graph *graph = fill_and_copy(a, b, 9, 2);
    hal_queue_fill(queue, (hal_range){b, 0, HAL_WHOLE}, 1);
    hal_buffer *given[2] = {NULL, c};
    assert_ok(hal_graph_launch(queue, graph, given, 2));
    assert_int_equal(first_word(c), 9);
    assert_int_equal(first_word(b), 1);
    given[0] = c;
    assert_fails(hal_graph_launch(queue, graph, given, 2), HAL_ERROR_INVALID_ARGUMENT,
                 "buffers: expected no overlap with a written range, got one of "
                 "bindings 0 and 1 of command 1");
    given[0] = small;
    assert_fails(hal_graph_launch(queue, graph, given, 2), HAL_ERROR_INVALID_ARGUMENT,
                 "buffers[0]: expected at least the 64 bytes of the recorded buffer, got 60");
    assert_fails(hal_graph_launch(queue, graph, given, 1), HAL_ERROR_INVALID_ARGUMENT,
                 "buffer_count: expected 0 or 2, the number of slots, got 1");
    assert_fails(hal_graph_launch(queue, graph, NULL, 2), HAL_ERROR_INVALID_ARGUMENT,
                 "buffers: expected a valid pointer, got null");
    assert_fails(hal_graph_launch(queue, NULL, NULL, 0), HAL_ERROR_INVALID_ARGUMENT,
                 "graph: expected a valid pointer, got null");
    hal_graph_destroy(graph);
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_buffer_release(c);
    hal_buffer_release(small);
}

DEVICE_TEST(launches_are_ordered_with_what_is_around_them)
{
    hal_buffer *a = mock_buffer(device, 64);
    hal_buffer *b = mock_buffer(device, 64);
    hal_graph *graph = fill_and_copy(a, b, 9, 0);
    mock->logged_count = 0;
    hal_queue_fill(queue, (hal_range){a, 0, HAL_WHOLE}, 1);
    hal_graph_launch(queue, graph, NULL, 0);
    hal_graph_launch(queue, graph, NULL, 0);
    hal_queue_flush(queue, NULL);
    assert_int_equal(mock->logged_count, 5);
    static const int after[5] = {0, 1, 1, 1, 1};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mock->logged[i].command.flags & HAL_COMMAND_BARRIER, after[i]);
        assert_int_equal(mock->logged[i].value, mock->logged[0].value);
    }
    hal_graph_destroy(graph);
    hal_buffer_release(a);
    hal_buffer_release(b);
}

DEVICE_TEST(graphs_keep_memory_and_kernels)
{
    hal_buffer *a = mock_buffer(device, 1 << 20);
    hal_buffer *b = mock_buffer(device, 1 << 20);
    hal_kernel *own = mock_kernel(device, 33);
    hal_graph *graph = NULL;
    assert_ok(hal_graph_begin(queue));
    assert_ok(mock_dispatch(queue, own, a, b));
    assert_ok(hal_graph_end(queue, NULL, 0, &graph));
    hal_kernel_release(own);
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_buffer *fresh = mock_buffer(device, 1 << 20); /* not the graph's memory */
    hal_queue_fill(queue, (hal_range){fresh, 0, 4}, 1);
    mock->hold = 1;
    assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    hal_queue_flush(queue, NULL);
    const uint32_t last = mock->logged_count - 1;
    assert_ptr_not_equal(mock->logged[last].bindings[0].memory,
                         mock->logged[last - 1].bindings[0].memory);
    assert_ptr_not_equal(mock->logged[last].bindings[1].memory,
                         mock->logged[last - 1].bindings[0].memory);
    hal_graph_destroy(graph); /* the launch in flight is not touched */
    hal_device_trim(device);
    mock->hold = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->misuses, 0);
    hal_buffer_release(fresh);
}

DEVICE_TEST(what_is_not_a_command_is_refused_in_between)
{
    hal_buffer *a = mock_buffer(device, 64);
    hal_graph *graph = NULL;
    char data[4] = {0};
    hal_queue *other = mock_queue(device);
    assert_fails(hal_graph_end(queue, NULL, 0, &graph), HAL_ERROR_INVALID_STATE,
                 "queue: expected a graph in recording");
    assert_ok(hal_graph_begin(queue));
    assert_fails(hal_graph_begin(queue), HAL_ERROR_INVALID_STATE,
                 "queue: expected no graph in recording");
    assert_int_equal(hal_queue_flush(queue, NULL), HAL_ERROR_INVALID_STATE);
    assert_int_equal(hal_queue_wait(queue, 0), HAL_ERROR_INVALID_STATE);
    assert_int_equal(hal_queue_write(queue, a, 0, data, 4), HAL_ERROR_INVALID_STATE);
    assert_int_equal(hal_queue_read(queue, a, 0, 4, data), HAL_ERROR_INVALID_STATE);
    assert_int_equal(hal_queue_wait_point(queue, (hal_point){0}), HAL_ERROR_INVALID_STATE);
    assert_int_equal(hal_queue_transfer(queue, a, 0, other, a, 8, 4), HAL_ERROR_INVALID_STATE);
    assert_fails(hal_graph_end(queue, &a, 1, &graph), HAL_ERROR_INVALID_ARGUMENT,
                 "slots[0]: expected a buffer that a command of the graph uses, got one that none "
                 "uses");
    assert_null(graph);
    assert_ok(hal_queue_flush(queue, NULL)); /* the recording was dropped */
    assert_ok(hal_graph_begin(queue));
    hal_queue_fill(queue, (hal_range){a, 0, 4}, 1);
    hal_buffer *const twice[2] = {a, a};
    assert_fails(hal_graph_end(queue, twice, 2, &graph), HAL_ERROR_INVALID_ARGUMENT,
                 "slots[1]: expected a buffer that is in one slot only, got that of slots[0]");
    assert_ok(hal_graph_begin(other));
    hal_queue_fill(other, (hal_range){a, 0, 4}, 1);
    hal_queue_destroy(other); /* with a recording that was never ended */
    hal_buffer_release(a);
}

DEVICE_TEST(graphs_larger_than_a_batch_are_one_piece)
{
    enum { COUNT = HAL_QUEUE_BATCH_COMMANDS + 100 };
    hal_buffer *a = mock_buffer(device, 64);
    hal_buffer *b = mock_buffer(device, 64);
    hal_graph *graph = NULL;
    assert_ok(hal_graph_begin(queue));
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_ok(mock_dispatch(queue, kernel, a, b));
    }
    assert_ok(hal_graph_end(queue, NULL, 0, &graph));
    hal_queue_fill(queue, (hal_range){a, 0, 4}, 1);
    assert_ok(hal_graph_launch(queue, graph, NULL, 0));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->calls[MOCK_SUBMIT], 2);
    assert_int_equal(mock->logged_count, COUNT + 1);
    hal_graph_destroy(graph);
    hal_buffer_release(a);
    hal_buffer_release(b);
}

UNIT_MAIN(device_begin, device_end)
