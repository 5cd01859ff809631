/* Transfers between queues: of one device, of devices that reach one another and of such that do
 * not; which way they take, their order on both queues, what they keep alive, how they fail. */
#include "mock_sides.h"

static void fill(side *at, uint64_t offset, uint32_t pattern)
{
    assert_ok(hal_queue_fill(at->queue, (hal_range){at->buffer, offset, HAL_WHOLE}, pattern));
}

static hal_status transfer(side *from, side *to, uint64_t bytes)
{
    return hal_queue_transfer(from->queue, from->buffer, 0, to->queue, to->buffer, 0, bytes);
}

static uint32_t word(side *at, uint64_t offset)
{
    uint32_t value = 0;
    assert_ok(hal_queue_read(at->queue, at->buffer, offset, sizeof value, &value));
    return value;
}

/* One copy from memory to memory, nothing staged and nothing waited for by the host. */
SIDES_TEST(devices_that_reach_each_other_copy_themselves)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    mock->reach = 1;
    fill(one, 0, 0x04030201);
    const uint32_t allocations = mock->calls[MOCK_ALLOCATE];
    assert_ok(hal_queue_transfer(one->queue, one->buffer, 5, other->queue, other->buffer, 2, 4001));
    assert_int_equal(mock->calls[MOCK_ALLOCATE], allocations);
    assert_int_equal(mock->calls[MOCK_MAP], 0);
    assert_int_equal(mock->calls[MOCK_WAIT], 0);
    const mock_logged *copy = &mock->logged[mock->logged_count - 1];
    assert_int_equal(copy->command.kind, HAL_COMMAND_COPY);
    assert_ptr_not_equal(copy->bindings[0].memory, copy->bindings[1].memory);
    assert_int_equal(copy->bindings[0].offset, 5);
    assert_int_equal(copy->bindings[1].offset, 2);
    assert_int_equal(copy->bindings[1].length, 4001);
    uint8_t bytes[SIDE_BYTES];
    assert_ok(hal_queue_read(other->queue, other->buffer, 0, SIDE_BYTES, bytes));
    for (int i = 2; i < 4003; i++) {
        assert_int_equal(bytes[i], (i - 2 + 5) % 4 + 1);
    }
    assert_int_equal(bytes[1], 0xA5);
    assert_int_equal(bytes[4003], 0xA5);
}

/* After what both queues did before, before what either does later, while all is in flight. */
SIDES_TEST(order_holds_on_both_queues)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    mock->reach = 1;
    for (int turn = 0; turn < 2; turn++) {
        hal_point points[2];
        mock->hold = 1;
        fill(one, 0, 7);
        fill(other, 0, 1);
        assert_ok(transfer(one, other, SIDE_BYTES));
        assert_ok(hal_queue_flush(one->queue, &points[0]));
        assert_ok(hal_queue_flush(other->queue, &points[1]));
        fill(one, 0, 9);
        fill(other, SIDE_BYTES - 4, 3);
        assert_ok(transfer(other, one, 8)); /* and back */
        fill(other, 0, 5);
        assert_ok(hal_queue_flush(other->queue, NULL));
        assert_int_equal(hal_point_wait(points[0], 0), HAL_ERROR_TIMEOUT);
        assert_int_equal(hal_point_wait(points[1], 0), HAL_ERROR_TIMEOUT);
        mock->hold = 0;
        mock->slow = turn;
        assert_int_equal(word(one, 4), 7);
        assert_int_equal(word(one, 8), 9);
        assert_int_equal(word(other, 4), 5);
        assert_ok(hal_point_wait(points[1], 0));
    }
}

/* What either queue waits for, though it has recorded nothing after it yet. */
SIDES_TEST(the_copy_comes_after_the_waits_of_both_queues)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    hal_queue *third[2] = {mock_queue(one->device), mock_queue(other->device)};
    hal_point point;
    mock->reach = 1;
    mock->hold = 1;
    assert_ok(hal_queue_fill(third[0], (hal_range){one->buffer, 0, HAL_WHOLE}, 7));
    assert_ok(hal_queue_flush(third[0], &point));
    assert_ok(hal_queue_wait_point(one->queue, point));
    assert_ok(hal_queue_fill(third[1], (hal_range){other->buffer, 0, HAL_WHOLE}, 8));
    assert_ok(hal_queue_flush(third[1], &point));
    assert_ok(hal_queue_wait_point(other->queue, point));
    assert_ok(transfer(one, other, SIDE_BYTES / 2));
    mock->hold = 0;
    assert_ok(hal_queue_wait(one->queue, HAL_WAIT_FOREVER));
    assert_int_equal(word(other, 0), 7);
    assert_int_equal(word(other, SIDE_BYTES / 2), 8);
    hal_queue_destroy(third[0]);
    hal_queue_destroy(third[1]);
}

/* Waiting for the target's queue waits for the copy, though it recorded nothing. */
SIDES_TEST(waiting_for_the_target_waits_for_the_copy)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    hal_buffer *mapped = NULL;
    uint32_t *words = NULL;
    assert_ok(hal_buffer_create(other->device, HAL_MEMORY_SHARED, SIDE_BYTES, &mapped));
    mock->reach = 1;
    mock->slow = 1;
    fill(one, 0, 11);
    assert_ok(hal_queue_transfer(one->queue, one->buffer, 0, other->queue, mapped, 0, SIDE_BYTES));
    assert_ok(hal_queue_wait(other->queue, HAL_WAIT_FOREVER));
    assert_ok(hal_buffer_map_begin(mapped, (void **)&words));
    assert_int_equal(words[SIDE_BYTES / 4 - 1], 11);
    assert_ok(hal_buffer_map_end(mapped));
    hal_buffer_release(mapped);
}

/* The copies of a stream wait for the target's queue once, until it has work again. */
SIDES_TEST(a_stream_of_copies_waits_once)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    mock->reach = 1;
    mock->slow = 1;
    fill(one, 0, 11);
    fill(other, 0, 5);
    const uint32_t before = mock->waits;
    for (int i = 0; i < 3; i++) {
        assert_ok(transfer(one, other, SIDE_BYTES));
    }
    assert_int_equal(mock->waits - before, 1 + 3); /* each copy is waited for by the target */
    fill(other, 0, 6);
    assert_ok(transfer(one, other, 4));
    assert_int_equal(mock->waits - before, 4 + 2);
    fill(one, 0, 12);
    assert_ok(transfer(other, one, SIDE_BYTES));
    assert_ok(transfer(one, other, SIDE_BYTES));
    assert_int_equal(mock->waits - before, 6 + 4);
    assert_int_equal(word(one, 0), 11);
    assert_int_equal(word(one, 4), 6);
    assert_int_equal(word(other, 4), 6);
}

/* Either side may go at once: buffers, queues and devices. */
SIDES_TEST(a_copy_in_flight_keeps_both_sides)
{
    for (int turn = 0; turn < 4; turn++) {
        side *one = side_open("mock:0");
        side *other = side_open("mock:1");
        mock->reach = 1;
        mock->slow = 1;
        if (turn < 2) {
            fill(one, 0, 7); /* else there is nothing yet that the copy waits for */
            fill(other, 0, 8);
        }
        assert_ok(transfer(one, other, SIDE_BYTES));
        side_close(turn % 2 ? one : other);
        side_close(turn % 2 ? other : one);
        mock_is_clean(mock);
    }
}

/* The block goes to a new buffer while the copy into it has not run: its work comes later. */
SIDES_TEST(memory_that_is_reused_comes_after_the_copy)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    mock->reach = 1;
    mock->hold = 1;
    fill(one, 0, 7);
    assert_ok(transfer(one, other, SIDE_BYTES));
    const uint32_t allocations = mock->calls[MOCK_ALLOCATE];
    hal_buffer_release(other->buffer);
    other->buffer = mock_buffer(other->device, SIDE_BYTES);
    assert_int_equal(mock->calls[MOCK_ALLOCATE], allocations);
    fill(other, 0, 4);
    assert_ok(hal_queue_flush(other->queue, NULL));
    mock->hold = 0;
    assert_int_equal(word(other, 0), 4);
}

SIDES_TEST(others_go_through_the_host)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    side *third = side_open("mock_two:1");
    two->reach = 1; /* of no use between plugins */
    fill(one, 0, 7);
    assert_ok(transfer(one, other, SIDE_BYTES));
    assert_int_equal(mock->calls[MOCK_REACHES] > 0, 1);
    assert_int_equal(mock->calls[MOCK_MAP] > 0, 1);
    assert_ok(transfer(other, third, SIDE_BYTES));
    assert_int_equal(two->calls[MOCK_REACHES], 0);
    assert_int_equal(word(third, SIDE_BYTES - 4), 7);
}

SIDES_TEST(queues_of_one_device_need_not_ask)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:0");
    fill(one, 0, 7);
    assert_ok(transfer(one, other, SIDE_BYTES));
    assert_ok(hal_queue_transfer(other->queue, other->buffer, 0, other->queue, other->buffer, 2001,
                                 1999));
    assert_int_equal(mock->calls[MOCK_REACHES], 0);
    assert_int_equal(mock->calls[MOCK_MAP], 0);
    assert_int_equal(word(other, 2001), 7);
}

/* The n-th batch is not taken: an error, and the queues go on. */
SIDES_TEST(failures_are_reported)
{
    for (int nth = 1; nth <= 4; nth++) {
        side *one = side_open("mock:0");
        side *other = side_open("mock:1");
        mock->reach = 1;
        fill(one, 0, 7);
        fill(other, 0, 8);
        mock->fail_in[MOCK_SUBMIT] = nth;
        mock->fail_with = HAL_ERROR_OUT_OF_MEMORY;
        assert_fails(transfer(one, other, SIDE_BYTES), HAL_ERROR_OUT_OF_MEMORY, "told to fail");
        mock->fail_in[MOCK_SUBMIT] = 0;
        fill(one, 0, 17);
        assert_ok(transfer(one, other, SIDE_BYTES));
        assert_int_equal(word(other, 0), 17);
        side_close(one);
        side_close(other);
        mock_is_clean(mock);
    }
}

/* A source that hal holds back for another plugin's device: the transfer waits, and its batch's
 * failure is its own. */
SIDES_TEST(a_held_source_is_waited_for)
{
    for (int failing = 0; failing < 2; failing++) {
        side *one = side_open("mock:0");
        side *other = side_open("mock:1");
        side *third = side_open("mock_two:0");
        hal_point point;
        mock->reach = 1;
        two->slow = 1;
        fill(third, 0, 1);
        assert_ok(hal_queue_flush(third->queue, &point));
        assert_ok(hal_queue_wait_point(one->queue, point));
        fill(one, 0, 7);
        mock->fail_in[MOCK_SUBMIT] = failing;
        const hal_status status = transfer(one, other, SIDE_BYTES);
        assert_int_equal(status, failing ? HAL_ERROR_INTERNAL : HAL_OK);
        side_close(one);
        if (!failing) {
            assert_int_equal(word(other, 8), 7);
        }
        side_close(other);
        side_close(third);
        mock_is_clean(mock);
        mock_is_clean(two);
    }
}

/* hal holds nothing back for a device that is reached. */
SIDES_TEST(queues_wait_for_those_of_devices_in_reach)
{
    side *one = side_open("mock:0");
    side *other = side_open("mock:1");
    for (int reach = 0; reach < 2; reach++) {
        hal_point point, later;
        mock->reach = reach;
        mock->hold = 1;
        fill(one, 0, 7);
        assert_ok(hal_queue_flush(one->queue, &point));
        assert_ok(hal_queue_wait_point(other->queue, point));
        const uint32_t before = mock->calls[MOCK_SUBMIT];
        fill(other, 0, 8);
        assert_ok(hal_queue_flush(other->queue, &later));
        assert_int_equal(mock->calls[MOCK_SUBMIT], before + (uint32_t)reach);
        assert_int_equal(hal_point_wait(later, 0), HAL_ERROR_TIMEOUT);
        mock->hold = 0;
        assert_ok(hal_point_wait(later, HAL_WAIT_FOREVER));
        assert_ok(hal_point_wait(point, 0));
    }
}

UNIT_MAIN(sides_begin, NULL)
