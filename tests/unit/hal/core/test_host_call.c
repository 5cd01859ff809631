/* Functions of the program in the order of a queue. */
#include "mock_device.h"

#include <hal/host_call.h>

typedef struct called {
    int count;
    hal_status status;
    uint32_t batches; /* that the plugin had when the function ran */
    hal_buffer *released;
} called;

static void note_call(void *user, hal_status status)
{
    called *at = user;
    at->count++;
    at->status = status;
    at->batches = atomic_load(&mock->batches);
    hal_buffer_release(at->released);
    at->released = NULL;
}

static int reset(void **state)
{
    mock_reset(mock);
    hal_queue_wait(queue, HAL_WAIT_FOREVER);
    return 0;
}

static void fill(hal_queue *on, hal_buffer *buffer, uint32_t pattern)
{
    assert_ok(hal_queue_fill(on, (hal_range){buffer, 0, 16}, pattern));
}

TEST_WITH(a_function_runs_between_the_batches_around_it, reset, NULL)
{
    called at = {0};
    hal_buffer *buffer = mock_buffer(device, 64);
    at.released = hal_buffer_retain(buffer);
    mock->hold = 1;
    fill(queue, buffer, 1);
    const uint32_t before = mock->batches;
    assert_ok(hal_queue_host_call(queue, note_call, &at, 0));
    fill(queue, buffer, 2);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(at.count, 0);
    assert_int_equal(mock->batches, before + 1); /* the second one waits */
    mock->hold = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(at.count, 1);
    assert_int_equal(at.status, HAL_OK);
    assert_int_equal(at.batches, before + 1);
    assert_int_equal(mock->batches, before + 2);
    hal_buffer_release(buffer);
}

TEST_WITH(functions_run_in_their_order_also_without_commands, reset, NULL)
{
    called first = {0}, second = {0};
    assert_ok(hal_queue_host_call(queue, note_call, &first, 0));
    assert_ok(hal_queue_host_call(queue, note_call, &second, 0));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(first.count, 1);
    assert_int_equal(second.count, 1);
}

TEST_WITH(nothing_waits_for_a_detached_function, reset, NULL)
{
    called at = {0};
    hal_buffer *buffer = mock_buffer(device, 64);
    mock->hold = 1;
    fill(queue, buffer, 1);
    const uint32_t before = mock->batches;
    assert_ok(hal_queue_host_call(queue, note_call, &at, HAL_HOST_CALL_DETACHED));
    fill(queue, buffer, 2);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(mock->batches, before + 2);
    assert_int_equal(at.count, 0);
    mock->hold = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(at.count, 1);
    hal_buffer_release(buffer);
}

TEST_WITH(each_function_is_called_when_its_queue_is_destroyed, reset, NULL)
{
    called flushed = {0}, recorded = {0};
    hal_queue *second = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 64);
    fill(second, buffer, 1);
    assert_ok(hal_queue_host_call(second, note_call, &flushed, HAL_HOST_CALL_DETACHED));
    assert_ok(hal_queue_host_call(second, note_call, &recorded, 0));
    hal_queue_destroy(second);
    assert_int_equal(flushed.count, 1);
    assert_int_equal(recorded.count, 1);
    hal_buffer_release(buffer);
}

TEST_WITH(bad_arguments_call_nothing, reset, NULL)
{
    called at = {0};
    assert_fails(hal_queue_host_call(queue, NULL, &at, 0), HAL_ERROR_INVALID_ARGUMENT, "function");
    assert_fails(hal_queue_host_call(queue, note_call, &at, 8), HAL_ERROR_INVALID_ARGUMENT,
                 "flags");
    assert_fails(hal_queue_host_call(NULL, note_call, &at, 0), HAL_ERROR_INVALID_ARGUMENT, "queue");
    mock->fail_in[MOCK_SUBMIT] = 1;
    hal_buffer *buffer = mock_buffer(device, 64);
    fill(queue, buffer, 1);
    assert_fails(hal_queue_host_call(queue, note_call, &at, 0), HAL_ERROR_INTERNAL, "");
    assert_int_equal(at.count, 0);
    hal_buffer_release(buffer);
}

UNIT_MAIN(device_begin, device_end)
