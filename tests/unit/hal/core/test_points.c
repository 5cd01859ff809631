/* Points: order between queues of one device, of two devices and of two plugins; held batches. */
#include "mock_sides.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static hal_point fill(side *at, uint32_t pattern)
{
    hal_point point = {0};
    assert_ok(hal_queue_fill(at->queue, (hal_range){at->buffer, 0, HAL_WHOLE}, pattern));
    assert_ok(hal_queue_flush(at->queue, &point));
    return point;
}

SIDES_TEST(points_are_reached_in_order)
{
    side *one = side_open("mock");
    mock->hold = 1;
    const hal_point first = fill(one, 1);
    const hal_point second = fill(one, 2);
    hal_point again;
    assert_int_equal(second.value, first.value + 1);
    assert_ok(hal_queue_flush(one->queue, &again));
    assert_int_equal(again.value, second.value);
    assert_fails(hal_point_wait(first, 0), HAL_ERROR_TIMEOUT, "not reached within 0 ns");
    assert_fails(hal_queue_wait(one->queue, 2000000), HAL_ERROR_TIMEOUT, "2000000 ns");
    mock->fail_with = HAL_ERROR_TIMEOUT;
    mock->fail_in[MOCK_WAIT] = 1;
    assert_fails(hal_point_wait(first, HAL_WAIT_FOREVER), HAL_ERROR_TIMEOUT,
                 "ended a wait without a time limit");
    mock->hold = 0;
    assert_ok(hal_point_wait(second, HAL_WAIT_FOREVER));
    assert_ok(hal_point_wait(first, 0));
    assert_ok(hal_point_wait((hal_point){0}, 0));
}

/* Batches whose point nobody has need no time; a point that comes after one is that of an empty
 * batch. */
SIDES_TEST(batches_without_points_are_untimed)
{
    side *one = side_open("mock");
    const hal_range all = {one->buffer, 0, HAL_WHOLE};
    hal_point first, second;
    uint64_t nanoseconds;
    mock->batches = mock->untimed = 0;
    assert_ok(hal_queue_fill(one->queue, all, 1));
    assert_ok(hal_queue_flush(one->queue, NULL));
    assert_ok(hal_queue_flush(one->queue, NULL));
    assert_ok(hal_queue_wait(one->queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->batches, 1);
    assert_int_equal(mock->untimed, 1);
    assert_ok(hal_queue_flush(one->queue, &first));
    assert_ok(hal_queue_flush(one->queue, &first));
    assert_int_equal(mock->batches, 2);
    assert_ok(hal_queue_fill(one->queue, all, 2));
    assert_ok(hal_queue_flush(one->queue, &second));
    assert_int_equal(mock->batches, 3);
    assert_int_equal(mock->untimed, 1);
    assert_ok(hal_queue_wait(one->queue, HAL_WAIT_FOREVER));
    assert_ok(hal_point_get_elapsed(first, second, &nanoseconds));
}

/* A sentence for TIMEOUT does not go with what fails later without one. */
SIDES_TEST(sentences_of_timeouts_are_ignored)
{
    side *one = side_open("mock");
    mock->hold = 1;
    const hal_point point = fill(one, 1);
    mock->fail_with = HAL_ERROR_TIMEOUT;
    mock->fail_in[MOCK_WAIT] = 1;
    assert_fails(hal_point_wait(point, 0), HAL_ERROR_TIMEOUT, "not reached within 0 ns");
    mock->no_words = 1;
    mock->fail_with = HAL_ERROR_INTERNAL;
    mock->fail_in[MOCK_SUBMIT] = 1;
    assert_ok(hal_queue_fill(one->queue, (hal_range){one->buffer, 0, HAL_WHOLE}, 1));
    assert_fails(hal_queue_flush(one->queue, NULL), HAL_ERROR_INTERNAL, "HAL_ERROR_INTERNAL");
    mock->hold = 0;
}

SIDES_TEST(points_that_were_never_given_out_are_refused)
{
    side *one = side_open("mock");
    side *other = side_open("mock");
    const hal_point point = fill(one, 1);
    const hal_point later = {one->queue, point.value + 1};
    assert_fails(hal_point_wait(later, 0), HAL_ERROR_INVALID_ARGUMENT,
                 "hal_point_wait: point: expected a value up to ");
    assert_fails(hal_queue_wait_point(other->queue, later), HAL_ERROR_INVALID_ARGUMENT,
                 "hal_queue_wait_point: point: expected a value up to ");
    assert_fails(hal_point_wait((hal_point){NULL, 3}, 0), HAL_ERROR_INVALID_ARGUMENT,
                 "expected value 0 without a queue, got 3");
}

SIDES_TEST(queues_of_a_device_wait_in_the_plugin)
{
    side *one = side_open("mock");
    side *other = side_open("mock");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    const uint32_t before = mock->calls[MOCK_SUBMIT];
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point later = fill(other, 8);
    assert_int_equal(mock->calls[MOCK_SUBMIT], before + 1);
    assert_int_equal(hal_point_wait(later, 0), HAL_ERROR_TIMEOUT);
    mock->hold = 0;
    assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
    assert_ok(hal_point_wait(point, 0));
}

/* Of memory that the host sees as well, where nothing has to be recorded to read it. */
SIDES_TEST(reading_comes_after_what_the_queue_waits_for)
{
    side *one = side_open("mock:2");
    side *other = side_open("mock:2");
    uint32_t seen = 0;
    mock->slow = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    assert_ok(hal_queue_read(other->queue, one->buffer, 0, sizeof seen, &seen));
    assert_int_equal(seen, 7);
}

/* Also where the host could write at once, as nothing uses the memory: the point of the write
 * is after what its queue waits for. */
SIDES_TEST(a_write_comes_after_what_the_queue_waits_for)
{
    side *one = side_open("mock");
    side *other = side_open("mock");
    const uint32_t word = 5;
    hal_buffer *unused = NULL;
    hal_point later;
    assert_ok(hal_buffer_create(other->device, HAL_MEMORY_SHARED, 64, &unused));
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    assert_ok(hal_queue_write(other->queue, unused, 0, &word, sizeof word));
    assert_ok(hal_queue_flush(other->queue, &later));
    assert_int_equal(hal_point_wait(later, 0), HAL_ERROR_TIMEOUT);
    mock->hold = 0;
    assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
    uint32_t seen = 0;
    assert_ok(hal_queue_read(other->queue, unused, 0, sizeof seen, &seen));
    assert_int_equal(seen, word);
    hal_buffer_release(unused);
}

SIDES_TEST(other_plugins_are_waited_for_by_hal)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const uint32_t before = two->calls[MOCK_SUBMIT];
    const hal_point held = fill(other, 1);
    const hal_point held_too = fill(other, 2);
    assert_int_equal(two->calls[MOCK_SUBMIT], before);
    assert_int_equal(hal_point_wait(held, 0), HAL_ERROR_TIMEOUT);
    assert_int_equal(hal_point_wait(held_too, 1000000), HAL_ERROR_TIMEOUT);
    mock->hold = 0;
    /* The next call on either queue moves it on. */
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_flush(one->queue, NULL));
    assert_int_equal(two->calls[MOCK_SUBMIT], before + 2);
    assert_ok(hal_point_wait(held_too, HAL_WAIT_FOREVER));
    uint32_t value;
    assert_ok(hal_queue_read(other->queue, other->buffer, 0, sizeof value, &value));
    assert_int_equal(value, 2);
}

SIDES_TEST(waiting_for_a_held_batch_waits_for_what_holds_it)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    side *third = side_open("mock:1");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point held = fill(other, 1);
    assert_ok(hal_queue_wait_point(third->queue, held));
    const hal_point held_twice = fill(third, 2);
    assert_int_equal(hal_point_wait(held_twice, 0), HAL_ERROR_TIMEOUT);
    mock->hold = 0;
    assert_ok(hal_point_wait(held_twice, HAL_WAIT_FOREVER));
    assert_ok(hal_point_wait(point, 0));
    assert_ok(hal_point_wait(held, 0));
}

SIDES_TEST(a_queue_of_the_device_after_a_held_one_is_held_too)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    side *next = side_open("mock_two");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point held = fill(other, 1);
    assert_ok(hal_queue_wait_point(next->queue, held));
    const hal_point later = fill(next, 2);
    assert_int_equal(hal_point_wait(later, 0), HAL_ERROR_TIMEOUT);
    mock->hold = 0;
    assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
}

SIDES_TEST(destroying_either_queue_ends_well)
{
    for (int round = 0; round < 2; round++) {
        side *one = side_open("mock");
        side *other = side_open("mock_two");
        mock->hold = 1;
        const hal_point point = fill(one, 7);
        assert_ok(hal_queue_wait_point(other->queue, point));
        const hal_point held = fill(other, 9);
        mock->hold = 0;
        if (round == 0) {
            side_close(one);
            assert_ok(hal_point_wait(held, HAL_WAIT_FOREVER));
            side_close(other);
        } else {
            side_close(other);
            side_close(one);
        }
        mock_is_clean(mock);
        mock_is_clean(two);
    }
}

/* The wait outlives the device that it names. */
SIDES_TEST(a_wait_for_a_closed_device_is_over)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    mock->hold = 0;
    side_close(one);
    assert_ok(hal_point_wait(point, 0));
    const hal_point later = fill(other, 3);
    assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
}

SIDES_TEST(a_queue_stays_as_long_as_batches_name_it)
{
    side *one = side_open("mock");
    side *other = side_open("mock");
    mock->slow = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point later = fill(other, 8);
    side_close(one);
    assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
}

SIDES_TEST(a_held_batch_that_fails_is_reported_once)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point held = fill(other, 1);
    two->fail_in[MOCK_SUBMIT] = 1;
    two->fail_with = HAL_ERROR_OUT_OF_MEMORY;
    mock->hold = 0;
    assert_ok(hal_point_wait(held, HAL_WAIT_FOREVER));
    assert_fails(hal_queue_flush(other->queue, NULL), HAL_ERROR_OUT_OF_MEMORY,
                 "hal deferred was dropped");
    assert_ok(hal_queue_flush(other->queue, NULL));
    const hal_point later = fill(other, 2);
    assert_int_equal(later.value, held.value + 1);
    assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
}

/* Neither the batch nor an empty one in its place is accepted: nothing will reach the point. */
SIDES_TEST(a_held_batch_whose_queue_takes_nothing_loses_the_device)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point held = fill(other, 1);
    two->fail_in[MOCK_SUBMIT] = 1;
    two->fail_more = 1000;
    two->fail_with = HAL_ERROR_OUT_OF_MEMORY;
    mock->hold = 0;
    assert_fails(hal_point_wait(held, HAL_WAIT_FOREVER), HAL_ERROR_DEVICE_LOST, "lost");
    two->fail_more = 0;
    two->fail_in[MOCK_SUBMIT] = 0;
}

/* Work recorded after a held batch that failed runs before the queue ends. */
SIDES_TEST(a_failure_of_a_held_batch_ends_no_work)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point held = fill(other, 1);
    assert_ok(hal_queue_fill(other->queue, (hal_range){other->buffer, 0, HAL_WHOLE}, 2));
    two->fail_in[MOCK_SUBMIT] = 1;
    two->fail_with = HAL_ERROR_OUT_OF_MEMORY;
    mock->hold = 0;
    assert_ok(hal_point_wait(held, HAL_WAIT_FOREVER));
    hal_queue_destroy(other->queue); /* the log has the failure */
    other->queue = mock_queue(other->device);
    uint32_t value = 0;
    assert_ok(hal_queue_read(other->queue, other->buffer, 0, sizeof value, &value));
    assert_int_equal(value, 2);
}

/* A queue whose device is lost takes what is held of it along, whatever it waits for. */
SIDES_TEST(a_held_batch_goes_with_its_lost_device)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    hal_queue *second = mock_queue(other->device);
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    fill(other, 1);
    two->fail_in[MOCK_SUBMIT] = 1;
    two->fail_with = HAL_ERROR_DEVICE_LOST;
    assert_ok(hal_queue_fill(second, (hal_range){other->buffer, 0, HAL_WHOLE}, 3));
    assert_int_equal(hal_queue_flush(second, NULL), HAL_ERROR_DEVICE_LOST);
    hal_queue_destroy(second);
    side_close(other);
    mock->hold = 0;
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    const hal_point later = fill(one, 8);
    assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
}

SIDES_TEST(transfers_cross_plugins)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two:1");
    fill(one, 0x01020304);
    assert_ok(hal_queue_transfer(one->queue, one->buffer, 4, other->queue, other->buffer, 1, 4000));
    uint8_t bytes[4001];
    assert_ok(hal_queue_read(other->queue, other->buffer, 0, sizeof bytes, bytes));
    assert_int_equal(bytes[1], 4);
    assert_int_equal(bytes[4000], 1);
}

SIDES_TEST(time_between_points)
{
    side *one = side_open("mock");
    uint64_t nanoseconds = 0;
    const hal_point first = fill(one, 1);
    const hal_point second = fill(one, 2);
    assert_ok(hal_queue_wait(one->queue, HAL_WAIT_FOREVER));
    assert_ok(hal_point_get_elapsed(first, second, &nanoseconds));
    assert_int_equal(nanoseconds, 1000);
    assert_fails(hal_point_get_elapsed(second, first, &nanoseconds), HAL_ERROR_INVALID_ARGUMENT,
                 "not before first");
    assert_fails(hal_point_get_elapsed(first, second, NULL), HAL_ERROR_INVALID_ARGUMENT,
                 "nanoseconds: expected a valid pointer, got null");
    assert_fails(hal_point_get_elapsed((hal_point){one->queue, 0}, second, &nanoseconds),
                 HAL_ERROR_INVALID_ARGUMENT, "expected the point of a batch, got 0");
    mock->hold = 1;
    const hal_point third = fill(one, 3);
    assert_fails(hal_point_get_elapsed(first, third, &nanoseconds), HAL_ERROR_INVALID_STATE,
                 "second: expected a reached point");
    mock->hold = 0;
    side_close(one);
    one = side_open("mock:1");
    const hal_point fourth = fill(one, 4);
    assert_fails(hal_point_get_elapsed(fourth, fourth, &nanoseconds), HAL_ERROR_UNSUPPORTED,
                 "does not support HAL_FEATURE_TIMESTAMPS");
}

static void *release_later(void *argument)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    mock->hold = 0;
    return argument;
}

SIDES_TEST(points_may_be_waited_for_from_any_thread)
{
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    pthread_t thread;
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    const hal_point held = fill(other, 1);
    assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
    assert_ok(hal_point_wait(held, UINT64_C(60000000000)));
    pthread_join(thread, NULL);
}

static _Atomic int progress;

static void *wait_for_held(void *argument)
{
    const hal_point *held = argument;
    return hal_point_wait(*held, HAL_WAIT_FOREVER) == HAL_OK ? NULL : argument;
}

static void *flush_and_wait(void *argument)
{
    const side *at = argument;
    if (hal_queue_fill(at->queue, (hal_range){at->buffer, 0, HAL_WHOLE}, 5) != HAL_OK ||
        hal_queue_flush(at->queue, NULL) != HAL_OK ||
        hal_queue_wait(at->queue, HAL_WAIT_FOREVER) != HAL_OK) {
        return argument;
    }
    progress = 1;
    return NULL;
}

static void *wait_for_held_briefly(void *argument)
{
    const hal_point *held = argument;
    if (hal_point_wait(*held, 0) != HAL_ERROR_TIMEOUT ||
        hal_point_wait(*held, 1000000) != HAL_ERROR_TIMEOUT) {
        return argument;
    }
    progress = 1;
    return NULL;
}

/* Whether `function` makes progress on a thread while `stalled` is set. */
static int progresses_during(_Atomic int *stalled, void *(*function)(void *), void *argument)
{
    enum { PATIENCE_MS = 60000 }; /* which only a failure takes */
    pthread_t thread;
    void *result = NULL;
    progress = 0;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    for (int i = 0; i < PATIENCE_MS && !progress; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    const int progressed = progress;
    if (!progressed) {
        *stalled = 0;
    }
    pthread_join(thread, &result);
    assert_null(result);
    return progressed;
}

/* A thread submits a held batch, or asks whether it is ready, and the plugin does not return. */
static void a_stalled_advance_stalls_no_other_queue(enum mock_entry entry)
{
    mock_state *stalled = entry == MOCK_SUBMIT ? two : mock;
    side *one = side_open("mock");
    side *other = side_open("mock_two");
    side *third = side_open(entry == MOCK_SUBMIT ? "mock" : "mock_two");
    pthread_t waiter;
    void *result = NULL;
    mock->hold = 1;
    const hal_point point = fill(one, 7);
    assert_ok(hal_queue_wait_point(other->queue, point));
    hal_point held = fill(other, 1);
    const uint32_t before = stalled->calls[entry];
    stalled->stall[entry] = 1;
    mock->hold = 0;
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_held, &held), 0);
    while (stalled->calls[entry] == before) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    const int flushes = progresses_during(&stalled->stall[entry], flush_and_wait, third);
    const int times_out =
        flushes && progresses_during(&stalled->stall[entry], wait_for_held_briefly, &held);
    stalled->stall[entry] = 0;
    pthread_join(waiter, &result);
    assert_null(result);
    assert_int_equal(flushes, 1);
    assert_int_equal(times_out, 1);
    uint32_t value = 0;
    assert_ok(hal_queue_read(other->queue, other->buffer, 0, sizeof value, &value));
    assert_int_equal(value, 1);
}

SIDES_TEST(submitting_a_held_batch_stalls_no_other_queue)
{
    (void)state;
    a_stalled_advance_stalls_no_other_queue(MOCK_SUBMIT);
}

SIDES_TEST(polling_for_a_held_batch_stalls_no_other_queue)
{
    (void)state;
    a_stalled_advance_stalls_no_other_queue(MOCK_WAIT);
}

static int begin(void **state)
{
    const int failed = sides_begin(state);
    mock->infos[0].features = HAL_FEATURE_TIMESTAMPS;
    mock->infos[2].features = HAL_FEATURE_MAP_DEVICE;
    mock->device_count = 3;
    return failed;
}

UNIT_MAIN(begin, NULL)
