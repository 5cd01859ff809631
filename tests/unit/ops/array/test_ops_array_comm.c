/* ops_array_all_reduce: arrays over two ranks on one device, deferred, constant, strided and empty
 * ones, in place, on a second queue and in graphs; communicators of one rank; wrong arguments;
 * leaks. */
#include "ops_arrays.h"

#include <ops/comm.h>

enum { RANKS = 2, ARRAYS = 6, ROWS = 3, COLUMNS = 5, COUNT = ROWS * COLUMNS };

typedef struct rank_state {
    hal_queue *queue, *second;
    ops_context *context;
    hal_comm *comm, *alone;
} rank_state;

static hal_device *device;
static rank_state ranks[RANKS];

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
                 ops_context_create(ranks[r].queue, &ranks[r].context) ||
                 hal_comm_create_local(devices, 1, 0, &ranks[r].alone);
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
        hal_comm_destroy(ranks[r].alone);
    }
    hal_device_release(device);
    return 0;
}

static ops_array *matrix(int r, double scale)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    float numbers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (float)(scale * (i + 10 * (r + 1)));
    }
    return made(ops_array_from_host(ranks[r].context, HAL_TYPE_F32, 2, shape, numbers));
}

static ops_array *vector_u8(int r, int64_t count, int first)
{
    uint8_t numbers[COUNT];
    for (int i = 0; i < count; i++) {
        numbers[i] = (uint8_t)(first + i + r);
    }
    return made(ops_array_from_host(ranks[r].context, HAL_TYPE_U8, 1, &count, numbers));
}

/* Of a rank: a deferred sum, a transposed view, a constant, bytes from an odd offset on, an empty
 * array, and a scalar. In the innermost scope. */
static void arrays_make(int r, ops_array **arrays)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    ops_context *context = ranks[r].context;
    arrays[0] = ops_add(matrix(r, 1), matrix(r, 2));
    arrays[1] = ops_array_transpose(matrix(r, 1), 0, 1);
    arrays[2] = ops_array_full(context, HAL_TYPE_F32, 2, shape, 7 + r);
    arrays[3] = ops_array_slice(vector_u8(r, 9, 1), 0, 1, 8, 1);
    arrays[4] = vector_u8(r, 0, 0);
    arrays[5] = ops_array_scalar(context, HAL_TYPE_F32, 1 + r);
}

static void expect_f32(ops_array *array, const double *want, int count)
{
    float got[COUNT];
    assert_ok(ops_array_read(made(array), (uint64_t)count * sizeof *got, got));
    for (int i = 0; i < count; i++) {
        assert_true((double)got[i] == want[i]);
    }
}

static void expect_sums(ops_array *const *results)
{
    double sum[COUNT], turned[COUNT], full[COUNT];
    uint8_t bytes[8];
    for (int i = 0; i < COUNT; i++) {
        sum[i] = 3 * (i + 10) + 3 * (i + 20);
        turned[i % COLUMNS * ROWS + i / COLUMNS] = i + 10 + i + 20;
        full[i] = 7 + 8;
    }
    expect_f32(results[0], sum, COUNT);
    expect_f32(results[1], turned, COUNT);
    assert_int_equal(ops_array_get_length(results[1], 0), COLUMNS);
    expect_f32(results[2], full, COUNT);
    assert_ok(ops_array_read(results[3], sizeof bytes, bytes));
    for (int i = 0; i < 8; i++) {
        assert_int_equal(bytes[i], 2 * (i + 2) + 1);
    }
    assert_int_equal(ops_array_get_element_count(results[4]), 0);
    assert_int_equal(ops_array_get_rank(results[5]), 0);
    expect_f32(results[5], &(const double){3}, 1);
}

static void sums_are_right(uint64_t bucket_bytes, int on_second, int in_place)
{
    ops_array *arrays[RANKS][ARRAYS], *results[RANKS][ARRAYS];
    for (int r = 0; r < RANKS; r++) {
        ops_comm_options options = OPS_COMM_OPTIONS_DEFAULT;
        ops_array **into = in_place ? arrays[r] : results[r];
        options.bucket_bytes = bucket_bytes;
        options.queue = on_second ? ranks[r].second : NULL;
        assert_ok(ops_scope_begin(ranks[r].context));
        arrays_make(r, arrays[r]);
        assert_ok(
            ops_array_all_reduce(ranks[r].comm, HAL_REDUCE_SUM, arrays[r], ARRAYS, &options, into));
        if (on_second) {
            hal_point point;
            assert_ok(hal_queue_flush(ranks[r].second, &point));
            assert_ok(hal_queue_wait_point(ranks[r].queue, point));
        }
    }
    for (int r = 0; r < RANKS; r++) {
        expect_sums(in_place ? arrays[r] : results[r]);
        assert_ok(ops_scope_end(ranks[r].context));
        assert_int_equal(statistics_of(ranks[r].context).arrays, 0);
    }
}

TEST(lists_are_summed_with_buckets_and_without)
{
    sums_are_right(0, 0, 0);
    sums_are_right(1, 0, 0);
    sums_are_right(0, 0, 1);
    sums_are_right(0, 1, 0);
}

TEST(inputs_keep_their_values)
{
    ops_array *x[RANKS], *y[RANKS];
    for (int r = 0; r < RANKS; r++) {
        x[r] = matrix(r, 1);
        assert_ok(ops_array_all_reduce(ranks[r].comm, HAL_REDUCE_MAX, &x[r], 1, NULL, &y[r]));
    }
    for (int r = 0; r < RANKS; r++) {
        double own[COUNT], most[COUNT];
        for (int i = 0; i < COUNT; i++) {
            own[i] = i + 10 * (r + 1);
            most[i] = i + 20;
        }
        expect_f32(x[r], own, COUNT);
        expect_f32(y[r], most, COUNT);
        release_all(x[r], y[r]);
    }
}

TEST(a_group_of_one_rank_defers_what_was_deferred)
{
    double want[COUNT];
    for (int i = 0; i < COUNT; i++) {
        want[i] = 3 * (i + 10);
    }
    ops_context *context = ranks[0].context;
    assert_ok(ops_scope_begin(context));
    ops_array *x = ops_add(matrix(0, 1), matrix(0, 2)), *y = NULL;
    const uint64_t kernels = statistics_of(context).kernels;
    assert_ok(ops_array_all_reduce(ranks[0].alone, HAL_REDUCE_SUM, &x, 1, NULL, &y));
    assert_int_equal(statistics_of(context).kernels, kernels);
    expect_f32(y, want, COUNT);
    assert_ok(ops_scope_end(context));
    assert_int_equal(statistics_of(context).arrays, 0);
}

/* Records y = 2 reduce(x + x) on a rank. */
static ops_graph *graph_record(int r, ops_array *x)
{
    ops_graph *graph = NULL;
    ops_context *context = ranks[r].context;
    assert_ok(ops_scope_begin(context));
    assert_ok(ops_graph_begin(context));
    ops_array *y = ops_add(x, x);
    assert_ok(ops_array_all_reduce(ranks[r].comm, HAL_REDUCE_SUM, &y, 1, NULL, &y));
    y = ops_mul_scalar(y, 2);
    assert_ok(ops_graph_end(context, &x, 1, &y, 1, &graph));
    assert_ok(ops_scope_end(context));
    return graph;
}

TEST(graphs_repeat_the_collective_with_other_inputs)
{
    ops_graph *graphs[RANKS];
    for (int r = 0; r < RANKS; r++) {
        ops_array *x = matrix(r, 1);
        graphs[r] = graph_record(r, x);
        ops_array_release(x);
    }
    for (int scale = 1; scale <= 3; scale++) {
        ops_array *x[RANKS], *y[RANKS];
        double want[COUNT];
        for (int i = 0; i < COUNT; i++) {
            want[i] = 4 * scale * (i + 10 + i + 20);
        }
        for (int r = 0; r < RANKS; r++) {
            x[r] = matrix(r, scale);
            assert_ok(ops_graph_launch(graphs[r], &x[r], 1, &y[r], 1));
        }
        for (int r = 0; r < RANKS; r++) {
            expect_f32(y[r], want, COUNT);
            release_all(x[r], y[r]);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        ops_graph_destroy(graphs[r]);
        assert_int_equal(statistics_of(ranks[r].context).arrays, 0);
    }
}

static void refused(hal_comm *comm, ops_array *const *arrays, uint32_t count,
                    const ops_comm_options *options, ops_array **results, const char *words)
{
    assert_int_equal(ops_array_all_reduce(comm, HAL_REDUCE_SUM, arrays, count, options, results),
                     HAL_ERROR_INVALID_ARGUMENT);
    if (!strstr(hal_status_message(), words)) {
        fail_msg("'%s' lacks '%s'", hal_status_message(), words);
    }
}

TEST(wrong_arguments_are_refused_and_leave_the_group_alone)
{
    hal_comm_status status;
    const rank_state *rank = &ranks[0];
    ops_array *x = matrix(0, 1), *y = x, *nothings[2] = {x, NULL}, *results[2] = {x, x};
    ops_comm_options second = OPS_COMM_OPTIONS_DEFAULT;
    second.queue = rank->second;
    refused(NULL, &x, 1, NULL, &y, "comm: ");
    assert_null(y);
    refused(rank->comm, NULL, 1, NULL, &y, "arrays: ");
    refused(rank->comm, &x, 0, NULL, &y, "count: ");
    refused(rank->comm, &x, 1, NULL, NULL, "results: ");
    refused(rank->comm, nothings, 2, NULL, results, "arrays[1]: ");
    assert_null(results[0]);
    refused(rank->comm, &x, 1, &(ops_comm_options){.size = 4}, &y, "options.size: ");
    assert_ok(ops_graph_begin(rank->context));
    refused(rank->comm, &x, 1, &second, &y, "options.queue: ");
    assert_int_not_equal(ops_graph_end(rank->context, NULL, 0, NULL, 0, &(ops_graph *){NULL}),
                         HAL_OK);
    ops_array_release(x);
    assert_ok(hal_comm_get_status(rank->comm, &status));
    assert_int_equal(status.status, HAL_OK);
}

/* The last test: a failure after the checks ends the communicator, so that no rank waits. */
TEST(a_failure_ends_the_group)
{
    hal_comm_status status;
    ops_array *x = matrix(0, 1), *y = x;
    assert_int_equal(ops_array_all_reduce(ranks[0].comm, 99, &x, 1, NULL, &y),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_null(y);
    ops_array_release(x);
    assert_ok(hal_comm_get_status(ranks[1].comm, &status));
    assert_int_equal(status.status, HAL_ERROR_INVALID_STATE);
    assert_int_equal(statistics_of(ranks[0].context).arrays, 0);
}

UNIT_MAIN(open_ranks, close_ranks)
