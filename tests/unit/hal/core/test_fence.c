/* Fences of others: what hal passes to the plugin, in which order, and how long it keeps them. */
#include "mock_device.h"

#include <hal/fence.h>
#include <hal/host_call.h>
#include <stdatomic.h>

static uint64_t value; /* of the mock's fence */

static int fences_reset(void **state)
{
    value = 0;
    return device_reset(state);
}

static hal_fence *mock_fence(void)
{
    hal_fence *fence = NULL;
    assert_ok(hal_fence_import(device, HAL_HANDLE_NATIVE, (uint64_t)(uintptr_t)&value, &fence));
    return fence;
}

static void fill(hal_queue *on, hal_buffer *buffer, uint32_t pattern)
{
    assert_ok(hal_queue_fill(on, (hal_range){buffer, 0, 4}, pattern));
}

static void count_call(void *user, hal_status status)
{
    (void)status;
    ++*(int *)user;
}

/* What was recorded before does not wait; what comes after has a point, if only of an empty
 * batch. */
TEST_WITH(a_wait_is_between_two_batches, fences_reset, NULL)
{
    hal_buffer *buffer = mock_buffer(device, 64);
    hal_fence *fence = mock_fence();
    hal_point before = {0}, after = {0};
    fill(queue, buffer, 1);
    assert_ok(hal_queue_wait_fence(queue, fence, 2));
    assert_ok(hal_queue_flush(queue, &before));
    assert_ok(hal_queue_flush(queue, &after));
    assert_int_equal(before.value, after.value);
    assert_fails(hal_point_wait(after, 0), HAL_ERROR_TIMEOUT, "");
    assert_ok(hal_point_wait((hal_point){queue, after.value - 1}, 0));
    value = 2;
    assert_ok(hal_point_wait(after, HAL_WAIT_FOREVER));
    hal_fence_destroy(fence);
    assert_int_equal(mock->live_fences, 0);
    hal_buffer_release(buffer);
}

TEST_WITH(a_fence_is_raised_after_its_batch, fences_reset, NULL)
{
    hal_buffer *buffer = mock_buffer(device, 64);
    hal_fence *fence = mock_fence();
    const uint32_t before = mock->batches;
    fill(queue, buffer, 1);
    assert_ok(hal_queue_signal_fence(queue, fence, 7));
    assert_int_equal(mock->batches, before + 1);
    assert_int_equal(mock->raised[0], 7);
    const uint64_t submitted = mock->raised[1];
    int called = 0; /* the next batch is held back, and the fence with it */
    assert_ok(hal_queue_host_call(queue, count_call, &called, 0));
    mock->hold = 1;
    fill(queue, buffer, 2);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_ok(hal_queue_signal_fence(queue, fence, 8));
    mock->hold = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(called, 1);
    assert_int_equal(mock->raised[0], 8);
    assert_true(mock->raised[1] > submitted);
    hal_fence_destroy(fence);
    assert_int_equal(mock->live_fences, 0);
    hal_buffer_release(buffer);
}

/* A batch that the plugin rejects raises its fence, as its point is reached. */
TEST_WITH(a_dropped_batch_raises_its_fence, fences_reset, NULL)
{
    hal_buffer *buffer = mock_buffer(device, 64);
    hal_fence *fence = mock_fence();
    fill(queue, buffer, 1);
    mock->fail_in[MOCK_SUBMIT] = 1;
    assert_fails(hal_queue_signal_fence(queue, fence, 9), HAL_ERROR_INTERNAL, "told to fail");
    assert_int_equal(mock->raised[0], 9);
    mock->fail_in[MOCK_ORDER] = 1;
    assert_fails(hal_queue_signal_fence(queue, fence, 10), HAL_ERROR_INTERNAL, "raising a fence");
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_fence_destroy(fence);
    hal_buffer_release(buffer);
}

/* Batches that name it use it until they have ended. */
TEST_WITH(a_fence_lives_as_long_as_its_batches, fences_reset, NULL)
{
    hal_buffer *buffer = mock_buffer(device, 64);
    hal_fence *fence = mock_fence();
    assert_ok(hal_queue_wait_fence(queue, fence, 3));
    fill(queue, buffer, 1);
    hal_fence_destroy(fence); /* its batch is not even flushed */
    assert_int_equal(mock->live_fences, 1);
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(mock->live_fences, 1);
    value = 3;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(mock->live_fences, 0);
    hal_buffer_release(buffer);
}

/* A counter of the host needs no plugin. */
TEST_WITH(a_counter_of_the_host_orders_batches, fences_reset, NULL)
{
    static _Atomic uint64_t counter;
    hal_buffer *buffer = mock_buffer(device, 64);
    hal_fence *fence = NULL;
    hal_point point = {0};
    atomic_store(&counter, 0);
    assert_ok(hal_fence_import(device, HAL_HANDLE_HOST, (uint64_t)(uintptr_t)&counter, &fence));
    const uint32_t before = mock->batches;
    assert_ok(hal_queue_wait_fence(queue, fence, 1));
    fill(queue, buffer, 1);
    assert_ok(hal_queue_signal_fence(queue, fence, 2));
    assert_ok(hal_queue_wait_fence(queue, fence, 1)); /* a lower value is reached */
    assert_ok(hal_queue_flush(queue, &point));
    assert_int_equal(mock->batches, before);
    hal_fence_destroy(fence);
    atomic_store(&counter, 1);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(counter, 2);
    hal_buffer_release(buffer);
}

TEST_WITH(what_cannot_be_is_refused, fences_reset, NULL)
{
    hal_fence *fence = NULL;
    uint64_t handle = 0;
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT, lacks = HAL_ERROR_UNSUPPORTED;
    const uint64_t address = (uint64_t)(uintptr_t)&value;
    assert_fails(hal_fence_import(NULL, HAL_HANDLE_HOST, address, &fence), wrong, "device");
    assert_fails(hal_fence_import(device, HAL_HANDLE_HOST, address, NULL), wrong, "fence");
    assert_fails(hal_fence_import(device, HAL_HANDLE_HOST, 0, &fence), wrong, "handle");
    assert_fails(hal_fence_import(device, HAL_HANDLE_HOST, address + 1, &fence), wrong,
                 "multiple of 8");
    assert_fails(hal_fence_import(device, HAL_HANDLE_DMA_BUF, 1, &fence), wrong, "kind");
    assert_fails(hal_fence_import(device, HAL_HANDLE_OPAQUE_FD, 1, &fence), lacks, "imports");
    assert_fails(hal_fence_create(device, HAL_HANDLE_NATIVE, &fence), lacks, "creates");
    mock->fail_in[MOCK_ORDER] = 1;
    assert_fails(hal_fence_import(device, HAL_HANDLE_NATIVE, address, &fence), HAL_ERROR_INTERNAL,
                 "hal_fence_import");
    assert_null(fence);
    fence = mock_fence();
    assert_fails(hal_fence_export(fence, HAL_HANDLE_NATIVE, &handle), lacks, "exports");
    assert_fails(hal_fence_export(NULL, HAL_HANDLE_NATIVE, &handle), wrong, "fence");
    assert_fails(hal_queue_wait_fence(queue, NULL, 1), wrong, "fence");
    assert_fails(hal_queue_signal_fence(NULL, fence, 1), wrong, "queue");
    hal_fence_destroy(fence);
    hal_fence_destroy(NULL);
    hal_device *other = NULL;
    assert_ok(hal_device_open("mock:1", &other));
    assert_ok(hal_fence_import(other, HAL_HANDLE_HOST, address, &fence));
    assert_fails(hal_queue_wait_fence(queue, fence, 1), wrong, "mock:1");
    hal_fence_destroy(fence);
    hal_device_release(other);
    hal_external_info info = {0};
    assert_ok(hal_device_get_external(device, &info));
    assert_int_equal(info.fence_imports,
                     HAL_HANDLE_BIT(HAL_HANDLE_HOST) | HAL_HANDLE_BIT(HAL_HANDLE_NATIVE));
    assert_int_equal(info.fence_exports, 0); /* the mock creates none */
}

UNIT_MAIN(device_begin, device_end)
