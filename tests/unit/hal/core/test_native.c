/* Queues of the driver that others own: what hal passes to the plugin, in which order, and what it
 * refuses. */
#include "mock_device.h"

#include <hal/native.h>

static void fill(hal_queue *on, hal_buffer *buffer)
{
    assert_ok(hal_queue_fill(on, (hal_range){buffer, 0, 4}, 1));
}

static void count_call(void *user, hal_status status)
{
    (void)status;
    ++*(int *)user;
}

TEST_WITH(a_queue_is_imported, device_reset, NULL)
{
    hal_queue *made = NULL;
    hal_buffer *buffer = mock_buffer(device, 64);
    const int live = mock->live_queues;
    assert_ok(hal_queue_import_native(device, "mock_stream", 77, &made));
    assert_int_equal(mock->native[0], 77);
    assert_int_equal(mock->live_queues, live + 1);
    fill(made, buffer);
    assert_ok(hal_queue_wait(made, HAL_WAIT_FOREVER));
    hal_queue_destroy(made);
    assert_int_equal(mock->live_queues, live);
    hal_buffer_release(buffer);
}

/* What was recorded before does not wait; what comes after has a point, if only of an empty
 * batch. */
TEST_WITH(a_wait_is_between_two_batches, device_reset, NULL)
{
    hal_buffer *buffer = mock_buffer(device, 64);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    const uint32_t before = mock->batches;
    fill(queue, buffer);
    assert_ok(hal_queue_wait_native(queue, "mock_stream", 5));
    assert_int_equal(mock->native[1], 5);
    assert_int_equal(mock->batches, before + 1);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->batches, before + 2);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->batches, before + 2);
    hal_buffer_release(buffer);
}

/* A write that comes after the driver's queue is not made by the host alone. */
TEST_WITH(a_write_after_a_wait_is_recorded, device_reset, NULL)
{
    hal_buffer *buffer = NULL;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_SHARED, 64, &buffer));
    const uint32_t word = 9;
    assert_ok(hal_queue_wait_native(queue, "mock_stream", 5));
    mock->hold = 1;
    assert_ok(hal_queue_write(queue, buffer, 0, &word, 4));
    mock->hold = 0;
    const uint32_t before = mock->logged_count;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_true(mock->logged_count > before);
    hal_buffer_release(buffer);
}

TEST_WITH(others_wait_for_all_that_was_flushed, device_reset, NULL)
{
    hal_buffer *buffer = mock_buffer(device, 64);
    fill(queue, buffer);
    const uint32_t before = mock->batches;
    assert_ok(hal_queue_block_native(queue, "mock_stream", 6));
    assert_int_equal(mock->native[2], 6);
    assert_int_equal(mock->batches, before + 1);
    const uint64_t first = mock->native_value[1];
    int called = 0; /* its batch is held back, so the host waits */
    assert_ok(hal_queue_host_call(queue, count_call, &called, 0));
    fill(queue, buffer);
    assert_ok(hal_queue_block_native(queue, "mock_stream", 6));
    assert_int_equal(called, 1);
    assert_int_equal(mock->native_value[1], first + 1);
    hal_buffer_release(buffer);
}

TEST_WITH(what_cannot_be_is_refused, device_reset, NULL)
{
    hal_queue *made = NULL;
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT, lacks = HAL_ERROR_UNSUPPORTED;
    assert_fails(hal_queue_import_native(NULL, "mock_stream", 1, &made), wrong, "device");
    assert_fails(hal_queue_import_native(device, NULL, 1, &made), wrong, "type");
    assert_fails(hal_queue_import_native(device, "mock_stream", 1, NULL), wrong, "queue");
    assert_fails(hal_queue_import_native(device, "CUstream", 1, &made), lacks, "mock_stream");
    assert_null(made);
    assert_fails(hal_queue_wait_native(NULL, "mock_stream", 1), wrong, "queue");
    assert_fails(hal_queue_wait_native(queue, NULL, 1), wrong, "type");
    assert_fails(hal_queue_block_native(queue, NULL, 1), wrong, "type");
    mock->fail_in[MOCK_ORDER] = 1;
    assert_fails(hal_queue_wait_native(queue, "mock_stream", 1), HAL_ERROR_INTERNAL,
                 "the mock was told to fail");
    mock->fail_in[MOCK_ORDER] = 1;
    assert_fails(hal_queue_block_native(queue, "mock_stream", 1), HAL_ERROR_INTERNAL,
                 "hal_queue_block_native");
}

UNIT_MAIN(device_begin, device_end)
