/* Waits for held batches with gates: a wait polls gates without sleeping until one has used all
 * attempts. The sleeps are counted: the test's pthread_cond_timedwait comes before that of the C
 * library. */
#include "core/held.h"
#include "core/queue.h"

#include "mock_device.h"

#include <errno.h>
#include <pthread.h>

enum { ROUNDS = HAL_HELD_EAGER_ATTEMPTS / 4 * 3 };

static uint32_t sleeps;

/* No time passes. */
HAL_API int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                   const struct timespec *end)
{
    sleeps++;
    return ETIMEDOUT;
}

/* Opens after a number of visits: polls that come after each other in one visit count once. */
typedef struct slow_gate {
    hal_gate gate; /* must be first */
    uint32_t visits, visits_needed;
} slow_gate;

static hal_status slow_gate_advance(hal_gate *gate, int *open)
{
    slow_gate *slow = (slow_gate *)gate;
    slow->visits += !gate->is_repeated;
    *open = slow->visits > slow->visits_needed;
    return HAL_OK;
}

static void slow_gate_destroy(hal_gate *gate)
{
}

/* Flushes a batch that such a gate holds. */
static void batch_hold(hal_buffer *buffer, slow_gate *slow, uint32_t visits)
{
    *slow = (slow_gate){.gate = {.advance = slow_gate_advance, .destroy = slow_gate_destroy},
                        .visits_needed = visits};
    queue->recorder.recording->gate = &slow->gate;
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 1));
    assert_ok(hal_queue_flush(queue, NULL));
}

DEVICE_TEST(a_wait_polls_each_gate_as_often_as_the_first)
{
    enum { GATES = 4 };
    slow_gate gates[GATES];
    hal_buffer *buffer = mock_buffer(device, 64);
    for (uint32_t i = 0; i < GATES; i++) {
        batch_hold(buffer, &gates[i], 2 * ROUNDS); /* an attempt has two visits */
    }
    sleeps = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(sleeps, 0);
    hal_buffer_release(buffer);
}

DEVICE_TEST(a_wait_sleeps_at_all_gates_after_one_that_used_all_attempts)
{
    slow_gate gates[2];
    hal_buffer *buffer = mock_buffer(device, 64);
    batch_hold(buffer, &gates[0], 3 * HAL_HELD_EAGER_ATTEMPTS);
    batch_hold(buffer, &gates[1], 10);
    sleeps = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    const uint32_t after_both = sleeps;
    assert_true(after_both > 0);
    batch_hold(buffer, &gates[0], 3 * HAL_HELD_EAGER_ATTEMPTS);
    sleeps = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_true(sleeps > 0);
    assert_true(after_both > sleeps);
    hal_buffer_release(buffer);
}

UNIT_MAIN(device_begin, device_end)
