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

/* The sides of a test that are open. */
static side sides[4];

static inline side *side_open(const char *selection)
{
    side *made = sides;
    while (made->device) {
        made++;
        assert_true(made < sides + sizeof sides / sizeof *sides);
    }
    made->device = mock_open(selection);
    made->queue = mock_queue(made->device);
    made->buffer = mock_buffer(made->device, SIDE_BYTES);
    return made;
}

static inline void side_close(side *open)
{
    hal_buffer_release(open->buffer);
    hal_queue_destroy(open->queue);
    hal_device_release(open->device);
    *open = (side){0};
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
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        side_close(&sides[i]);
    }
    mock_is_clean(mock);
    mock_is_clean(two);
    return 0;
}

/* A test whose open sides are closed at its end, and after which nothing may be left in either
 * plugin. */
#define SIDES_TEST(name) TEST_WITH(name, sides_reset, sides_end)

#endif
