/* Ranks that take the steps of two groups in different order, and functions of host calls that wait
 * for work after the call, wait for themselves: the validate layer reports the cycle with all
 * queues before the time limit ends; of right programs nothing. */
#include "mock_fixture.h"

#include <hal/fence.h>
#include <hal/host_call.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { RANKS = 2 };
static char finding[1024];

static void hear(void *user, hal_log_level level, const char *message)
{
    if (strstr(message, "a cycle of waits")) {
        snprintf(finding, sizeof finding, "%s", message);
    }
}

static int begin(void **state)
{
    setenv("HAL_LAYERS", "validate", 1);
    hal_log_set_callback(hear, NULL, 0);
    return mock_begin(state);
}

static void all_reduce(hal_queue *queue, hal_comm *comm, hal_buffer *buffer)
{
    static const hal_collective what = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};
    const hal_range whole = {buffer, 0, HAL_WHOLE};
    assert_ok(hal_queue_collective(queue, comm, &what, whole, whole, 16));
    assert_ok(hal_queue_flush(queue, NULL));
}

/* `swaps`: rank 1 takes the groups in the other order. Returns the status of rank 0's wait. */
static hal_status ranks_wait(bool swaps, uint64_t timeout_ns)
{
    hal_device *device = mock_open("mock");
    hal_device *devices[RANKS] = {device, device};
    hal_queue *queues[RANKS];
    hal_buffer *buffers[RANKS];
    hal_comm *groups[2][RANKS];
    for (int g = 0; g < 2; g++) {
        assert_ok(hal_comm_create_local(devices, RANKS, 0, groups[g]));
    }
    for (int i = 0; i < RANKS; i++) {
        queues[i] = mock_queue(device);
        buffers[i] = mock_buffer(device, 64);
        const int first = swaps && i == 1;
        assert_ok(hal_queue_fill(queues[i], (hal_range){buffers[i], 0, HAL_WHOLE}, 1));
        all_reduce(queues[i], groups[first][i], buffers[i]);
        all_reduce(queues[i], groups[!first][i], buffers[i]);
    }
    const hal_status status = hal_queue_wait(queues[0], timeout_ns);
    for (int g = 0; swaps && g < 2; g++) {
        for (int i = 0; i < RANKS; i++) {
            hal_comm_abort(groups[g][i], "the test ends");
        }
    }
    for (int i = 0; i < RANKS; i++) {
        hal_queue_destroy(queues[i]);
        hal_buffer_release(buffers[i]);
        for (int g = 0; g < 2; g++) {
            hal_comm_destroy(groups[g][i]);
        }
    }
    hal_device_release(device);
    return status;
}

TEST(one_order_is_no_cycle)
{
    assert_ok(ranks_wait(false, HAL_WAIT_FOREVER));
    assert_string_equal(finding, "");
}

TEST(cycles_are_reported_with_all_queues)
{
    assert_int_equal(ranks_wait(true, 400000000), HAL_ERROR_TIMEOUT);
    if (!strstr(finding, "all_reduce, step 1 of rank 0) waits for queue") ||
        !strstr(finding, "all_reduce, step 1 of rank 1) waits for queue")) {
        fail_msg("the finding is: %s", finding);
    }
}

/* ---- Fences ---- */

/* Two queues that wait for each other's signal; `waits_first`: before they signal. */
static hal_status fences_wait(bool waits_first, uint64_t timeout_ns)
{
    static _Atomic uint64_t counters[2];
    hal_device *device = mock_open("mock");
    hal_queue *queues[2] = {mock_queue(device), mock_queue(device)};
    hal_fence *fences[2];
    for (int i = 0; i < 2; i++) {
        counters[i] = 0;
        assert_ok(hal_fence_import(device, HAL_HANDLE_HOST, (uint64_t)(uintptr_t)&counters[i],
                                   &fences[i]));
    }
    for (int i = 0; i < 2; i++) {
        if (!waits_first) {
            assert_ok(hal_queue_signal_fence(queues[i], fences[i], 1));
        }
        assert_ok(hal_queue_wait_fence(queues[i], fences[!i], 1));
        if (waits_first) {
            assert_ok(hal_queue_signal_fence(queues[i], fences[i], 1));
        }
    }
    const hal_status status = hal_queue_wait(queues[0], timeout_ns);
    counters[1] = 1;
    for (int i = 0; i < 2; i++) {
        hal_queue_destroy(queues[i]);
        hal_fence_destroy(fences[!i]);
    }
    hal_device_release(device);
    return status;
}

TEST(signals_before_waits_are_no_cycle)
{
    finding[0] = 0;
    assert_ok(fences_wait(false, HAL_WAIT_FOREVER));
    assert_string_equal(finding, "");
}

TEST(cycles_through_fences_are_told_with_all_queues)
{
    finding[0] = 0;
    assert_int_equal(fences_wait(true, 400000000), HAL_ERROR_TIMEOUT);
    const char *second = strstr(finding, "at a fence) waits for queue");
    if (!second || !strstr(second + 1, "at a fence) waits for queue") ||
        !strstr(finding, "or raises the fence")) {
        fail_msg("the finding is: %s", finding);
    }
}

/* ---- Functions of host calls that wait ---- */

enum { LIMIT_NS = 400000000 };

typedef struct waiting_call {
    const hal_point *point; /* that the function waits for; null: it sleeps */
    hal_status status;
} waiting_call;

static void call_wait(void *user, hal_status status)
{
    waiting_call *call = user;
    if (call->point) {
        call->status = hal_point_wait(*call->point, LIMIT_NS);
    } else {
        usleep(LIMIT_NS / 1000);
    }
}

static void *point_wait(void *point)
{
    hal_point_wait(*(hal_point *)point, HAL_WAIT_FOREVER);
    return NULL;
}

typedef struct pair {
    mock_state *mock;
    hal_device *device;
    hal_queue *queues[2];
    hal_buffer *buffer;
    hal_point points[2]; /* the last ones */
    waiting_call calls[2];
} pair;

static hal_point pair_fill(pair *all, int i)
{
    const hal_range half = {all->buffer, (uint64_t)i * 32, 32};
    assert_ok(hal_queue_fill(all->queues[i], half, 1));
    assert_ok(hal_queue_flush(all->queues[i], &all->points[i]));
    return all->points[i];
}

static pair pair_open(void)
{
    pair made = {.device = mock_open("mock"), .mock = mock_find("mock")};
    made.mock->hold = 1; /* the functions run in waits, not in the flush of what comes after them */
    made.queues[0] = mock_queue(made.device);
    made.queues[1] = mock_queue(made.device);
    made.buffer = mock_buffer(made.device, 64);
    finding[0] = 0;
    return made;
}

/* Queue `i` calls a function that waits for the end of queue `of`, or sleeps if that is -1, with
 * work before and after it. */
static hal_point pair_call(pair *all, int i, int of)
{
    all->calls[i] = (waiting_call){of < 0 ? NULL : &all->points[of], HAL_OK};
    pair_fill(all, i);
    assert_ok(hal_queue_host_call(all->queues[i], call_wait, &all->calls[i], 0));
    return pair_fill(all, i);
}

static void pair_wait_and_close(pair *all)
{
    pthread_t other;
    all->mock->hold = 0;
    assert_int_equal(pthread_create(&other, NULL, point_wait, &all->points[1]), 0);
    assert_ok(hal_point_wait(all->points[0], HAL_WAIT_FOREVER));
    assert_int_equal(pthread_join(other, NULL), 0);
    hal_queue_destroy(all->queues[0]);
    hal_queue_destroy(all->queues[1]);
    hal_buffer_release(all->buffer);
    hal_device_release(all->device);
}

static void finding_has(const char *words)
{
    if (!strstr(finding, words)) {
        fail_msg("expected \"%s\", the finding is: %s", words, finding);
    }
}

TEST(calls_that_wait_for_their_own_queue_are_reported)
{
    pair all = pair_open();
    pair_call(&all, 0, 0);
    pair_wait_and_close(&all);
    assert_int_equal(all.calls[0].status, HAL_ERROR_TIMEOUT);
    finding_has("in a host call, which waits for batch 2 of the same queue) waits for queue");
}

TEST(calls_that_wait_for_work_after_their_queue_are_reported)
{
    pair all = pair_open();
    assert_ok(hal_queue_wait_point(all.queues[1], pair_call(&all, 0, 1)));
    pair_fill(&all, 1);
    pair_wait_and_close(&all);
    assert_int_equal(all.calls[0].status, HAL_ERROR_TIMEOUT);
    finding_has("in a host call, which waits for batch 1 of the next queue) waits for queue");
    finding_has("at a point)");
}

TEST(calls_of_two_threads_that_wait_for_each_other_are_reported)
{
    pair all = pair_open();
    pair_call(&all, 0, 1);
    pair_call(&all, 1, 0);
    pair_wait_and_close(&all);
    finding_has("of the next queue) waits for queue");
    assert_null(strstr(finding, "at a point"));
}

/* A function waits for a queue whose own function is slow, and two threads wait for both. */
TEST(slow_functions_are_no_cycle)
{
    pair all = pair_open();
    pair_call(&all, 1, -1);
    pair_call(&all, 0, 1);
    pair_wait_and_close(&all);
    assert_string_equal(finding, "");
}

UNIT_MAIN(begin, NULL)
