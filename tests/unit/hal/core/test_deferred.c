/* Waits for deferred batches with host fences: a wait polls fences without sleeping until one has
 * used all attempts. The sleeps are counted: the test's pthread_cond_timedwait comes before that of
 * the C library. */
#include "core/deferred.h"
#include "core/queue.h"

#include "mock_device.h"

#include <errno.h>
#include <pthread.h>

enum { ATTEMPTS = 400, ROUNDS = ATTEMPTS / 4 * 3 };

static const hal_poll_policy policy = {.attempts = 1000,
                                       .attempts_alone = ATTEMPTS,
                                       .polls_alone = 16,
                                       .yield_after = UINT32_MAX,
                                       .renew_below = ATTEMPTS};

static uint32_t sleeps;

/* No time passes. */
HAL_API int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                   const struct timespec *end)
{
    sleeps++;
    return ETIMEDOUT;
}

/* Signaled after a number of visits: polls that come after each other in one visit count once. */
typedef struct slow_fence {
    hal_host_fence fence; /* must be first */
    uint32_t visits, visits_needed;
} slow_fence;

static hal_status slow_fence_advance(hal_host_fence *fence, bool repeats, bool *signaled)
{
    slow_fence *slow = (slow_fence *)fence;
    slow->visits += !repeats;
    *signaled = slow->visits > slow->visits_needed;
    return HAL_OK;
}

static void slow_fence_destroy(hal_host_fence *fence)
{
}

/* Flushes a batch that waits for such a fence. */
static void batch_defer(hal_buffer *buffer, slow_fence *slow, uint32_t visits)
{
    *slow = (slow_fence){
        .fence = {.advance = slow_fence_advance, .destroy = slow_fence_destroy, .policy = &policy},
        .visits_needed = visits};
    queue->recorder.recording->fence = &slow->fence;
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 1));
    assert_ok(hal_queue_flush(queue, NULL));
}

DEVICE_TEST(a_wait_polls_each_fence_as_often_as_the_first)
{
    enum { FENCES = 4 };
    slow_fence fences[FENCES];
    hal_buffer *buffer = mock_buffer(device, 64);
    for (uint32_t i = 0; i < FENCES; i++) {
        batch_defer(buffer, &fences[i], 2 * ROUNDS); /* an attempt has two visits */
    }
    sleeps = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(sleeps, 0);
    hal_buffer_release(buffer);
}

DEVICE_TEST(a_wait_sleeps_at_all_fences_after_one_that_used_all_attempts)
{
    slow_fence fences[2];
    hal_buffer *buffer = mock_buffer(device, 64);
    batch_defer(buffer, &fences[0], 3 * ATTEMPTS);
    batch_defer(buffer, &fences[1], 10);
    sleeps = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    const uint32_t after_both = sleeps;
    assert_true(after_both > 0);
    batch_defer(buffer, &fences[0], 3 * ATTEMPTS);
    sleeps = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_true(sleeps > 0);
    assert_true(after_both > sleeps);
    hal_buffer_release(buffer);
}

UNIT_MAIN(device_begin, device_end)
