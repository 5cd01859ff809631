/* Communicators on two mock devices, whose batches stay in flight as long as a test wants:
 * arguments, the order of fences and batches, what failures of a plugin do to the other ranks,
 * launchers. */
#include "mock_sides.h"

#include <hal/comm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, WORDS = SIDE_BYTES / 8 };

static side *ranks[RANKS];
static hal_comm *comms[RANKS];

static void group_open(uint64_t time_limit_ns)
{
    hal_device *devices[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i] = side_open(i == 0 ? "mock:0" : "mock:1");
        devices[i] = ranks[i]->device;
        assert_ok(
            hal_queue_fill(ranks[i]->queue, (hal_range){ranks[i]->buffer, 0, HAL_WHOLE}, 100 + i));
    }
    assert_ok(hal_comm_create_local(devices, RANKS, time_limit_ns, comms));
}

static void group_close(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_comm_destroy(comms[i]);
        comms[i] = NULL;
    }
}

/* Rank 0's first half to the second half of all. */
static hal_status broadcast(uint32_t rank)
{
    static const hal_collective what = {.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32};
    return hal_queue_collective(ranks[rank]->queue, comms[rank], &what,
                                (hal_range){ranks[rank]->buffer, 0, HAL_WHOLE},
                                (hal_range){ranks[rank]->buffer, SIDE_BYTES / 2, HAL_WHOLE}, WORDS);
}

static uint32_t word(uint32_t rank)
{
    uint32_t value = 0;
    assert_ok(hal_queue_read(ranks[rank]->queue, ranks[rank]->buffer, SIDE_BYTES - 4, sizeof value,
                             &value));
    return value;
}

SIDES_TEST(wrong_arguments_record_nothing_and_leave_the_group_alone)
{
    group_open(0);
    hal_queue *queue = ranks[0]->queue;
    const hal_range whole = {ranks[0]->buffer, 0, HAL_WHOLE};
    const hal_range foreign = {ranks[1]->buffer, 0, HAL_WHOLE};
    const hal_range odd = {ranks[0]->buffer, 2, HAL_WHOLE},
                    later = {ranks[0]->buffer, 8, HAL_WHOLE};
    const hal_collective good = {.type = HAL_TYPE_F32};
    const struct {
        hal_collective what;
        hal_range send, recv;
        uint64_t count;
        const char *message;
    } wrong[] = {
        {{.kind = 7, .type = HAL_TYPE_F32}, whole, whole, 4, "kind up to 6"},
        {{.reduction = 4, .type = HAL_TYPE_F32}, whole, whole, 4, "reduction up to 3"},
        {{.type = HAL_TYPE_COUNT}, whole, whole, 4, "a type of hal"},
        {{.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_F32, .root = 2},
         whole,
         whole,
         4,
         "root: expected"},
        {{.type = HAL_TYPE_BOOL, .reduction = HAL_REDUCE_MEAN}, whole, whole, 4, "got mean"},
        {good, {0}, whole, 4, "send: expected a buffer"},
        {good, whole, {0}, 4, "recv: expected a buffer"},
        {good, foreign, whole, 4, "the rank's device"},
        {good, odd, odd, 4, "multiple of the 4 bytes"},
        {good, whole, whole, SIDE_BYTES / 4 + 1, "expected at least"},
        {good, whole, whole, UINT64_MAX / 4, "fewer elements"},
        {good, whole, later, 4, "no overlap"},
        {{.kind = HAL_COLLECTIVE_ALL_TO_ALL, .type = HAL_TYPE_F32}, whole, whole, 4, "no overlap"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(hal_queue_collective(queue, comms[0], &wrong[i].what, wrong[i].send,
                                              wrong[i].recv, wrong[i].count),
                         HAL_ERROR_INVALID_ARGUMENT);
        if (!strstr(hal_status_message(), wrong[i].message)) {
            fail_msg("%zu: %s", i, hal_status_message());
        }
    }
    assert_int_equal(hal_queue_collective(ranks[1]->queue, comms[0], &good, whole, whole, 4),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_queue_collective(NULL, comms[0], &good, whole, whole, 4),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_queue_collective(queue, NULL, &good, whole, whole, 4),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_comm_create_local(NULL, 1, 0, comms), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_comm_create_local(&ranks[0]->device, 0, 0, comms),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_ok(broadcast(0));
    assert_ok(broadcast(1));
    assert_int_equal(word(1), 100);
    group_close();
}

/* A batch after a fence reaches the plugin when both devices have run what comes before. */
SIDES_TEST(a_gate_opens_when_the_data_is_there)
{
    group_open(0);
    hal_comm_status status;
    hal_point point;
    mock->hold = 1;
    assert_ok(broadcast(1));
    assert_ok(broadcast(0));
    assert_ok(hal_queue_flush(ranks[1]->queue, &point));
    assert_int_equal(hal_point_wait(point, 0), HAL_ERROR_TIMEOUT);
    assert_int_equal(hal_point_wait(point, 2000000), HAL_ERROR_TIMEOUT);
    assert_ok(hal_comm_get_status(comms[1], &status));
    assert_int_equal(status.completed, 0);
    mock->hold = 0;
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_ok(hal_comm_get_status(comms[1], &status));
    assert_int_equal(status.completed, 1);
    assert_int_equal(status.count, 2);
    assert_string_equal(status.backend, "host");
    assert_int_equal(word(1), 100);
    assert_int_equal(word(0), 100);
    group_close();
}

/* A rank whose batch the plugin rejects: the other one is told so, and both queues go on. */
SIDES_TEST(a_rejected_batch_ends_the_group)
{
    group_open(0);
    atomic_store(&mock->fail_in[MOCK_SUBMIT], 1);
    assert_int_not_equal(broadcast(0), HAL_OK);
    hal_status status = broadcast(1);
    if (status == HAL_OK) {
        status = hal_queue_wait(ranks[1]->queue, HAL_WAIT_FOREVER);
    }
    assert_int_not_equal(status, HAL_OK);
    assert_non_null(strstr(hal_status_message(), "rank 0 of 2"));
    assert_ok(hal_queue_fill(ranks[1]->queue, (hal_range){ranks[1]->buffer, 0, HAL_WHOLE}, 5));
    assert_int_equal(word(1), 5);
    group_close();
}

/* The queue of a rank is destroyed before its fence opens: the time limit ends the wait. */
SIDES_TEST(a_queue_that_ends_waits_no_longer_than_the_limit)
{
    group_open(20000000);
    assert_ok(broadcast(1));
    hal_queue *queue = ranks[1]->queue;
    hal_queue_destroy(queue);
    ranks[1]->queue = mock_queue(ranks[1]->device);
    assert_int_equal(broadcast(0), HAL_ERROR_TIMEOUT);
    assert_non_null(strstr(hal_status_message(), "rank 0 of 2: it did not reach step 1"));
    group_close();
}

static uint64_t bytes_in_use(hal_device *device)
{
    hal_memory_statistics now;
    assert_ok(hal_device_get_memory(device, &now));
    return now.in_use_bytes;
}

/* A step reads a buffer in place when all ranks take part; the program may release it before. */
SIDES_TEST(a_step_holds_its_buffers)
{
    static const hal_collective what = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};
    hal_device *devices[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i] = side_open("mock:2"); /* whose memory the host maps */
        devices[i] = ranks[i]->device;
    }
    assert_ok(hal_comm_create_local(devices, RANKS, 0, comms));
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_buffer *own = mock_buffer(devices[i], SIDE_BYTES / 2);
        const hal_range from = {own, 0, HAL_WHOLE}, to = {ranks[i]->buffer, 0, HAL_WHOLE};
        assert_ok(hal_queue_fill(ranks[i]->queue, from, 20 + i));
        assert_ok(hal_queue_collective(ranks[i]->queue, comms[i], &what, from, to, WORDS));
        const uint64_t before = bytes_in_use(devices[i]);
        hal_buffer_release(own);
        if (i == 0) { /* the other rank has not come */
            assert_int_equal(bytes_in_use(devices[i]), before);
        }
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t sum = 0;
        assert_ok(hal_queue_read(ranks[i]->queue, ranks[i]->buffer, 0, sizeof sum, &sum));
        assert_int_equal(sum, 41);
    }
    group_close();
    assert_int_equal(bytes_in_use(devices[0]), RANKS * SIDE_BYTES); /* the sides' own */
}

SIDES_TEST(a_group_of_one_copies)
{
    side *one = side_open("mock:0");
    hal_comm *comm = NULL;
    hal_comm_status status;
    assert_ok(hal_comm_create(one->device, &(hal_comm_options){.count = 1}, &comm));
    assert_ok(hal_queue_fill(one->queue, (hal_range){one->buffer, 0, HAL_WHOLE}, 9));
    assert_ok(hal_queue_fill(one->queue, (hal_range){one->buffer, 64, 64}, 3));
    const hal_collective sum = {.type = HAL_TYPE_F32};
    assert_ok(hal_queue_collective(one->queue, comm, &sum, (hal_range){one->buffer, 64, 64},
                                   (hal_range){one->buffer, 0, 64}, 16));
    uint32_t value = 0;
    assert_ok(hal_queue_read(one->queue, one->buffer, 60, 4, &value));
    assert_int_equal(value, 3);
    assert_ok(hal_comm_get_status(comm, &status));
    assert_string_equal(status.backend, "none");
    assert_ok(hal_comm_abort(comm, NULL));
    assert_int_equal(hal_queue_collective(one->queue, comm, &sum, (hal_range){one->buffer, 64, 64},
                                          (hal_range){one->buffer, 0, 64}, 16),
                     HAL_ERROR_INVALID_STATE);
    hal_comm_destroy(comm);
}

/* Variables of each launcher, and those that cannot be read. */
SIDES_TEST(launchers_are_read)
{
    static const char *const sets[][6] = {
        {"HAL_COMM", "0/1:job", NULL},
        {"OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1", NULL},
        {"RANK", "0", "WORLD_SIZE", "1", NULL},
        {"PMI_RANK", "0", "PMI_SIZE", "1", NULL},
        {"SLURM_PROCID", "0", "SLURM_NTASKS", "1", NULL},
        {NULL},
    };
    static const char *const wrong[][7] = {
        {"HAL_COMM", "1:job", NULL},
        {"HAL_COMM", "2/2:job", NULL},
        {"RANK", "-1", "WORLD_SIZE", "2", NULL},
        {"RANK", "0", "WORLD_SIZE", "", NULL},
    };
    side *one = side_open("mock:0");
    hal_comm *comm = NULL;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        for (size_t v = 0; sets[i][v]; v += 2) {
            setenv(sets[i][v], sets[i][v + 1], 1);
        }
        assert_ok(hal_comm_create_from_environment(one->device, 0, &comm));
        hal_comm_destroy(comm);
        for (size_t v = 0; sets[i][v]; v += 2) {
            unsetenv(sets[i][v]);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (size_t v = 0; wrong[i][v]; v += 2) {
            setenv(wrong[i][v], wrong[i][v + 1], 1);
        }
        assert_int_equal(hal_comm_create_from_environment(one->device, 0, &comm),
                         HAL_ERROR_INVALID_ARGUMENT);
        for (size_t v = 0; wrong[i][v]; v += 2) {
            unsetenv(wrong[i][v]);
        }
    }
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    assert_int_equal(hal_comm_create_from_environment(one->device, 0, &comm),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(hal_status_message(), "one host"));
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_WORLD_SIZE");
    setenv("HAL_COMM_TRANSPORT", "mpi", 1);
    assert_int_equal(hal_comm_create_from_environment(one->device, 0, &comm),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(hal_status_message(), "HAL_COMM_TRANSPORT: expected"));
    assert_null(comm);

    /* HAL_COMM is no launcher of MPI either, and does not hide a wrong backend. */
    setenv("HAL_COMM", "0/1:job", 1);
    assert_int_equal(hal_comm_create_from_environment(one->device, 0, &comm),
                     HAL_ERROR_UNSUPPORTED);
    setenv("HAL_COMM_TRANSPORT", "shard", 1);
    assert_int_equal(hal_comm_create_from_environment(one->device, 0, &comm),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(hal_status_message(), "got \"shard\""));
    setenv("HAL_COMM_TRANSPORT", "shared", 1);
    assert_ok(hal_comm_create_from_environment(one->device, 0, &comm));
    hal_comm_destroy(comm);
    unsetenv("HAL_COMM");
    unsetenv("HAL_COMM_TRANSPORT");
}

/* A child has no part in the communicators of its parent. */
SIDES_TEST(groups_are_not_used_after_a_fork)
{
    group_open(0);
    const pid_t child = fork();
    if (child == 0) {
        hal_comm_status is;
        const int good = hal_comm_get_status(comms[0], &is) == HAL_ERROR_INVALID_STATE &&
                         hal_comm_abort(comms[0], "child") == HAL_ERROR_INVALID_STATE;
        _exit(good ? 0 : 1);
    }
    int result = 1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    group_close();
}

/* A rank that comes twice, and one that does not come. */
SIDES_TEST(ranks_join_once_and_in_time)
{
    side *one = side_open("mock:0");
    hal_comm *comm = NULL;
    hal_comm_options options = {.rank = 1, .count = 2, .time_limit_ns = 20000000};
    assert_ok(hal_comm_id_create(&options.id));
    assert_int_equal(hal_comm_create(one->device, &options, &comm), HAL_ERROR_TIMEOUT);
    assert_non_null(strstr(hal_status_message(), "missing are ranks 0"));
    assert_null(comm);
    options.rank = 2;
    assert_int_equal(hal_comm_create(one->device, &options, &comm), HAL_ERROR_INVALID_ARGUMENT);
    options.count = 0;
    assert_int_equal(hal_comm_create(one->device, &options, &comm), HAL_ERROR_INVALID_ARGUMENT);
}

static int begin(void **state)
{
    mock_find("mock")->device_count = 3;
    mock_find("mock")->infos[2].features = HAL_FEATURE_MAP_DEVICE;
    return sides_begin(state);
}

UNIT_MAIN(begin, NULL)
