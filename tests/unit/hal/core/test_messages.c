/* A successful call leaves the message of the thread's last failure alone: one call fails, then all
 * others succeed, over a plugin that says something in each of its calls. */
#include "mock_device.h"

#include <hal/comm.h>
#include <hal/graph.h>
#include <hal/hal.h>
#include <stdlib.h>

static char failure[256];

#define UNCHANGED(call)                                     \
    do {                                                    \
        assert_ok(call);                                    \
        assert_string_equal(hal_status_message(), failure); \
    } while (0)

static void fail_once(void)
{
    assert_int_not_equal(hal_queue_flush(NULL, NULL), HAL_OK);
    snprintf(failure, sizeof failure, "%s", hal_status_message());
    mock->stray_words = 1;
}

DEVICE_TEST(buffers_and_queues_keep_the_message)
{
    hal_device *other = NULL;
    hal_queue *own = NULL;
    hal_buffer *one = NULL, *two = NULL;
    hal_memory_statistics memory;
    hal_point point, foreign;
    uint32_t words[16] = {0};
    fail_once();
    UNCHANGED(hal_device_open("mock:1", &other));
    UNCHANGED(hal_device_get_memory(device, &memory));
    UNCHANGED(hal_queue_create(device, &own));
    UNCHANGED(hal_queue_set_batch(own, 0, 0));
    UNCHANGED(hal_buffer_create(device, HAL_MEMORY_DEVICE, 64, &one));
    UNCHANGED(hal_buffer_create(device, HAL_MEMORY_UPLOAD, 64, &two));
    UNCHANGED(hal_queue_fill(own, (hal_range){one, 0, HAL_WHOLE}, 1));
    UNCHANGED(hal_queue_copy(own, (hal_range){one, 0, 32}, (hal_range){two, 0, 32}));
    UNCHANGED(hal_queue_write(own, one, 0, words, sizeof words));
    UNCHANGED(hal_queue_read(own, one, 0, sizeof words, words));
    mock->hold = 1;
    UNCHANGED(hal_queue_fill(own, (hal_range){one, 0, HAL_WHOLE}, 2));
    UNCHANGED(hal_queue_flush(own, &point));
    hal_queue *far = mock_queue(other);
    UNCHANGED(hal_queue_wait_point(far, point));
    hal_buffer *there = mock_buffer(other, 64);
    UNCHANGED(hal_queue_fill(far, (hal_range){there, 0, HAL_WHOLE}, 3));
    UNCHANGED(hal_queue_flush(far, &foreign));
    mock->hold = 0;
    UNCHANGED(hal_point_wait(foreign, HAL_WAIT_FOREVER));
    UNCHANGED(hal_queue_wait(own, HAL_WAIT_FOREVER));
    hal_buffer_release(there);
    hal_buffer_release(one);
    hal_buffer_release(two);
    hal_queue_destroy(far);
    hal_queue_destroy(own);
    hal_device_release(other);
    assert_string_equal(hal_status_message(), failure);
    mock->stray_words = 0;
}

/* The first two allocations fail, also after the pool was trimmed; the one after the queue was
 * waited for works. */
DEVICE_TEST(a_write_that_waits_for_memory_keeps_the_message)
{
    enum { BYTES = 32 << 20 };
    void *data = calloc(1, BYTES);
    hal_queue *own = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, BYTES);
    assert_non_null(data);
    fail_once();
    const uint32_t before = mock->calls[MOCK_ALLOCATE];
    mock->fail_with = HAL_ERROR_OUT_OF_MEMORY;
    mock->fail_more = 1;
    mock->fail_in[MOCK_ALLOCATE] = 1;
    UNCHANGED(hal_queue_write(own, buffer, 0, data, BYTES));
    assert_true(mock->calls[MOCK_ALLOCATE] > before + 2);
    mock->stray_words = 0;
    free(data);
    hal_buffer_release(buffer);
    hal_queue_destroy(own);
}

/* The plugin has no backend; then a rank ends the communicator, whose failure is an answer. */
DEVICE_TEST(communicators_keep_the_message)
{
    hal_device *devices[2] = {device, device};
    hal_comm *comms[2] = {NULL, NULL};
    hal_comm_status status;
    hal_comm_id id;
    char text[64];
    fail_once();
    UNCHANGED(hal_comm_id_create(&id));
    UNCHANGED(hal_comm_create_local(devices, 2, 0, comms));
    UNCHANGED(hal_comm_get_backend(device, sizeof text, text));
    UNCHANGED(hal_comm_abort(comms[1], "enough"));
    UNCHANGED(hal_comm_get_status(comms[0], &status));
    assert_int_equal(status.status, HAL_ERROR_INVALID_STATE);
    hal_comm_destroy(comms[0]);
    hal_comm_destroy(comms[1]);
    assert_string_equal(hal_status_message(), failure);
    mock->stray_words = 0;
}

/* A failure replaces the message of an earlier one. */
#define REPLACED(call, status, words)                                            \
    do {                                                                         \
        hal_status_set(HAL_OK, "an earlier failure");                            \
        assert_int_equal((call), status);                                        \
        if (!strstr(hal_status_message(), words)) {                              \
            fail_msg("%s: '%s' lacks '%s'", #call, hal_status_message(), words); \
        }                                                                        \
    } while (0)

static void waits_end(hal_queue *on, hal_point point)
{
    static const uint64_t limits[] = {0, 1, 50000, 300000, 3000000};
    for (uint32_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        REPLACED(hal_point_wait(point, limits[i]), HAL_ERROR_TIMEOUT, "not reached within");
        REPLACED(hal_queue_wait(on, limits[i]), HAL_ERROR_TIMEOUT, "not reached within");
    }
}

static void call_nothing(void *user, hal_status status)
{
}

DEVICE_TEST(a_wait_that_times_out_has_its_own_message)
{
    hal_device *other = mock_open("mock:1");
    hal_queue *far = mock_queue(other), *near = mock_queue(device), *called = mock_queue(device);
    hal_buffer *one = mock_buffer(device, 64), *there = mock_buffer(other, 64);
    hal_point point, foreign, after;
    mock->hold = 1;
    assert_ok(hal_queue_fill(near, (hal_range){one, 0, HAL_WHOLE}, 2));
    assert_ok(hal_queue_flush(near, &point));
    waits_end(near, point);
    assert_ok(hal_queue_wait_point(far, point));
    assert_ok(hal_queue_fill(far, (hal_range){there, 0, HAL_WHOLE}, 3));
    assert_ok(hal_queue_flush(far, &foreign));
    waits_end(far, foreign);
    assert_ok(hal_queue_wait_point(called, point));
    assert_ok(hal_queue_host_call(called, call_nothing, NULL, 0));
    assert_ok(hal_queue_fill(called, (hal_range){one, 0, HAL_WHOLE}, 2));
    assert_ok(hal_queue_flush(called, &after));
    waits_end(called, after);
    mock->stray_words = 1;
    waits_end(near, point);
    waits_end(far, foreign);
    mock->stray_words = 0;
    mock->hold = 0;
    assert_ok(hal_point_wait(foreign, HAL_WAIT_FOREVER));
    assert_ok(hal_point_wait(after, HAL_WAIT_FOREVER));
    hal_buffer_release(one);
    hal_buffer_release(there);
    hal_queue_destroy(far);
    hal_queue_destroy(near);
    hal_queue_destroy(called);
    hal_device_release(other);
}

UNIT_MAIN(device_begin, device_end)
