/* mock_device.h: a device of the mock plugin with a queue and a kernel, for a whole group of tests.
 * Included by the tests of queues, graphs, hazards, the pool and bad input. */
#ifndef TESTS_UNIT_MOCK_DEVICE_H
#define TESTS_UNIT_MOCK_DEVICE_H

#include "mock_fixture.h"

static mock_state *mock;
static hal_device *device;
static hal_queue *queue;
static hal_kernel *kernel;

/* A group's set-up; a test that wants other devices changes `mock->infos` before. */
static inline int device_begin(void **state)
{
    mock = mock_find("mock");
    mock_begin(state);
    device = mock_open("mock");
    queue = mock_queue(device);
    kernel = mock_kernel(device, 1);
    return 0;
}

/* A test's set-up: the queue is idle, and nothing is logged or asked for. */
static inline int device_reset(void **state)
{
    const hal_status status = hal_queue_wait(queue, HAL_WAIT_FOREVER);
    mock_reset(mock);
    return status != HAL_OK;
}

#define DEVICE_TEST(name) TEST_WITH(name, device_reset, NULL)

static inline int device_end(void **state)
{
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
    hal_device_release(device);
    mock_is_clean(mock);
    return 0;
}

#endif
