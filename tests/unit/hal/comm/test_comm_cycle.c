/* Ranks that take the steps of two groups in different order wait for each other: the validate
 * layer reports the cycle with all queues before the time limit ends; in one order nothing. */
#include "mock_fixture.h"

#include <stdbool.h>

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

UNIT_MAIN(begin, NULL)
