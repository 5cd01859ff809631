/* Communicators of the cuda plugin over a driver and an NCCL without GPUs (cuda_mock.h,
 * nccl_mock.h): what NCCL is asked to do for each collective, rounds that begin late, failures of
 * every call, aborts. */
#include "../plugin_host.h"
#include <cuda/memory.h>
#include <cuda/collectives/nccl.h>
#include <pthread.h>
#include <time.h>

#include "cuda_mock.h"
#include "nccl_mock.h"

enum { RANKS = 4, WORDS = 64, BYTES = RANKS * WORDS * 8 };

typedef struct rank {
    hal_plugin_device *device;
    hal_plugin_queue *queue;
    uint64_t value;
    hal_plugin_memory *send, *recv;
    hal_plugin_comm *comm;
} rank;

static cuda_mock *cuda;
static nccl_mock *nccl;
static const hal_plugin_entries *plugin;
static rank ranks[RANKS];

static void does(hal_status status)
{
    if (status != HAL_OK) {
        fail_msg("%s: %s", hal_status_name(status), message);
    }
    assert_int_equal(cuda->contexts, 0);
}

static void fails(hal_status status, hal_status expected, const char *words)
{
    assert_int_equal(status, expected);
    if (!strstr(message, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, message);
    }
    assert_int_equal(cuda->contexts, 0);
}

static void *load_mock(const char *path, const char *symbol)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    return !library ? NULL : dlsym(library, symbol);
}

static void *bytes_of(hal_plugin_memory *memory)
{
    return (void *)(uintptr_t)memory->address;
}

static int begin(void **state)
{
    memset(cuda, 0, sizeof *cuda);
    memset(nccl, 0, sizeof *nccl);
    cuda->devices = RANKS;
    cuda->no_peers = 1; /* else small sums need no NCCL */
    cuda->memory_limit = UINT64_C(1) << 30;
    nccl->version = 22703;
    nccl->fail_with = NCCL_SYSTEM_ERROR;
    for (uint32_t i = 0; i < RANKS; i++) {
        rank *one = &ranks[i];
        *one = (rank){0};
        does(plugin_open(plugin, i, &one->device));
        does(plugin->queue_create(one->device, &one->queue));
        does(plugin->memory_allocate(one->device, HAL_MEMORY_DEVICE, BYTES, &one->send));
        does(plugin->memory_allocate(one->device, HAL_MEMORY_DEVICE, BYTES, &one->recv));
        memset(bytes_of(one->send), (int)i + 1, BYTES);
        memset(bytes_of(one->recv), 0, BYTES);
    }
    return 0;
}

static void groups_destroy(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        plugin->comm_destroy(ranks[i].comm);
        ranks[i].comm = NULL;
    }
}

static int end(void **state)
{
    groups_destroy();
    for (uint32_t i = 0; i < RANKS; i++) {
        plugin->memory_free(ranks[i].device, ranks[i].send);
        plugin->memory_free(ranks[i].device, ranks[i].recv);
        plugin->queue_destroy(ranks[i].device, ranks[i].queue);
        plugin->device_close(ranks[i].device);
    }
    if (nccl->misuses > 0) {
        fail_msg("NCCL was given %s", nccl->misuse);
    }
    assert_int_equal(nccl->live, 0);
    assert_int_equal(cuda->live_objects, 0);
    assert_int_equal(cuda->contexts, 0);
    return 0;
}

static hal_status create(uint32_t i, const hal_plugin_comm_id *id, uint32_t count)
{
    return plugin->comm_create(ranks[i].device, id, i, count, &ranks[i].comm);
}

/* Polls until the thread that creates the rank's communicator is done. */
static hal_status created(uint32_t i)
{
    hal_status status = plugin->comm_poll(ranks[i].comm);
    while (status == HAL_ERROR_TIMEOUT) {
        nanosleep(&(struct timespec){0, 200000}, NULL);
        status = plugin->comm_poll(ranks[i].comm);
    }
    return status;
}

/* The calls of the creation are not counted. */
static void groups_create(uint32_t count)
{
    hal_plugin_comm_id id;
    does(plugin->comm_id(plugin->instance, &id));
    for (uint32_t i = 0; i < count; i++) {
        does(create(i, &id, count));
    }
    for (uint32_t i = 0; i < count; i++) {
        does(created(i));
    }
    nccl->units = 0;
    nccl->call_count = 0;
}

/* Threads that create and end communicators are done. */
static void threads_await(void)
{
    while (nccl->live > 0) {
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

/* Submits a collective of one rank on a queue. */
static hal_status submit_on(hal_plugin_queue *queue, uint64_t value, uint32_t i,
                            hal_plugin_comm *comm, hal_plugin_collective what, uint64_t send,
                            uint64_t recv)
{
    what.comm = comm;
    const hal_binding bindings[2] = {
        {.memory = send ? ranks[i].send : NULL, .length = send, .access = HAL_ACCESS_READ},
        {.memory = recv ? ranks[i].recv : NULL, .length = recv, .access = HAL_ACCESS_WRITE}};
    const hal_command command = {.kind = HAL_COMMAND_COLLECTIVE,
                                 .binding_count = 2,
                                 .scalar_bytes = sizeof what,
                                 .grid = {1, 1, 1}};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 2,
                             .scalar_bytes = sizeof what,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)&what};
    return plugin->submit(queue, &batch, NULL, 0, value);
}

static hal_status submit(uint32_t i, hal_plugin_collective what, uint64_t send, uint64_t recv)
{
    return submit_on(ranks[i].queue, ++ranks[i].value, i, ranks[i].comm, what, send, recv);
}

/* An all_reduce of WORDS U32 by all `count` ranks. */
static const hal_plugin_collective sum = {.count = WORDS, .type = HAL_TYPE_U32};

static void submit_all(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < count; i++) {
        does(submit(i, sum, 4 * WORDS, 4 * WORDS));
    }
}

static uint32_t word(uint32_t i, uint32_t at)
{
    return ((const uint32_t *)bytes_of(ranks[i].recv))[at];
}

static void reached(uint32_t i)
{
    does(plugin->wait(ranks[i].queue, ranks[i].value, 0));
}

/* ---- Tests ---- */

TEST(test_the_library_is_opened_when_it_is_asked_for)
{
    hal_plugin_comm_backend backend = {.size = sizeof backend};
    setenv("HAL_CUDA_NCCL", "off", 1);
    fails(plugin->comm_backend(plugin->instance, &backend), HAL_ERROR_LIBRARY_MISSING,
          "off by HAL_CUDA_NCCL");
    fails(plugin->comm_id(plugin->instance, &(hal_plugin_comm_id){{0}}), HAL_ERROR_LIBRARY_MISSING,
          "off by");
    assert_null(getenv("NCCL_NVLS_ENABLE"));
    setenv("HAL_CUDA_NCCL", "/nowhere/libnccl.so", 1);
    setenv("NCCL_NVLS_ENABLE", "1", 1);
    fails(plugin->comm_backend(plugin->instance, &backend), HAL_ERROR_LIBRARY_MISSING,
          "NCCL cannot be opened");
    fails(plugin->comm_id(plugin->instance, &(hal_plugin_comm_id){{0}}), HAL_ERROR_LIBRARY_MISSING,
          "set HAL_CUDA_NCCL to its path");
    assert_string_equal(getenv("NCCL_NVLS_ENABLE"), "1");
    assert_string_equal(getenv("NCCL_RUNTIME_CONNECT"), "0");
    unsetenv("NCCL_NVLS_ENABLE");
    unsetenv("HAL_CUDA_NCCL");
    nccl = load_mock(NCCL_MOCK_PATH, NCCL_MOCK_SYMBOL);
    assert_non_null(nccl);
    does(plugin->comm_backend(plugin->instance, &backend));
    assert_string_equal(getenv("NCCL_NVLS_ENABLE"), "0");
    assert_string_equal(backend.name, "nccl");
    assert_string_equal(backend.description, "NCCL 2.27.3");
    assert_int_equal(backend.version, 22703);
    assert_true(backend.sum_types & HAL_TYPE_BIT(HAL_TYPE_BF16));
    assert_false(backend.sum_types & HAL_TYPE_BIT(HAL_TYPE_BOOL));
    assert_false(backend.min_max_types & HAL_TYPE_BIT(HAL_TYPE_F32));
    assert_false(backend.mean_types & HAL_TYPE_BIT(HAL_TYPE_I32));
}

/* A rank is created when all have come, and each has sent a byte to each. */
TEST_WITH(test_creation_goes_on_in_polls, begin, end)
{
    hal_plugin_comm_id id;
    nccl->hold = 1;
    does(plugin->comm_id(plugin->instance, &id));
    does(create(0, &id, 2));
    does(create(1, &id, 2));
    assert_int_equal(plugin->comm_poll(ranks[0].comm), HAL_ERROR_TIMEOUT);
    assert_int_equal(plugin->comm_poll(ranks[1].comm), HAL_ERROR_TIMEOUT);
    nccl->hold = 0;
    does(created(0));
    does(created(1));
    assert_int_equal(nccl->units, 2);
    assert_int_equal(nccl->call_count, 8);
    groups_destroy();
    assert_int_equal(nccl->destroyed, 2);
    assert_int_equal(nccl->aborted, 0);
}

/* What NCCL makes later is ended by the thread that made it. */
TEST_WITH(test_a_creation_that_is_left, begin, end)
{
    hal_plugin_comm_id id;
    const uint32_t objects = cuda->live_objects;
    nccl->hold = 1;
    does(plugin->comm_id(plugin->instance, &id));
    does(create(0, &id, 2));
    does(create(1, &id, 2));
    while (nccl->live < 2) { /* the threads are in the call */
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    groups_destroy();
    assert_int_equal(nccl->live, 2);
    nccl->hold = 0;
    threads_await();
    assert_int_equal(nccl->aborted, 2);
    while (cuda->live_objects > objects) {
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

TEST_WITH(test_failed_creation_leaves_nothing, begin, end)
{
    hal_plugin_comm_id id;
    nccl->fails_in[NCCL_MOCK_ID] = 1;
    fails(plugin->comm_id(plugin->instance, &id), HAL_ERROR_IO, "result 2 of the mock");
    does(plugin->comm_id(plugin->instance, &id));
    nccl->fails_in[NCCL_MOCK_INIT] = 1;
    does(create(0, &id, 2));
    does(create(1, &id, 2));
    fails(created(0), HAL_ERROR_IO, "creating a communicator: result 2 of the mock");
    fails(created(1), HAL_ERROR_IO, "last words of the mock");
    groups_destroy();
    for (int function = NCCL_MOCK_START; function <= NCCL_MOCK_END; function++) {
        hal_plugin_comm_id one;
        does(plugin->comm_id(plugin->instance, &one));
        nccl->fails_in[function] = 1;
        does(create(0, &one, 1));
        fails(created(0), HAL_ERROR_IO, "creating a communicator");
        groups_destroy();
        threads_await();
    }
    groups_create(3);
}

TEST_WITH(test_reductions, begin, end)
{
    static const uint8_t types[][2] = {{HAL_TYPE_I8, NCCL_I8},   {HAL_TYPE_U8, NCCL_U8},
                                       {HAL_TYPE_I32, NCCL_I32}, {HAL_TYPE_U32, NCCL_U32},
                                       {HAL_TYPE_I64, NCCL_I64}, {HAL_TYPE_U64, NCCL_U64},
                                       {HAL_TYPE_F16, NCCL_F16}, {HAL_TYPE_F32, NCCL_F32},
                                       {HAL_TYPE_F64, NCCL_F64}, {HAL_TYPE_BF16, NCCL_BF16}};
    static const uint8_t reductions[][2] = {{HAL_REDUCE_SUM, NCCL_SUM},
                                            {HAL_REDUCE_MEAN, NCCL_MEAN},
                                            {HAL_REDUCE_MIN, NCCL_MIN},
                                            {HAL_REDUCE_MAX, NCCL_MAX}};
    groups_create(2);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++) {
            const uint32_t at = nccl->call_count % NCCL_MOCK_CALLS;
            for (uint32_t i = 0; i < 2; i++) {
                const hal_plugin_collective what = {
                    .count = 3, .type = types[t][0], .reduction = reductions[r][0]};
                does(submit(i, what, 24, 24));
                assert_int_equal(nccl->calls[at + i].type * (int)i, types[t][1] * (int)i);
            }
            assert_int_equal(nccl->calls[at].type, types[t][1]);
            assert_int_equal(nccl->calls[at].reduction, reductions[r][1]);
            assert_int_equal(nccl->calls[at].count, 3);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        does(submit(i, sum, 4 * WORDS, 4 * WORDS));
    }
    assert_int_equal(word(0, WORDS - 1), 0x03030303);
    assert_int_equal(word(1, 0), 0x03030303);
}

/* Of 3 ranks; each sends bytes of its number and one. */
TEST_WITH(test_kinds, begin, end)
{
    static const hal_plugin_collective scatter = {
        .kind = HAL_COLLECTIVE_REDUCE_SCATTER, .count = WORDS, .type = HAL_TYPE_U32};
    static const hal_plugin_collective reduce = {
        .kind = HAL_COLLECTIVE_REDUCE, .count = WORDS, .type = HAL_TYPE_U32, .root = 2};
    static const hal_plugin_collective gather = {
        .kind = HAL_COLLECTIVE_ALL_GATHER, .count = WORDS, .type = HAL_TYPE_I16};
    static const hal_plugin_collective spread = {
        .kind = HAL_COLLECTIVE_BROADCAST, .count = WORDS, .type = HAL_TYPE_BOOL, .root = 1};
    static const hal_plugin_collective all = {
        .kind = HAL_COLLECTIVE_ALL_TO_ALL, .count = WORDS, .type = HAL_TYPE_F8_E4M3};
    groups_create(3);
    for (uint32_t i = 0; i < 3; i++) {
        does(submit(i, scatter, 12 * WORDS, 4 * WORDS));
    }
    assert_int_equal(word(1, WORDS - 1), 0x06060606);
    assert_int_equal(word(1, WORDS), 0);
    for (uint32_t i = 0; i < 3; i++) {
        memset(bytes_of(ranks[i].recv), 0, BYTES);
        does(submit(i, reduce, 4 * WORDS, i == 2 ? 4 * WORDS : 0));
    }
    assert_int_equal(word(2, WORDS - 1), 0x06060606);
    assert_int_equal(word(1, 0), 0);
    for (uint32_t i = 0; i < 3; i++) {
        does(submit(i, gather, 2 * WORDS, 6 * WORDS));
    }
    assert_int_equal(word(0, WORDS / 2), 0x02020202);
    assert_int_equal(word(1, WORDS - 1), 0x02020202);
    assert_int_equal(word(1, WORDS), 0x03030303);
    for (uint32_t i = 0; i < 3; i++) { /* the root needs no place for what it receives */
        does(submit(i, spread, i == 1 ? WORDS : 0, i == 1 ? 0 : WORDS));
    }
    assert_int_equal(word(0, WORDS / 4 - 1), 0x02020202);
    assert_int_equal(word(2, 0), 0x02020202);
    for (uint32_t i = 0; i < 3; i++) {
        memset(bytes_of(ranks[i].recv), 0, BYTES);
        does(submit(i, all, 3 * WORDS, 3 * WORDS));
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(word(i, 0), 0x01010101);
        assert_int_equal(word(i, WORDS / 4), 0x02020202);
        assert_int_equal(word(i, WORDS / 2), 0x03030303);
        assert_int_equal(word(i, 3 * WORDS / 4), 0);
    }
}

/* Ranks 0 and 2 exchange, rank 1 with itself: hal copies that. */
TEST_WITH(test_exchange, begin, end)
{
    groups_create(3);
    for (uint32_t i = 0; i < 3; i++) {
        const hal_plugin_collective what = {
            .kind = HAL_COLLECTIVE_EXCHANGE, .count = WORDS, .type = HAL_TYPE_F64, .root = 2 - i};
        does(submit(i, what, 8 * WORDS, 8 * WORDS));
    }
    assert_int_equal(word(0, 2 * WORDS - 1), 0x03030303);
    assert_int_equal(word(2, 0), 0x01010101);
    assert_int_equal(word(1, 0), 0);
    for (uint32_t i = 0; i < 3; i++) {
        does(plugin->comm_poll(ranks[i].comm));
        reached(i);
    }
}

/* A submit does not wait for the other ranks of the process; one unit has the calls of all. */
TEST_WITH(test_a_round_begins_with_the_last_rank, begin, end)
{
    groups_create(3);
    submit_all(0, 2);
    assert_int_equal(nccl->call_count, 0);
    assert_int_equal(plugin->comm_poll(ranks[0].comm), HAL_ERROR_TIMEOUT);
    does(plugin->comm_poll(ranks[2].comm));
    assert_int_equal(plugin->wait(ranks[0].queue, 1, 0), HAL_ERROR_TIMEOUT);
    assert_int_equal(plugin->wait(ranks[1].queue, 1, 1000000), HAL_ERROR_TIMEOUT);
    submit_all(2, 3);
    assert_int_equal(nccl->call_count, 3);
    assert_int_equal(nccl->units, 1);
    for (uint32_t i = 0; i < 3; i++) {
        does(plugin->comm_poll(ranks[i].comm));
        reached(i);
        assert_int_equal(word(i, 0), 0x06060606);
    }
}

/* Each call of NCCL fails once: all ranks are told, values are reached, a new communicator works.
 * */
TEST_WITH(test_every_call_can_fail, begin, end)
{
    static const struct {
        int function, which;
        const char *words;
    } failures[] = {{NCCL_MOCK_START, 1, "beginning a unit"},
                    {NCCL_MOCK_CALL, 1, "starting a collective"},
                    {NCCL_MOCK_CALL, 2, "starting a collective"},
                    {NCCL_MOCK_END, 1, "starting a collective"}};
    for (size_t f = 0; f < sizeof failures / sizeof *failures; f++) {
        groups_create(2);
        nccl->fails_in[failures[f].function] = failures[f].which;
        submit_all(0, 2);
        for (uint32_t i = 0; i < 2; i++) {
            fails(plugin->comm_poll(ranks[i].comm), HAL_ERROR_IO, failures[f].words);
            reached(i);
            fails(submit(i, sum, 4 * WORDS, 4 * WORDS), HAL_ERROR_IO, failures[f].words);
            ranks[i].value--;
        }
        assert_int_equal(nccl->live, 0);
        groups_destroy();
    }
    groups_create(2);
    submit_all(0, 2);
    assert_int_equal(word(1, 0), 0x03030303);
}

/* NCCL reports later that a rank of another process is gone. */
TEST_WITH(test_an_error_of_a_running_collective, begin, end)
{
    groups_create(2);
    submit_all(0, 2);
    nccl->async_error = NCCL_REMOTE_ERROR;
    fails(plugin->comm_poll(ranks[1].comm), HAL_ERROR_IO, "running a collective");
    nccl->async_error = 0;
    fails(plugin->comm_poll(ranks[0].comm), HAL_ERROR_IO, "running a collective");
    assert_int_equal(nccl->aborted, 2);
    groups_destroy();
    groups_create(2);
    nccl->fails_in[NCCL_MOCK_ASK] = 1;
    fails(plugin->comm_poll(ranks[1].comm), HAL_ERROR_IO, "running a collective");
}

/* The rank that waits for others, and kernels that do, end. */
TEST_WITH(test_abort, begin, end)
{
    groups_create(3);
    submit_all(0, 2);
    plugin->comm_abort(ranks[2].comm);
    plugin->comm_abort(ranks[0].comm);
    assert_int_equal(nccl->aborted, 3);
    for (uint32_t i = 0; i < 3; i++) {
        fails(plugin->comm_poll(ranks[i].comm), HAL_ERROR_INVALID_STATE, "aborted");
    }
    reached(0);
    reached(1);
    groups_destroy();
    groups_create(2);
    cuda->hold = 1;
    submit_all(0, 2);
    assert_int_equal(plugin->wait(ranks[0].queue, ranks[0].value, 0), HAL_ERROR_TIMEOUT);
    plugin->comm_abort(ranks[0].comm);
    reached(0);
    reached(1);
}

static void *abort_release(void *unused)
{
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    nccl->holds_abort = 0;
    return unused;
}

/* An abort that takes long is waited for. */
TEST_WITH(test_a_slow_abort, begin, end)
{
    pthread_t thread;
    groups_create(2);
    submit_all(0, 1);
    nccl->holds_abort = 1;
    assert_int_equal(pthread_create(&thread, NULL, abort_release, NULL), 0);
    plugin->comm_abort(ranks[0].comm);
    assert_int_equal(nccl->aborted, 2);
    reached(0);
    pthread_join(thread, NULL);
}

/* An abort that does not end is given up after 3 s, which is what the test takes. */
TEST_WITH(test_an_abort_that_hangs, begin, end)
{
    groups_create(2);
    submit_all(0, 1);
    nccl->holds_abort = 1;
    plugin->comm_abort(ranks[0].comm);
    assert_int_equal(nccl->aborted, 0);
    reached(0);
    groups_destroy();
    const uint32_t ends = nccl->ends;
    nccl->holds_abort = 0;
    while (nccl->ends == ends) { /* the thread that was left behind ends */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* A rank that leaves first keeps its communicator until the last one leaves. */
TEST_WITH(test_ranks_leave_one_after_the_other, begin, end)
{
    groups_create(3);
    submit_all(0, 3);
    plugin->comm_destroy(ranks[1].comm);
    ranks[1].comm = NULL;
    assert_int_equal(nccl->live, 3);
    groups_destroy();
    assert_int_equal(nccl->destroyed, 3);
}

/* Two communicators on the same devices, each on its own queues: a device runs one after the other.
 * */
TEST_WITH(test_groups_of_a_device_take_turns, begin, end)
{
    hal_plugin_comm *first[2];
    hal_plugin_queue *queues[2];
    groups_create(2);
    for (uint32_t i = 0; i < 2; i++) {
        first[i] = ranks[i].comm;
        does(plugin->queue_create(ranks[i].device, &queues[i]));
    }
    groups_create(2);
    submit_all(0, 2);
    submit_all(0, 2);
    assert_int_equal(cuda->event_waits, 0); /* one queue is in order by itself */
    cuda->hold = 1;
    submit_all(0, 2);
    for (uint32_t i = 0; i < 2; i++) {
        does(submit_on(queues[i], 1, i, first[i], sum, 4 * WORDS, 4 * WORDS));
    }
    assert_int_equal(cuda->event_waits, 2);
    assert_int_equal(cuda->foreign_waits, 0);
    cuda->hold = 0;
    for (uint32_t i = 0; i < 2; i++) {
        plugin->queue_destroy(ranks[i].device, queues[i]);
        plugin->comm_destroy(first[i]);
    }
    submit_all(0, 2); /* the queue of the last collective is gone */
    assert_int_equal(cuda->event_waits, 2);
}

/* The parameters of a kernel that adds the data of several devices. */
typedef struct peer_arguments {
    uint64_t inboxes[8], own, send, recv, aborted;
    uint32_t count, number, is_mean, rank;
} peer_arguments;

static const peer_arguments *arguments_of(uint32_t launch)
{
    assert_true(launch < cuda->launch_count);
    return (const void *)cuda->launches[launch].block;
}

/* Each rank writes to its slot in the inboxes of all; slots change from sum to sum. */
TEST_WITH(test_sums_of_devices_that_reach_each_other, begin, end)
{
    static const hal_plugin_collective what = {
        .count = WORDS, .type = HAL_TYPE_F32, .reduction = HAL_REDUCE_MEAN};
    const uint64_t slot = 2 * (64 << 10);
    cuda->no_peers = 0;
    groups_create(3);
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < 3; i++) {
            does(submit(i, what, 4 * WORDS, 4 * WORDS));
        }
        for (uint32_t i = 0; i < 3; i++) {
            const peer_arguments *is = arguments_of(3 * turn + i);
            does(plugin->comm_poll(ranks[i].comm));
            reached(i);
            assert_int_equal(is->rank, i);
            assert_int_equal(is->count, WORDS);
            assert_int_equal(is->number, turn + 1);
            assert_int_equal(is->is_mean, 1);
            assert_int_equal(is->send, ranks[i].send->address);
            for (uint32_t q = 0; q < 3; q++) {
                assert_int_equal(is->inboxes[q], arguments_of(3 * turn + q)->own + i * slot);
            }
            assert_true(turn != 1 || is->own + 3 * slot == arguments_of(i)->own);
            assert_true(turn != 2 || is->own == arguments_of(i)->own);
        }
    }
    assert_int_equal(nccl->call_count, 0);
    for (uint32_t i = 0; i < 3; i++) { /* sums of integers are NCCL's */
        does(submit(i, (hal_plugin_collective){.count = WORDS, .type = HAL_TYPE_U32}, 4 * WORDS,
                    4 * WORDS));
    }
    assert_int_equal(nccl->call_count, 3);
    plugin->comm_abort(ranks[0].comm);
    assert_int_equal(*(const uint32_t *)(uintptr_t)arguments_of(0)->aborted, 1);
}

static int group_begin(void **state)
{
    uint32_t count = 0;
    cuda = load_mock(CUDA_MOCK_PATH, CUDA_MOCK_SYMBOL);
    plugin = plugin_load(CUDA_PLUGIN_PATH);
    if (!cuda || !plugin) {
        return -1;
    }
    cuda->devices = RANKS;
    does(plugin_list(plugin, NULL, 0, &count));
    for (uint32_t i = 0; i < RANKS; i++) { /* afterwards the objects of the process exist */
        does(plugin_open(plugin, i, &ranks[i].device));
        does(plugin->queue_create(ranks[i].device, &ranks[i].queue));
        plugin->queue_destroy(ranks[i].device, ranks[i].queue);
        plugin->device_close(ranks[i].device);
    }
    return 0;
}

UNIT_MAIN(group_begin, NULL)
