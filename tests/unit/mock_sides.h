/* mock_sides.h: two mock plugins, and sides: a device, its queue and a buffer. Included by the
 * tests of work on several devices. */
#ifndef TESTS_UNIT_MOCK_SIDES_H
#define TESTS_UNIT_MOCK_SIDES_H

#include "mock_fixture.h"

static mock_state *mock, *two;

enum { SIDE_BYTES = 4096 };

typedef struct side {
    hal_device *device;
    hal_queue *queue;
    hal_buffer *buffer; /* of SIDE_BYTES */
} side;

static inline side make_side(const char *selection)
{
    side made = {.device = mock_open(selection)};
    made.queue = mock_queue(made.device);
    made.buffer = mock_buffer(made.device, SIDE_BYTES);
    return made;
}

static inline void end_side(side *made)
{
    hal_buffer_release(made->buffer);
    hal_queue_destroy(made->queue);
    hal_device_release(made->device);
}

static inline int sides_begin(void **state)
{
    mock = mock_find("mock");
    two = mock_find("mock_two");
    return mock_begin(state);
}

static inline int sides_reset(void **state)
{
    mock_reset(mock);
    mock_reset(two);
    return 0;
}

static inline int sides_end(void **state)
{
    mock_is_clean(mock);
    mock_is_clean(two);
    return 0;
}

/* A test after which nothing may be left in either plugin. */
#define SIDES_TEST(test) cmocka_unit_test_setup_teardown(test, sides_reset, sides_end)

#endif
