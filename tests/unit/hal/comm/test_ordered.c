/* Communicators with a backend that moves data (tests/plugins/comm_backend.c), on two to five
 * devices: every reduction has the bits of the same collective on a communicator without a backend.
 * All bytes of a rank's memory are compared, so a reduction writes its result and nothing else. */
#include "unit.h"

#include "comm/backend.h"
#include "comm/ordered.h"
#include "comm/reduce.h"
#include "core/flush.h"

#include <hal/hal.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_RANKS = 5, MARGIN = 256, ARENA_BYTES = 16 << 20, GUARD = 0xa5 };

static const hal_ordered_limits small_limits = {.received_bytes = 64 << 10,
                                                .gathered_bytes = 8 << 10};

/* A collective to be compared. Integers of 32 bits are added by the backend. */
typedef struct reduction_case {
    hal_type type;
    uint32_t reduction;
} reduction_case;

static const reduction_case cases[] = {
    {HAL_TYPE_F32, HAL_REDUCE_SUM},  {HAL_TYPE_F32, HAL_REDUCE_MEAN},
    {HAL_TYPE_BF16, HAL_REDUCE_SUM}, {HAL_TYPE_F64, HAL_REDUCE_MIN},
    {HAL_TYPE_I16, HAL_REDUCE_SUM},  {HAL_TYPE_BOOL, HAL_REDUCE_SUM},
    {HAL_TYPE_I32, HAL_REDUCE_SUM}};

/* The ranks of a communicator; a rank's buffer has what it sends and receives. */
typedef struct ranks {
    uint32_t count;
    hal_device *devices[MAX_RANKS];
    hal_comm *comms[MAX_RANKS];
    hal_queue *queues[MAX_RANKS];
    hal_buffer *buffers[MAX_RANKS];
    const hal_ordered_limits *limits; /* null: those of hal_queue_collective */
} ranks;

static ranks host, backend;
/* Of each rank: what it sends, what its memory is expected to have, and what it has. */
static uint8_t *sent[MAX_RANKS], *expected[MAX_RANKS], *found;

/* ---- Values ---- */

static uint32_t random_word(uint32_t rank, uint64_t i)
{
    uint64_t x = (i * MAX_RANKS + rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(x >> 32);
}

/* Sums of these have other bits in other orders. */
static float float_of(uint32_t word)
{
    static const float values[8] = {1e8f, 1.0f, -1e8f, 0.3f, -1.0f, 1e-3f, 3e7f, -2.5f};
    return word % 16 < 8 ? values[word % 8] : (float)(int32_t)word / 3e5f;
}

static double double_of(uint32_t word)
{
    static const double values[8] = {1.0, -0.0, 0.0, -1e300, 2.0, 1e-310, -3.0, 7.0};
    return word % 11 == 0 ? (double)NAN : values[word / 11 % 8];
}

static void value_write(hal_type type, uint32_t word, uint8_t *at)
{
    const float single = float_of(word);
    const double twice = double_of(word);
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    switch (type) {
    case HAL_TYPE_F32:
        memcpy(at, &single, sizeof single);
        break;
    case HAL_TYPE_BF16:
        memcpy(at, (uint16_t[]){(uint16_t)(bits >> 16)}, 2);
        break;
    case HAL_TYPE_F64:
        memcpy(at, &twice, sizeof twice);
        break;
    case HAL_TYPE_BOOL:
        *at = word % 8 == 0;
        break;
    default:
        memcpy(at, &word, hal_type_size(type));
        break;
    }
}

static void values_write(hal_type type, uint64_t count)
{
    for (uint32_t r = 0; r < backend.count; r++) {
        for (uint64_t i = 0; i < count; i++) {
            value_write(type, random_word(r, i), sent[r] + i * hal_type_size(type));
        }
    }
}

/* ---- Collectives ---- */

static void ranks_open(ranks *of, uint32_t count, const char *selection)
{
    of->count = count;
    for (uint32_t r = 0; r < count; r++) {
        char name[32];
        snprintf(name, sizeof name, selection, r);
        assert_ok(hal_device_open(name, &of->devices[r]));
        assert_ok(hal_queue_create(of->devices[r], &of->queues[r]));
        assert_ok(
            hal_buffer_create(of->devices[r], HAL_MEMORY_DEVICE, ARENA_BYTES, &of->buffers[r]));
    }
    assert_ok(hal_comm_create_local(of->devices, count, 0, of->comms));
}

static void ranks_close(ranks *of)
{
    for (uint32_t r = 0; r < of->count; r++) {
        hal_comm_destroy(of->comms[r]);
        hal_buffer_release(of->buffers[r]);
        hal_queue_destroy(of->queues[r]);
        hal_device_release(of->devices[r]);
    }
    of->count = 0;
}

static void both_open(uint32_t count, const hal_ordered_limits *limits)
{
    hal_comm_status status;
    ranks_open(&host, count, "cpu:0");
    ranks_open(&backend, count, "backend:%u");
    for (uint32_t r = 0; r < count; r++) {
        assert_ok(hal_comm_get_status(host.comms[r], &status));
        assert_string_equal(status.backend, "host");
        assert_ok(hal_comm_get_status(backend.comms[r], &status));
        assert_string_equal(status.backend, "memmove");
    }
    backend.limits = limits;
}

static void both_close(void)
{
    ranks_close(&host);
    ranks_close(&backend);
}

/* After a test that failed: what it left in flight must not wait for other ranks. */
static int both_abort(void **state)
{
    for (uint32_t r = 0; r < MAX_RANKS; r++) {
        if (r < host.count) {
            hal_comm_abort(host.comms[r], "the test failed");
        }
        if (r < backend.count) {
            hal_comm_abort(backend.comms[r], "the test failed");
        }
    }
    both_close();
    return 0;
}

#define ORDERED_TEST(name) TEST_WITH(name, NULL, both_abort)

/* A collective and where its ranges are in a rank's memory. */
typedef struct placed_call {
    hal_collective what;
    uint64_t count;
    uint64_t send_bytes, recv_bytes;
    uint64_t send_at, recv_at, end; /* in bytes */
} placed_call;

static placed_call call_place(hal_collective what, uint64_t count, uint32_t ranks_count)
{
    const uint64_t bytes = count * hal_type_size(what.type);
    placed_call call = {.what = what, .count = count, .send_bytes = bytes, .recv_bytes = bytes};
    call.send_bytes *= what.kind == HAL_COLLECTIVE_REDUCE_SCATTER ? ranks_count : 1;
    call.send_at = MARGIN;
    call.recv_at = (MARGIN + call.send_bytes + 2 * MARGIN - 1) / MARGIN * MARGIN;
    call.end = (call.recv_at + call.recv_bytes + 2 * MARGIN - 1) / MARGIN * MARGIN;
    assert_true(call.end <= ARENA_BYTES);
    return call;
}

/* At offsets that no binding may have: one element into a block, and three. */
static void call_make_odd(placed_call *call)
{
    call->send_at += hal_type_size(call->what.type);
    call->recv_at += 3 * (uint64_t)hal_type_size(call->what.type);
}

static uint64_t recv_offset(const placed_call *call, uint32_t rank, int in_place)
{
    const uint64_t part =
        call->what.kind == HAL_COLLECTIVE_REDUCE_SCATTER ? rank * call->recv_bytes : 0;
    return in_place ? call->send_at + part : call->recv_at;
}

/* What hal_queue_collective does with a reduction that hal adds, with other limits. */
static hal_status pieces_record(hal_queue *queue, hal_comm *comm, const hal_mailbox_call *call,
                                hal_range send, hal_range recv, const hal_ordered_limits *limits)
{
    const uint64_t since = atomic_load(&queue->timeline.submitted) + 1;
    HAL_TRY(hal_comm_check(comm, "pieces_record"));
    HAL_TRY(hal_reduce_prepare(comm, (hal_type)call->type, call->reduction, 0));
    hal_status status = hal_backend_compare(comm, queue, call, since);
    if (status == HAL_OK) {
        status = hal_ordered_record(comm, queue, call, send, recv, since, limits);
    }
    if (status == HAL_OK) {
        status = hal_flush_waits(queue, NULL);
    }
    return status == HAL_OK ? HAL_OK : hal_comm_fail(comm, status);
}

static hal_status call_record(const ranks *of, uint32_t r, const placed_call *call, int in_place)
{
    hal_range send = {of->buffers[r], call->send_at, HAL_WHOLE};
    hal_range recv = {of->buffers[r], recv_offset(call, r, in_place), HAL_WHOLE};
    const hal_collective *what = &call->what;
    const hal_mailbox_call plain = {.kind = what->kind,
                                    .type = what->type,
                                    .reduction = what->reduction,
                                    .root = what->kind == HAL_COLLECTIVE_REDUCE ? what->root : 0,
                                    .any_order = what->any_order,
                                    .count = call->count};
    if (of->limits && !hal_backend_takes(of->comms[r], &plain)) {
        send.length = call->send_bytes;
        recv.length = call->recv_bytes;
        recv = what->kind == HAL_COLLECTIVE_REDUCE && what->root != r ? (hal_range){0} : recv;
        return pieces_record(of->queues[r], of->comms[r], &plain, send, recv, of->limits);
    }
    return hal_queue_collective(of->queues[r], of->comms[r], &call->what, send, recv, call->count);
}

/* Writes the memory of all ranks as it is before the call, into `images` too unless null. */
static void memory_write(const ranks *of, const placed_call *call, uint8_t *const *images)
{
    for (uint32_t r = 0; r < of->count; r++) {
        uint8_t *image = images ? images[r] : found;
        memset(image, GUARD, call->end);
        memcpy(image + call->send_at, sent[r], call->send_bytes);
        assert_ok(hal_queue_write(of->queues[r], of->buffers[r], 0, image, call->end));
    }
}

static void memory_compare(const ranks *of, const placed_call *call, const char *how)
{
    for (uint32_t r = 0; r < of->count; r++) {
        uint64_t i = 0;
        assert_ok(hal_queue_read(of->queues[r], of->buffers[r], 0, call->end, found));
        if (memcmp(found, expected[r], call->end) == 0) {
            continue;
        }
        while (found[i] == expected[r][i]) {
            i++;
        }
        fail_msg("%s: rank %u of %u, kind %u, reduction %u, %s, root %u, count %llu: byte %llu of "
                 "%llu, send at %llu, recv at %llu: %02x instead of %02x",
                 how, r, of->count, call->what.kind, call->what.reduction,
                 hal_type_name(call->what.type), call->what.root, (unsigned long long)call->count,
                 (unsigned long long)i, (unsigned long long)call->end,
                 (unsigned long long)call->send_at, (unsigned long long)call->recv_at, found[i],
                 expected[r][i]);
    }
}

static int has_result(const placed_call *call, uint32_t rank)
{
    return call->what.kind != HAL_COLLECTIVE_REDUCE || call->what.root == rank;
}

/* The results of the communicator without a backend, which follow each other in `results`. */
static void results_compute(const placed_call *call, uint8_t *results)
{
    memory_write(&host, call, NULL);
    for (uint32_t r = 0; r < host.count; r++) {
        assert_ok(call_record(&host, r, call, 0));
    }
    for (uint32_t r = 0; r < host.count; r++) {
        assert_ok(hal_queue_read(host.queues[r], host.buffers[r], call->recv_at, call->recv_bytes,
                                 results + r * call->recv_bytes));
    }
}

/* The ranks take turns as the first one, which waits, and the last one. */
static void call_compare(const placed_call *call, int in_place, const uint8_t *results)
{
    static uint32_t turn;
    memory_write(&backend, call, expected);
    turn++;
    for (uint32_t i = 0; i < backend.count; i++) {
        const uint32_t r = (i + turn) % backend.count;
        const uint64_t before = backend.comms[r]->backend->recorded;
        assert_ok(call_record(&backend, r, call, in_place));
        assert_true(backend.comms[r]->backend->recorded > before);
        const uint64_t flushed = atomic_load(&backend.queues[r]->timeline.flushed);
        assert_ok(hal_queue_flush(backend.queues[r], NULL));
        /* the collective has flushed itself */
        assert_int_equal(atomic_load(&backend.queues[r]->timeline.flushed), flushed);
        if (has_result(call, r)) {
            memcpy(expected[r] + recv_offset(call, r, in_place), results + r * call->recv_bytes,
                   call->recv_bytes);
        }
    }
    memory_compare(&backend, call, in_place ? "in place" : "apart");
}

static void case_compare(hal_collective what, uint64_t count)
{
    const placed_call even = call_place(what, count, backend.count);
    placed_call odd = even;
    uint8_t *results = malloc(backend.count * even.recv_bytes);
    assert_non_null(results);
    call_make_odd(&odd);
    results_compute(&even, results);
    call_compare(&even, 0, results);
    call_compare(&even, 1, results);
    call_compare(&odd, 0, results);
    call_compare(&odd, 1, results);
    free(results);
}

/* All kinds that reduce, each root among them. */
static void kinds_compare(reduction_case is, uint64_t count)
{
    hal_collective what = {.type = is.type, .reduction = is.reduction};
    values_write(is.type, count * backend.count);
    what.kind = HAL_COLLECTIVE_ALL_REDUCE;
    case_compare(what, count);
    what.kind = HAL_COLLECTIVE_REDUCE_SCATTER;
    case_compare(what, count);
    what.kind = HAL_COLLECTIVE_REDUCE;
    for (what.root = 0; what.root < backend.count; what.root++) {
        case_compare(what, count);
    }
}

static void counts_compare(const uint64_t *counts, uint32_t number)
{
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (uint32_t n = 0; n < number; n++) {
            kinds_compare(cases[c], counts[n]);
        }
    }
    for (uint32_t r = 0; r < backend.count; r++) {
        hal_comm_status status;
        assert_ok(hal_comm_get_status(backend.comms[r], &status));
        assert_int_equal(status.deterministic, 1);
    }
}

/* ---- Tests ---- */

static void whole_compare(uint32_t count)
{
    static const uint64_t counts[] = {1, 3, 255, 1000, 100003};
    both_open(count, NULL);
    counts_compare(counts, 5);
    both_close();
}

/* With limits that are soon reached: 100003 elements are several pieces of several chunks. */
static void pieces_compare(uint32_t count)
{
    static const uint64_t counts[] = {1, 1000, 16384, 100003};
    both_open(count, &small_limits);
    counts_compare(counts, 4);
    both_close();
}

ORDERED_TEST(two_ranks)
{
    whole_compare(2);
}

ORDERED_TEST(three_ranks)
{
    whole_compare(3);
}

ORDERED_TEST(four_ranks)
{
    whole_compare(4);
}

ORDERED_TEST(five_ranks)
{
    whole_compare(5);
}

ORDERED_TEST(pieces_of_two_ranks)
{
    pieces_compare(2);
}

ORDERED_TEST(pieces_of_three_ranks)
{
    pieces_compare(3);
}

ORDERED_TEST(pieces_of_four_ranks)
{
    pieces_compare(4);
}

ORDERED_TEST(pieces_of_five_ranks)
{
    pieces_compare(5);
}

/* The number of calls to the backend for an all_reduce or reduce_scatter of floats. */
static uint64_t backend_calls(uint32_t kind, uint64_t count)
{
    const hal_collective what = {.kind = kind, .type = HAL_TYPE_F32};
    const uint64_t before = backend.comms[0]->backend->recorded;
    values_write(HAL_TYPE_F32, count * backend.count);
    case_compare(what, count);
    return (backend.comms[0]->backend->recorded - before) / 4;
}

/* How a reduction is divided at the limits that programs have, and at lower ones. */
ORDERED_TEST(reductions_are_divided_at_the_limits)
{
    both_open(3, NULL);
    assert_int_equal(backend_calls(HAL_COLLECTIVE_ALL_REDUCE, 174762), 1); /* 2 MiB of contributions
                                                                            * */
    assert_int_equal(backend_calls(HAL_COLLECTIVE_ALL_REDUCE, 174912), 2); /* whole chunks:
                                                                            * scattered */
    assert_int_equal(backend_calls(HAL_COLLECTIVE_ALL_REDUCE, 300007), 3); /* and a rest */
    assert_int_equal(backend_calls(HAL_COLLECTIVE_REDUCE_SCATTER, 300007), 1);
    backend.limits = &small_limits;
    assert_int_equal(backend_calls(HAL_COLLECTIVE_ALL_REDUCE, 16320), 2);     /* 85 chunks of each
                                                                               * rank */
    assert_int_equal(backend_calls(HAL_COLLECTIVE_ALL_REDUCE, 16320 + 1), 3); /* and an element */
    assert_int_equal(backend_calls(HAL_COLLECTIVE_REDUCE_SCATTER, 5440), 1);  /* 85 chunks */
    assert_int_equal(backend_calls(HAL_COLLECTIVE_REDUCE_SCATTER, 5441), 2);
    both_close();
}

/* Results are those of the order of the ranks; many of those of the reverse order differ. */
static void order_check(uint32_t count)
{
    enum { COUNT = 1000 };
    const hal_collective what = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_F32};
    static float results[MAX_RANKS * COUNT];
    uint32_t differ = 0;
    both_open(count, NULL);
    values_write(HAL_TYPE_F32, COUNT);
    const placed_call call = call_place(what, COUNT, count);
    results_compute(&call, (uint8_t *)results);
    call_compare(&call, 0, (uint8_t *)results);
    for (uint32_t i = 0; i < COUNT; i++) {
        volatile float forward = float_of(random_word(0, i));
        volatile float back = float_of(random_word(count - 1, i));
        for (uint32_t r = 1; r < count; r++) {
            forward += float_of(random_word(r, i));
            back += float_of(random_word(count - 1 - r, i));
        }
        differ += forward != back;
        assert_true(forward == results[i]);
    }
    assert_true(differ > COUNT / 8);
    both_close();
}

ORDERED_TEST(sums_are_in_the_order_of_the_ranks)
{
    for (uint32_t count = 3; count <= MAX_RANKS; count++) {
        order_check(count);
    }
}

/* Records two calls, of which the second one uses the result of the first one. */
static void chain_record(const ranks *of, uint32_t r, const placed_call calls[2])
{
    assert_ok(call_record(of, r, &calls[0], 1));
    assert_ok(call_record(of, r, &calls[1], 0));
}

/* A graph is launched three times on each rank, on the result of the launch before. */
static void graph_compare(uint32_t count, uint64_t elements)
{
    hal_collective what = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_F32};
    hal_graph *graphs[MAX_RANKS];
    both_open(count, NULL);
    values_write(HAL_TYPE_F32, elements * count);
    placed_call calls[2];
    calls[0] = call_place(what, elements * count, count);
    what.kind = HAL_COLLECTIVE_REDUCE_SCATTER;
    calls[1] = call_place(what, elements, count);
    calls[0].end = calls[1].end;
    call_make_odd(&calls[0]);
    call_make_odd(&calls[1]);
    memory_write(&host, &calls[1], NULL);
    memory_write(&backend, &calls[1], expected);
    for (uint32_t r = 0; r < count; r++) {
        assert_ok(hal_graph_begin(backend.queues[r]));
        chain_record(&backend, r, calls);
        assert_ok(hal_graph_end(backend.queues[r], NULL, 0, &graphs[r]));
    }
    for (uint32_t launch = 0; launch < 3; launch++) {
        for (uint32_t r = 0; r < count; r++) {
            chain_record(&host, r, calls);
            assert_ok(hal_graph_launch(backend.queues[r], graphs[r], NULL, 0));
        }
    }
    for (uint32_t r = 0; r < count; r++) {
        assert_ok(hal_queue_read(host.queues[r], host.buffers[r], 0, calls[1].end, expected[r]));
    }
    memory_compare(&backend, &calls[1], "graph");
    for (uint32_t r = 0; r < count; r++) {
        hal_graph_destroy(graphs[r]);
    }
    both_close();
}

ORDERED_TEST(graphs)
{
    for (uint32_t count = 2; count <= MAX_RANKS; count++) {
        graph_compare(count, 20011); /* gathered */
        graph_compare(count, 60007); /* scattered by three ranks or more */
    }
}

/* A rank that a thread uses. */
typedef struct rank_thread {
    pthread_t thread;
    uint32_t rank;
    const placed_call *call;
    hal_status status;
    char message[256];
} rank_thread;

enum { ROUNDS = 20 };

static void *rank_work(void *argument)
{
    rank_thread *of = argument;
    for (uint32_t i = 0; of->status == HAL_OK && i < ROUNDS; i++) {
        of->status = call_record(&backend, of->rank, of->call, i % 2);
    }
    if (of->status == HAL_OK) {
        of->status = hal_queue_wait(backend.queues[of->rank], HAL_WAIT_FOREVER);
    }
    snprintf(of->message, sizeof of->message, "%s", hal_status_message());
    return NULL;
}

/* Each rank is used by a thread. */
ORDERED_TEST(threads)
{
    enum { RANKS = 4 };
    const hal_collective what = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_F32};
    rank_thread threads[RANKS];
    both_open(RANKS, &small_limits);
    values_write(HAL_TYPE_F32, 20011);
    placed_call call = call_place(what, 20011, RANKS);
    call_make_odd(&call);
    memory_write(&host, &call, NULL);
    memory_write(&backend, &call, NULL);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        for (uint32_t r = 0; r < RANKS; r++) {
            assert_ok(call_record(&host, r, &call, i % 2));
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_ok(hal_queue_wait(backend.queues[r], HAL_WAIT_FOREVER));
        threads[r] = (rank_thread){.rank = r, .call = &call};
        assert_int_equal(pthread_create(&threads[r].thread, NULL, rank_work, &threads[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(pthread_join(threads[r].thread, NULL), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        if (threads[r].status != HAL_OK) {
            fail_msg("rank %u: %s", r, threads[r].message);
        }
        assert_ok(hal_queue_read(host.queues[r], host.buffers[r], 0, call.end, expected[r]));
    }
    memory_compare(&backend, &call, "threads");
    both_close();
}

static void *process_rank_create(void *argument)
{
    static const hal_comm_id id = {{7, 1, 9}};
    const uint32_t r = (uint32_t)(uintptr_t)argument;
    const hal_comm_options options = {id, r, 2, UINT64_C(20000000000)};
    return (void *)(uintptr_t)hal_comm_create(backend.devices[r], &options, &backend.comms[r]);
}

/* Two ranks whose mailbox is that of two processes. One records more than a driver may take while
 * the other one does not come: the call returns with the time limit. */
ORDERED_TEST(a_rank_that_is_far_ahead_returns)
{
    const hal_collective what = {.kind = HAL_COLLECTIVE_ALL_GATHER, .type = HAL_TYPE_F32};
    pthread_t thread;
    void *created = NULL;
    both_open(2, NULL);
    for (uint32_t r = 0; r < 2; r++) {
        hal_comm_destroy(backend.comms[r]);
    }
    assert_int_equal(pthread_create(&thread, NULL, process_rank_create, (void *)1), 0);
    assert_null(process_rank_create((void *)0));
    assert_int_equal(pthread_join(thread, &created), 0);
    assert_null(created);
    backend.comms[0]->time_limit_ns = UINT64_C(2000000000); /* enough for nine calls */
    values_write(HAL_TYPE_F32, 20);
    const placed_call call = call_place(what, 10, 2);
    memory_write(&backend, &call, NULL);
    hal_status status = HAL_OK;
    uint32_t calls = 0;
    for (; status == HAL_OK && calls < 30; calls++) {
        status = call_record(&backend, 0, &call, 0);
    }
    assert_int_equal(status, HAL_ERROR_TIMEOUT);
    assert_int_equal(calls, 9);
    hal_queue_wait(backend.queues[0], HAL_WAIT_FOREVER);
    both_close();
}

/* Lets hal look several times at collectives that wait for the last rank. */
static void watches_run(void)
{
    hal_comm_status status;
    for (uint32_t i = 0; i < 4; i++) {
        usleep(6000); /* more than between two looks */
        for (uint32_t r = 0; r < backend.count; r++) {
            assert_ok(hal_comm_get_status(backend.comms[r], &status));
        }
    }
}

/* Two communicators on the same devices, each with its queues, whose pieces take turns: those of
 * the second communicator wait for theirs, however long the last rank takes. */
ORDERED_TEST(two_groups_on_the_same_devices)
{
    enum { RANKS = 3 };
    static ranks other;
    const hal_collective what = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_F32};
    both_open(RANKS, &small_limits);
    values_write(HAL_TYPE_F32, 100003);
    const placed_call call = call_place(what, 100003, RANKS);
    uint8_t *results = malloc(RANKS * call.recv_bytes);
    assert_non_null(results);
    results_compute(&call, results);
    ranks_open(&other, RANKS, "backend:%u");
    other.limits = &small_limits;
    memory_write(&other, &call, NULL);
    memory_write(&backend, &call, expected);
    for (uint32_t r = 0; r < RANKS; r++) {
        if (r == RANKS - 1) {
            watches_run();
        }
        assert_ptr_equal(other.devices[r], backend.devices[r]);
        assert_ok(call_record(&backend, r, &call, 0));
        assert_ok(call_record(&other, r, &call, 0));
        memcpy(expected[r] + call.recv_at, results + r * call.recv_bytes, call.recv_bytes);
    }
    memory_compare(&other, &call, "the other communicator");
    memory_compare(&backend, &call, "the communicator");
    ranks_close(&other);
    free(results);
    both_close();
}

/* Two of three ranks have recorded a reduction when the third one ends the communicator: they fail,
 * and their queues go on. */
static void abort_check(uint32_t kind)
{
    enum { RANKS = 3, WORD = 7 };
    const hal_collective what = {.kind = kind, .type = HAL_TYPE_F32};
    uint32_t word = 0;
    both_open(RANKS, &small_limits);
    values_write(HAL_TYPE_F32, RANKS * UINT64_C(100003));
    const placed_call call = call_place(what, 100003, RANKS);
    memory_write(&backend, &call, expected);
    assert_ok(call_record(&backend, 0, &call, 0));
    assert_ok(call_record(&backend, 1, &call, 0));
    assert_ok(hal_comm_abort(backend.comms[2], "enough"));
    for (uint32_t r = 0; r < 2; r++) {
        assert_int_not_equal(hal_queue_wait(backend.queues[r], HAL_WAIT_FOREVER), HAL_OK);
        assert_message("enough");
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        const hal_range whole = {backend.buffers[r], 0, HAL_WHOLE};
        assert_fails(call_record(&backend, r, &call, 0), HAL_ERROR_INVALID_STATE, "enough");
        assert_ok(hal_queue_fill(backend.queues[r], whole, WORD));
        assert_ok(hal_queue_read(backend.queues[r], backend.buffers[r], call.recv_at, 4, &word));
        assert_int_equal(word, WORD);
    }
    both_close();
}

ORDERED_TEST(an_abort_ends_reductions_in_flight)
{
    abort_check(HAL_COLLECTIVE_ALL_REDUCE);
    abort_check(HAL_COLLECTIVE_REDUCE_SCATTER);
    abort_check(HAL_COLLECTIVE_REDUCE);
}

static int tests_begin(void **state)
{
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/backend", 1);
    found = malloc(ARENA_BYTES);
    for (uint32_t r = 0; found && r < MAX_RANKS; r++) {
        sent[r] = malloc(ARENA_BYTES);
        expected[r] = malloc(ARENA_BYTES);
    }
    return !found || !expected[MAX_RANKS - 1];
}

/* With the validate layer, none of this is a finding. */
TEST(nothing_was_found)
{
    assert_int_equal(hal_validate_get_finding_count(), 0);
}

static int tests_end(void **state)
{
    for (uint32_t r = 0; r < MAX_RANKS; r++) {
        free(sent[r]);
        free(expected[r]);
    }
    free(found);
    return 0;
}

/* The communicator ends at any moment of a collective. What the queue reports once, its losses tell
 * afterwards as well, from the batch of the collective on. */
ORDERED_TEST(a_collective_that_failed_is_lost)
{
    uint32_t reported = 0;
    for (int round = 0; round < 40; round++) {
        both_open(2, NULL);
        const hal_collective what = {
            .kind = HAL_COLLECTIVE_ALL_REDUCE, .reduction = HAL_REDUCE_SUM, .type = HAL_TYPE_I32};
        uint64_t batches[2];
        hal_loss loss;
        for (uint32_t r = 0; r < 2; r++) {
            const hal_range range = {backend.buffers[r], 0, 4096};
            batches[r] = hal_queue_get_batch(backend.queues[r]);
            assert_ok(hal_queue_collective(backend.queues[r], backend.comms[r], &what, range, range,
                                           1024));
        }
        for (int polls = 0; polls < round; polls++) {
            hal_point_wait((hal_point){backend.queues[0], 1}, 0);
        }
        hal_comm_abort(backend.comms[0], "enough");
        for (uint32_t r = 0; r < 2; r++) {
            const hal_status status = hal_queue_wait(backend.queues[r], HAL_WAIT_FOREVER);
            assert_ok(hal_queue_get_loss(backend.queues[r], 0, &loss));
            assert_true(status == HAL_OK || loss.count > 0);
            assert_true(status == HAL_OK || strstr(loss.message, "enough"));
            assert_true(status == HAL_OK || loss.batch >= batches[r]);
            reported += status != HAL_OK;
        }
        both_close();
    }
    assert_true(reported > 0);
}

UNIT_MAIN(tests_begin, tests_end)
