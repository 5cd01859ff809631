/* The op library over the mock plugin: a device, a queue and a context for each test. Included by
 * tests of arrays that look at what the plugin gets. */
#ifndef TESTS_UNIT_OPS_MOCK_PLACE_H
#define TESTS_UNIT_OPS_MOCK_PLACE_H

#include "mock_fixture.h"

#include "ops_arrays.h"

static mock_state *mock;
static hal_device *device;
static hal_queue *queue;
static ops_context *context;

static inline int open_place(void **state)
{
    mock_begin(state);
    mock = mock_find("mock");
    mock_reset(mock);
    mock->infos[0].exactness = HAL_EXACT_FMA;
    device = mock_open("mock:0");
    queue = mock_queue(device);
    return ops_context_create(queue, &context) ? -1 : 0;
}

static inline int close_place(void **state)
{
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    mock_is_clean(mock);
    return 0;
}

#define OVER_MOCK(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

#endif
