/* Communicators of hal whose collectives the cuda plugin runs, over a driver and an NCCL without
 * GPUs (cuda_mock.h, nccl_mock.h): which collectives go there, results of all kinds, ranks that
 * fail or do not come. Kernels do not run on that driver, so sums of hal's own have no values here.
 * */
#include "unit.h"

#include <dlfcn.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_mock.h"
#include "comm/comm.h"
#include "nccl_mock.h"

#define SHORT_LIMIT_NS UINT64_C(300000000)

enum { RANKS = 2, WORDS = 128, BYTES = 8 * WORDS };

static cuda_mock *cuda;
static nccl_mock *nccl;
static hal_device *devices[RANKS];
static hal_queue *queues[RANKS];
static hal_buffer *sent[RANKS], *received[RANKS];
static hal_comm *comms[RANKS];

static void *load_mock(const char *path, const char *symbol)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    return !library ? NULL : dlsym(library, symbol);
}

/* Calls are compared before data moves. */
static int compares(void)
{
    return getenv("HAL_LAYERS") != NULL;
}

static void fails(hal_status status, hal_status expected, const char *words)
{
    assert_int_equal(status, expected);
    if (!strstr(hal_status_message(), words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, hal_status_message());
    }
}

static int begin(void **state)
{
    memset(cuda, 0, sizeof *cuda);
    memset(nccl, 0, sizeof *nccl);
    cuda->devices = 4;
    cuda->no_peers = 1; /* else small sums need no NCCL */
    cuda->memory_limit = UINT64_C(1) << 30;
    nccl->version = 22703;
    nccl->fail_with = 2;
    for (uint32_t i = 0; i < RANKS; i++) {
        char selection[16];
        uint32_t words[2 * WORDS];
        for (uint32_t w = 0; w < 2 * WORDS; w++) {
            words[w] = 1000 * (i + 1) + w;
        }
        snprintf(selection, sizeof selection, "cuda:%u", i);
        assert_ok(hal_device_open(selection, &devices[i]));
        assert_ok(hal_queue_create(devices[i], &queues[i]));
        assert_ok(hal_buffer_create(devices[i], HAL_MEMORY_DEVICE, BYTES, &sent[i]));
        assert_ok(hal_buffer_create(devices[i], HAL_MEMORY_DEVICE, BYTES, &received[i]));
        assert_ok(hal_queue_write(queues[i], sent[i], 0, words, sizeof words));
        assert_ok(hal_queue_fill(queues[i], (hal_range){received[i], 0, HAL_WHOLE}, 0));
        assert_ok(hal_queue_wait(queues[i], HAL_WAIT_FOREVER));
    }
    return 0;
}

static int end(void **state)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_comm_destroy(comms[i]);
        comms[i] = NULL;
        hal_buffer_release(sent[i]);
        hal_buffer_release(received[i]);
        hal_queue_destroy(queues[i]);
        hal_device_release(devices[i]);
    }
    while (nccl->live > 0 || cuda->live_objects > 0) { /* threads of creations that were left */
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    if (nccl->misuses > 0) {
        fail_msg("NCCL was given %s", nccl->misuse);
    }
    return 0;
}

static void groups_create(uint64_t time_limit_ns, const char *backend)
{
    hal_comm_status status;
    assert_ok(hal_comm_create_local(devices, RANKS, time_limit_ns, comms));
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(hal_comm_get_status(comms[i], &status));
        assert_string_equal(status.backend, backend);
        assert_int_equal(status.deterministic, 1);
    }
    nccl->units = 0; /* those of the creation are not counted */
    nccl->call_count = 0;
}

/* The limit of what comes after the creation, which may take longer on a busy machine. */
static void limit_set(uint64_t time_limit_ns)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        comms[i]->time_limit_ns = time_limit_ns;
    }
}

static hal_status run(uint32_t i, hal_collective what, uint64_t count)
{
    return hal_queue_collective(queues[i], comms[i], &what, (hal_range){sent[i], 0, HAL_WHOLE},
                                (hal_range){received[i], 0, HAL_WHOLE}, count);
}

static void run_all(hal_collective what, uint64_t count)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(run(i, what, count));
    }
}

static uint32_t word(uint32_t i, uint32_t at)
{
    uint32_t value = 0;
    assert_ok(hal_queue_read(queues[i], received[i], 4 * (uint64_t)at, sizeof value, &value));
    return value;
}

static const hal_collective sum = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};

static const char *engine_of(uint32_t i)
{
    hal_comm_status status;
    assert_ok(hal_comm_get_status(comms[i], &status));
    return status.backend;
}

/* ---- Tests ---- */

/* Before the library is open. */
TEST(a_user_turns_the_engine_off)
{
    setenv("HAL_CUDA_NCCL", "off", 1);
    nccl = load_mock(NCCL_MOCK_PATH, NCCL_MOCK_SYMBOL);
    assert_non_null(nccl);
    begin(NULL);
    char text[256];
    assert_ok(hal_comm_get_backend(devices[0], sizeof text, text));
    assert_non_null(strstr(text, "host: "));
    assert_non_null(strstr(text, "off by HAL_CUDA_NCCL"));
    groups_create(0, "host");
    run_all((hal_collective){.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32, .root = 1},
            WORDS);
    assert_int_equal(word(0, 3), 2003);
    assert_int_equal(nccl->live, 0);
    assert_null(getenv("NCCL_NVLS_ENABLE"));
    end(NULL);
}

TEST(without_the_library_hal_moves_the_data)
{
    setenv("HAL_CUDA_NCCL", "/nowhere/libnccl.so", 1);
    begin(NULL);
    char text[256];
    assert_ok(hal_comm_get_backend(devices[0], sizeof text, text));
    assert_non_null(strstr(text, "host: "));
    assert_non_null(strstr(text, "/nowhere/libnccl.so"));
    fails(hal_comm_get_backend(devices[0], sizeof text, NULL), HAL_ERROR_INVALID_ARGUMENT, "text");
    groups_create(0, "host");
    const hal_collective spread = {
        .kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32, .root = 1};
    run_all(spread, WORDS);
    assert_int_equal(word(0, 3), 2003);
    unsetenv("HAL_CUDA_NCCL"); /* the default from here on */
    end(NULL);
}

TEST_WITH(all_kinds_go_through_the_engine, begin, end)
{
    hal_comm_status status;
    char text[256];
    assert_ok(hal_comm_get_backend(devices[1], sizeof text, text));
    assert_string_equal(text, "nccl: NCCL 2.27.3");
    groups_create(0, "nccl");
    run_all(sum, WORDS);
    assert_int_equal(word(0, 5), 3010);
    assert_int_equal(word(1, WORDS - 1), 3000 + 2 * (WORDS - 1));
    run_all((hal_collective){.type = HAL_TYPE_U32, .reduction = HAL_REDUCE_MAX}, WORDS);
    assert_int_equal(word(0, 5), 2005);
    run_all((hal_collective){.kind = HAL_COLLECTIVE_ALL_GATHER, .type = HAL_TYPE_U32}, WORDS);
    assert_int_equal(word(1, 5), 1005);
    assert_int_equal(word(0, WORDS + 5), 2005);
    run_all((hal_collective){.kind = HAL_COLLECTIVE_REDUCE_SCATTER, .type = HAL_TYPE_U32}, WORDS);
    assert_int_equal(word(0, 5), 3010);
    assert_int_equal(word(1, 5), 3010 + 2 * WORDS);
    run_all((hal_collective){.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32, .root = 1},
            WORDS);
    assert_int_equal(word(0, 7), 2007);
    assert_int_equal(word(1, 7), 2007);
    run_all((hal_collective){.kind = HAL_COLLECTIVE_REDUCE, .type = HAL_TYPE_U32, .root = 1},
            WORDS);
    assert_int_equal(word(1, 7), 3014);
    assert_int_equal(word(0, 7), 2007);
    run_all((hal_collective){.kind = HAL_COLLECTIVE_ALL_TO_ALL, .type = HAL_TYPE_U32}, WORDS);
    assert_int_equal(word(0, WORDS), 2000);
    assert_int_equal(word(1, 0), 1000 + WORDS);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(run(
            i,
            (hal_collective){.kind = HAL_COLLECTIVE_EXCHANGE, .type = HAL_TYPE_U32, .root = 1 - i},
            WORDS));
    }
    assert_int_equal(word(0, 9), 2009);
    assert_int_equal(word(1, 9), 1009);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(run(
            i, (hal_collective){.kind = HAL_COLLECTIVE_EXCHANGE, .type = HAL_TYPE_U32, .root = i},
            WORDS));
    }
    assert_int_equal(word(0, 9), 1009);
    assert_int_equal(word(1, 9), 2009);
    assert_ok(hal_comm_get_status(comms[0], &status));
    assert_true(status.completed >= 9);
    assert_int_equal(status.deterministic, 1);
}

/* The last call of NCCL, of a collective of 16 elements by both ranks. */
static const nccl_mock_call *last_call_of(hal_collective what)
{
    const uint32_t before = nccl->units;
    run_all(what, 16);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(hal_queue_wait(queues[i], HAL_WAIT_FOREVER));
    }
    assert_int_equal(nccl->units, before + 1);
    return &nccl->calls[(nccl->call_count - 1) % NCCL_MOCK_CALLS];
}

/* What NCCL would compute with other bits, such as sums of floats, it only moves. */
TEST_WITH(the_engine_computes_only_what_has_the_right_bits, begin, end)
{
    static const struct {
        hal_collective what;
        int kind;
    } cases[] = {
        {{.type = HAL_TYPE_F32}, NCCL_MOCK_ALL_GATHER},
        {{.type = HAL_TYPE_F32, .any_order = 1}, NCCL_MOCK_ALL_REDUCE},
        {{.type = HAL_TYPE_F32, .reduction = HAL_REDUCE_MEAN, .any_order = 1},
         NCCL_MOCK_ALL_REDUCE},
        {{.type = HAL_TYPE_F32, .reduction = HAL_REDUCE_MEAN}, NCCL_MOCK_ALL_GATHER},
        {{.type = HAL_TYPE_F32, .reduction = HAL_REDUCE_MIN, .any_order = 1}, NCCL_MOCK_ALL_GATHER},
        {{.type = HAL_TYPE_I32, .reduction = HAL_REDUCE_MEAN, .any_order = 1},
         NCCL_MOCK_ALL_GATHER},
        {{.type = HAL_TYPE_I16}, NCCL_MOCK_ALL_GATHER},
        {{.type = HAL_TYPE_BOOL}, NCCL_MOCK_ALL_GATHER},
        {{.kind = HAL_COLLECTIVE_REDUCE, .type = HAL_TYPE_F64}, NCCL_MOCK_ALL_GATHER},
        {{.kind = HAL_COLLECTIVE_REDUCE_SCATTER, .type = HAL_TYPE_F32}, NCCL_MOCK_RECV},
        {{.kind = HAL_COLLECTIVE_REDUCE_SCATTER, .type = HAL_TYPE_F32, .any_order = 1},
         NCCL_MOCK_REDUCE_SCATTER},
        {{.type = HAL_TYPE_I64}, NCCL_MOCK_ALL_REDUCE},
        {{.type = HAL_TYPE_I8, .reduction = HAL_REDUCE_MIN}, NCCL_MOCK_ALL_REDUCE},
        {{.kind = HAL_COLLECTIVE_ALL_GATHER, .type = HAL_TYPE_BOOL}, NCCL_MOCK_ALL_GATHER},
        {{.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_F8_E4M3}, NCCL_MOCK_BROADCAST}};
    hal_comm_status status;
    groups_create(0, "nccl");
    run_all(sum, 0); /* nothing to be moved */
    assert_int_equal(nccl->units, 0);
    run_all((hal_collective){.type = HAL_TYPE_F32}, 16);
    assert_ok(hal_comm_get_status(comms[1], &status));
    assert_int_equal(status.deterministic, 1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (last_call_of(cases[c].what)->kind != cases[c].kind) {
            fail_msg("case %zu", c);
        }
    }
    assert_ok(hal_comm_get_status(comms[1], &status));
    assert_int_equal(status.deterministic, 0);
}

/* Devices that write to each other's memory add few floats by themselves, in the order of the
 * ranks; more than that, and other reductions, go as without. */
TEST_WITH(devices_add_small_sums, begin, end)
{
    hal_comm_status status;
    cuda->no_peers = 0;
    groups_create(0, "nccl");
    for (int any_order = 0; any_order < 2; any_order++) {
        const uint32_t before = cuda->launch_count;
        run_all((hal_collective){.type = HAL_TYPE_F32, .any_order = any_order != 0}, WORDS);
        for (uint32_t i = 0; i < RANKS; i++) {
            assert_ok(hal_queue_wait(queues[i], HAL_WAIT_FOREVER));
        }
        assert_int_equal(nccl->units, 0);
        assert_int_equal(cuda->launch_count, before + RANKS); /* and no kernel of hal's */
    }
    assert_ok(hal_comm_get_status(comms[0], &status));
    assert_int_equal(status.deterministic, 1);
    assert_int_equal(
        last_call_of((hal_collective){.type = HAL_TYPE_F32, .reduction = HAL_REDUCE_MAX})->kind,
        NCCL_MOCK_ALL_GATHER);
    assert_int_equal(last_call_of((hal_collective){.type = HAL_TYPE_U32})->kind,
                     NCCL_MOCK_ALL_REDUCE);
}

TEST_WITH(one_device_for_two_ranks_has_no_engine, begin, end)
{
    hal_device *same[RANKS] = {devices[0], devices[0]};
    assert_ok(hal_comm_create_local(same, RANKS, 0, comms));
    assert_string_equal(engine_of(0), "host");
    assert_int_equal(nccl->live, 0);
}

/* One rank whose communicator cannot be created: all have hal's own. */
TEST_WITH(a_refused_engine_leaves_a_group, begin, end)
{
    nccl->fails_in[NCCL_MOCK_INIT] = 2;
    groups_create(0, "host");
    while (nccl->live > 0) { /* the other rank's thread ends what it has made */
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    run_all((hal_collective){.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32}, WORDS);
    assert_int_equal(word(1, 1), 1001);
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_comm_destroy(comms[i]);
    }
    nccl->fails_in[NCCL_MOCK_ID] = 1;
    groups_create(0, "host");
}

/* Creation that does not end is given up after the time limit. */
TEST_WITH(an_engine_that_does_not_come_is_given_up, begin, end)
{
    nccl->hold = 1;
    groups_create(50000000, "host");
    limit_set(HAL_COMM_TIME_LIMIT_NS);
    nccl->hold = 0;
    run_all((hal_collective){.kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32}, WORDS);
    assert_int_equal(word(1, 1), 1001);
}

/* Commands before and after a collective keep their order while it waits for the other rank. */
TEST_WITH(the_order_of_a_queue_is_kept, begin, end)
{
    groups_create(0, "nccl");
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(hal_queue_fill(queues[i], (hal_range){sent[i], 0, HAL_WHOLE}, i + 1));
        assert_ok(run(i, sum, WORDS));
        assert_ok(
            hal_queue_copy(queues[i], (hal_range){received[i], 0, 4}, (hal_range){sent[i], 0, 4}));
    }
    run_all(sum, WORDS);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(word(i, 0), 6);
        assert_int_equal(word(i, 1), 3);
    }
}

/* Collectives of two communicators on the same devices, recorded by one rank before the other. */
TEST_WITH(two_groups_take_turns, begin, end)
{
    hal_comm *others[RANKS];
    groups_create(0, "nccl");
    assert_ok(hal_comm_create_local(devices, RANKS, 0, others));
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(run(i, sum, WORDS));
        assert_ok(hal_queue_collective(queues[i], others[i], &sum,
                                       (hal_range){received[i], 0, HAL_WHOLE},
                                       (hal_range){sent[i], 0, HAL_WHOLE}, WORDS));
        assert_ok(run(i, sum, WORDS));
    }
    assert_int_equal(word(0, 5), 4 * 3010);
    assert_int_equal(word(1, 5), 4 * 3010);
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_comm_destroy(others[i]);
    }
}

/* Parts of the communicator have backends of their own, except for those of one rank. */
TEST_WITH(parts_of_a_group_have_engines, begin, end)
{
    static const int32_t same[RANKS] = {3, 3}, different[RANKS] = {0, 1}, keys[RANKS] = {1, 0};
    hal_comm *parts[RANKS];
    hal_comm_status status;
    groups_create(0, "nccl");
    assert_ok(hal_comm_split(comms, RANKS, different, keys, parts));
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(hal_comm_get_status(parts[i], &status));
        assert_string_equal(status.backend, "none");
        hal_comm_destroy(parts[i]);
    }
    assert_ok(hal_comm_split(comms, RANKS, same, keys, parts));
    assert_ok(hal_comm_get_status(parts[0], &status));
    assert_string_equal(status.backend, "nccl");
    assert_int_equal(status.rank, 1);
    for (uint32_t i = 0; i < RANKS; i++) {
        const hal_collective spread = {
            .kind = HAL_COLLECTIVE_BROADCAST, .type = HAL_TYPE_U32, .root = 0};
        assert_ok(hal_queue_collective(queues[i], parts[i], &spread,
                                       (hal_range){sent[i], 0, HAL_WHOLE},
                                       (hal_range){received[i], 0, HAL_WHOLE}, WORDS));
    }
    assert_int_equal(word(0, 2), 2002);
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_comm_destroy(parts[i]);
    }
}

/* A recorded collective is a call of the graph. */
TEST_WITH(graphs_repeat_collectives, begin, end)
{
    hal_graph *graphs[RANKS] = {NULL};
    groups_create(0, "nccl");
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_ok(hal_graph_begin(queues[i]));
        assert_ok(run(i, sum, WORDS));
        assert_ok(hal_graph_end(queues[i], NULL, 0, &graphs[i]));
    }
    for (uint32_t launch = 0; launch < 3; launch++) {
        for (uint32_t i = 0; i < RANKS; i++) {
            assert_ok(hal_graph_launch(queues[i], graphs[i], NULL, 0));
        }
    }
    assert_int_equal(word(0, 5), 3010);
    assert_int_equal(nccl->units, 3);
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_graph_destroy(graphs[i]);
    }
}

/* The other rank never calls: a wait ends after the time limit and says which rank it was. */
TEST_WITH(a_rank_that_does_not_come, begin, end)
{
    groups_create(0, "nccl");
    limit_set(SHORT_LIMIT_NS);
    assert_ok(run(0, sum, WORDS));
    const hal_status status = hal_queue_wait(queues[0], HAL_WAIT_FOREVER);
    fails(status, HAL_ERROR_TIMEOUT, "rank 1 of 2");
    fails(run(1, sum, WORDS), HAL_ERROR_TIMEOUT, "rank 1 of 2");
    assert_ok(hal_queue_fill(queues[0], (hal_range){received[0], 0, HAL_WHOLE}, 5));
    assert_int_equal(word(0, 0), 5);
}

/* Kernels that never end, as without the other side: the communicator ends them. */
TEST_WITH(a_collective_that_does_not_end, begin, end)
{
    groups_create(0, "nccl");
    if (!compares()) { /* which waits for the device */
        cuda->hold = 1;
        limit_set(8 * SHORT_LIMIT_NS); /* enough for both calls */
    }
    assert_ok(run(0, sum, WORDS));
    assert_ok(run(1, sum, WORDS));
    const hal_status status = hal_queue_wait(queues[0], HAL_WAIT_FOREVER);
    if (!compares()) {
        fails(status, HAL_ERROR_TIMEOUT, "within the time limit");
        assert_int_equal(nccl->aborted, RANKS);
    } else {
        assert_ok(status);
    }
}

TEST_WITH(a_rank_that_leaves, begin, end)
{
    groups_create(0, "nccl");
    assert_ok(run(0, sum, WORDS));
    hal_comm_destroy(comms[1]);
    comms[1] = NULL;
    fails(hal_queue_wait(queues[0], HAL_WAIT_FOREVER), HAL_ERROR_INVALID_STATE,
          "it left the communicator");
}

TEST_WITH(an_abort_ends_what_is_in_flight, begin, end)
{
    groups_create(0, "nccl");
    assert_ok(run(0, sum, WORDS));
    assert_ok(hal_comm_abort(comms[1], "enough"));
    fails(hal_queue_wait(queues[0], HAL_WAIT_FOREVER), HAL_ERROR_INVALID_STATE, "enough");
    fails(run(1, sum, WORDS), HAL_ERROR_INVALID_STATE, "enough");
    assert_int_equal(word(0, 0), 0);
}

/* Errors of NCCL when the collective begins, and later. */
TEST_WITH(errors_of_the_library_reach_all_ranks, begin, end)
{
    groups_create(0, "nccl");
    nccl->fails_in[NCCL_MOCK_END] = 1;
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < RANKS; i++) {
        status = run(i, sum, WORDS);
    }
    status = status == HAL_OK ? hal_queue_wait(queues[1], HAL_WAIT_FOREVER) : status;
    fails(status, HAL_ERROR_IO, "starting a collective");
    fails(run(0, sum, WORDS), HAL_ERROR_IO, "result 2 of the mock");
    for (uint32_t i = 0; i < RANKS; i++) {
        hal_comm_destroy(comms[i]);
        hal_queue_wait(queues[i], HAL_WAIT_FOREVER);
    }
    groups_create(0, "nccl");
    run_all(sum, WORDS);
    assert_int_equal(word(1, 5), 3010);
}

/* With the validate layer hal compares the calls before NCCL sees them. */
TEST_WITH(different_calls_are_found, begin, end)
{
    groups_create(0, "nccl");
    if (compares()) {
        assert_ok(run(0, sum, WORDS));
        hal_status status =
            run(1, (hal_collective){.type = HAL_TYPE_U32, .reduction = HAL_REDUCE_MAX}, WORDS);
        status = status == HAL_OK ? hal_queue_wait(queues[1], HAL_WAIT_FOREVER) : status;
        fails(status, HAL_ERROR_INVALID_ARGUMENT, "expected the same collective on all ranks");
        assert_int_equal(nccl->call_count, 0);
    }
}

/* A queue is destroyed while its collective waits for the other rank. */
TEST_WITH(a_queue_that_is_destroyed, begin, end)
{
    groups_create(0, "nccl");
    limit_set(SHORT_LIMIT_NS);
    assert_ok(run(0, sum, WORDS));
    hal_queue_destroy(queues[0]);
    assert_ok(hal_queue_create(devices[0], &queues[0]));
    fails(run(0, sum, WORDS), HAL_ERROR_TIMEOUT, "rank 1 of 2");
}

static int group_begin(void **state)
{
    setenv("HAL_PLUGIN_PATH", CUDA_PLUGIN_PATH, 1);
    setenv("HAL_CACHE_DIR", "off", 1);
    cuda = load_mock(CUDA_MOCK_PATH, CUDA_MOCK_SYMBOL);
    if (!cuda) {
        return -1;
    }
    cuda->devices = 4;
    for (uint32_t i = 0; i < RANKS; i++) { /* afterwards the objects of the process exist */
        char selection[16];
        snprintf(selection, sizeof selection, "cuda:%u", i);
        assert_ok(hal_device_open(selection, &devices[i]));
        assert_ok(hal_queue_create(devices[i], &queues[i]));
        hal_queue_destroy(queues[i]);
        hal_device_release(devices[i]);
    }
    return 0;
}

UNIT_MAIN(group_begin, NULL)
