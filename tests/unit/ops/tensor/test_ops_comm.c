/* ops_comm_all_reduce and ops_comm_broadcast: lists of tensors over two ranks on one device, with
 * and without buckets and a second queue, and what they refuse. */
#include "unit.h"

#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 2, TENSORS = 7, MOST = 70000 };

typedef struct rank_state {
    hal_queue *queue, *second;
    ops_context *context;
    hal_comm *comm;
    ops_tensor tensors[TENSORS];
} rank_state;

static hal_device *device;
static rank_state ranks[RANKS];

static const hal_type types[TENSORS] = {HAL_TYPE_F32, HAL_TYPE_F32, HAL_TYPE_F32, HAL_TYPE_U8,
                                        HAL_TYPE_U8,  HAL_TYPE_F32, HAL_TYPE_F32};
static const int64_t counts[TENSORS] = {3, 100, MOST, 7, 64, 0, 1};

static int open_ranks(void **state)
{
    hal_device *devices[RANKS];
    hal_comm *comms[RANKS];
    int failed = hal_device_open("cpu", &device) != HAL_OK;
    devices[0] = devices[1] = device;
    failed = failed || hal_comm_create_local(devices, RANKS, 0, comms);
    for (int r = 0; !failed && r < RANKS; r++) {
        ranks[r].comm = comms[r];
        failed = hal_queue_create(device, &ranks[r].queue) ||
                 hal_queue_create(device, &ranks[r].second) ||
                 ops_context_create(ranks[r].queue, &ranks[r].context);
    }
    return failed ? -1 : 0;
}

static int close_ranks(void **state)
{
    for (int r = 0; r < RANKS; r++) {
        ops_context_destroy(ranks[r].context);
        hal_queue_destroy(ranks[r].queue);
        hal_queue_destroy(ranks[r].second);
        hal_comm_destroy(ranks[r].comm);
    }
    hal_device_release(device);
    return 0;
}

static double input(int rank, int tensor, int64_t i)
{
    return (double)((i * 7 + tensor * 13 + rank * 29) % 60);
}

static void fill_tensors(void)
{
    static float numbers[MOST];
    static uint8_t bytes[MOST];
    for (int r = 0; r < RANKS; r++) {
        for (int t = 0; t < TENSORS; t++) {
            for (int64_t i = 0; i < counts[t]; i++) {
                numbers[i] = (float)input(r, t, i);
                bytes[i] = (uint8_t)input(r, t, i);
            }
            assert_ok(ops_tensor_from_host(ranks[r].context, types[t], 1, &counts[t],
                                           types[t] == HAL_TYPE_U8 ? (void *)bytes : numbers,
                                           &ranks[r].tensors[t]));
        }
    }
}

static double element(const rank_state *rank, int t, int64_t i)
{
    static float numbers[MOST];
    static uint8_t bytes[MOST];
    static const ops_tensor *cached;
    if (cached != &rank->tensors[t] || i == 0) {
        cached = &rank->tensors[t];
        assert_ok(ops_tensor_read(rank->context, cached,
                                  (uint64_t)counts[t] * hal_type_size(types[t]),
                                  types[t] == HAL_TYPE_U8 ? (void *)bytes : numbers));
    }
    return types[t] == HAL_TYPE_U8 ? bytes[i] : (double)numbers[i];
}

static void release_tensors(void)
{
    for (int r = 0; r < RANKS; r++) {
        for (int t = 0; t < TENSORS; t++) {
            ops_tensor_release(&ranks[r].tensors[t]);
        }
    }
}

static void sums_are_right(uint64_t bucket_bytes, int on_second)
{
    fill_tensors();
    for (int r = 0; r < RANKS; r++) {
        ops_comm_options options = OPS_COMM_OPTIONS_DEFAULT;
        hal_point point;
        options.bucket_bytes = bucket_bytes;
        options.queue = on_second ? ranks[r].second : NULL;
        assert_ok(ops_comm_all_reduce(ranks[r].context, ranks[r].comm, HAL_REDUCE_SUM,
                                      ranks[r].tensors, TENSORS, &options));
        if (on_second) {
            assert_ok(hal_queue_flush(ranks[r].second, &point));
            assert_ok(hal_queue_wait_point(ranks[r].queue, point));
        }
    }
    for (int r = 0; r < RANKS; r++) {
        for (int t = 0; t < TENSORS; t++) {
            for (int64_t i = 0; i < counts[t]; i++) {
                assert_true(element(&ranks[r], t, i) == input(0, t, i) + input(1, t, i));
            }
        }
    }
    release_tensors();
}

TEST(lists_are_summed_with_buckets_of_any_size)
{
    sums_are_right(0, 0);
    sums_are_right(512, 0);
    sums_are_right(1, 0);
}

TEST(lists_are_summed_on_a_second_queue)
{
    sums_are_right(0, 1);
    sums_are_right(4096, 1);
}

TEST(broadcasts_replace_all_tensors)
{
    fill_tensors();
    for (int r = 0; r < RANKS; r++) {
        assert_ok(ops_comm_broadcast(ranks[r].context, ranks[r].comm, 1, ranks[r].tensors, TENSORS,
                                     NULL));
    }
    for (int r = 0; r < RANKS; r++) {
        for (int t = 0; t < TENSORS; t++) {
            for (int64_t i = 0; i < counts[t]; i++) {
                assert_true(element(&ranks[r], t, i) == input(1, t, i));
            }
        }
    }
    release_tensors();
}

TEST(wrong_lists_are_refused_and_leave_the_group_alone)
{
    ops_tensor view;
    hal_comm_status status;
    fill_tensors();
    rank_state *rank = &ranks[0];
    assert_ok(ops_tensor_slice(&rank->tensors[1], 0, 0, 10, 2, &view));
    assert_int_equal(ops_comm_all_reduce(rank->context, rank->comm, 0, &view, 1, NULL),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_ok(ops_tensor_slice(&rank->tensors[4], 0, 1, 10, 1, &view));
    assert_int_equal(ops_comm_all_reduce(rank->context, rank->comm, 0, &view, 1, NULL),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_comm_all_reduce(rank->context, NULL, 0, &view, 1, NULL),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_comm_all_reduce(rank->context, rank->comm, 0, NULL, 1, NULL),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_comm_all_reduce(rank->context, rank->comm, 0, rank->tensors, 1,
                                         &(ops_comm_options){.size = 4}),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_ok(hal_comm_get_status(rank->comm, &status));
    assert_int_equal(status.status, HAL_OK);
    release_tensors();
}

/* The last test: a failure in the middle of a list ends the communicator, so that no rank waits. */
TEST(a_failure_within_a_list_ends_the_group)
{
    hal_comm_status status;
    fill_tensors();
    assert_int_equal(
        ops_comm_all_reduce(ranks[0].context, ranks[0].comm, 99, ranks[0].tensors, TENSORS, NULL),
        HAL_ERROR_INVALID_ARGUMENT);
    assert_ok(hal_comm_get_status(ranks[1].comm, &status));
    assert_int_equal(status.status, HAL_ERROR_INVALID_STATE);
    assert_int_not_equal(ops_comm_all_reduce(ranks[1].context, ranks[1].comm, HAL_REDUCE_SUM,
                                             ranks[1].tensors, TENSORS, NULL),
                         HAL_OK);
    release_tensors();
}

UNIT_MAIN(open_ranks, close_ranks)
