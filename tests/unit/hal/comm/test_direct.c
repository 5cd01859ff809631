/* Direct reads between two ranks of one process, whose mailbox is that of two processes: data that
 * passes no slot, ranks that the system does not allow to read, memory that is released early. */
#include "unit.h"

#include "base/platform.h"
#include "comm/comm.h"

#include <hal/hal.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 2, COUNT = 3 << 18, BYTES = 4 * COUNT, ONE_PIECE = 2 << 18, SMALL = 1024 };

static hal_device *device;
static hal_comm *comms[RANKS];
static hal_queue *queues[RANKS];
static hal_buffer *sent[RANKS], *received[RANKS];
static float values[COUNT];
static hal_comm_id id;

static void *rank_create(void *rank)
{
    const uint32_t r = (uint32_t)(uintptr_t)rank;
    const hal_comm_options options = {id, r, RANKS, UINT64_C(20000000000)};
    return (void *)(uintptr_t)hal_comm_create(device, &options, &comms[r]);
}

static int ranks_begin(void **state)
{
    pthread_t other;
    void *status = NULL;
    assert_ok(hal_comm_id_create(&id));
    assert_int_equal(pthread_create(&other, NULL, rank_create, (void *)1), 0);
    assert_null(rank_create((void *)0));
    assert_int_equal(pthread_join(other, &status), 0);
    assert_null(status);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_ok(hal_queue_create(device, &queues[r]));
        assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, BYTES, &sent[r]));
        assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, BYTES, &received[r]));
        for (uint32_t i = 0; i < COUNT; i++) {
            values[i] = (float)((r + 1) * (i % 1000 + 1));
        }
        assert_ok(hal_queue_write(queues[r], sent[r], 0, values, BYTES));
    }
    return 0;
}

static int ranks_end(void **state)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        hal_buffer_release(sent[r]);
        hal_buffer_release(received[r]);
        hal_queue_destroy(queues[r]);
        hal_comm_destroy(comms[r]);
    }
    return 0;
}

#define RANKS_TEST(name) TEST_WITH(name, ranks_begin, ranks_end)

static hal_status rank_call(uint32_t rank, uint32_t kind, uint64_t count)
{
    const hal_collective what = {.kind = kind, .type = HAL_TYPE_F32};
    return hal_queue_collective(queues[rank], comms[rank], &what,
                                (hal_range){sent[rank], 0, HAL_WHOLE},
                                (hal_range){received[rank], 0, HAL_WHOLE}, count);
}

/* All_reduce of everything, whose result both ranks have. */
static void sum_check(void)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_ok(rank_call(r, HAL_COLLECTIVE_ALL_REDUCE, COUNT));
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_ok(hal_queue_read(queues[r], received[r], 0, BYTES, values));
        for (uint32_t i = 0; i < COUNT; i++) {
            if (values[i] != (float)(3 * (i % 1000 + 1))) {
                fail_msg("rank %u, element %u: %g", r, i, (double)values[i]);
            }
        }
    }
}

/* Whether the rank has ever put data in a slot. */
static int has_used_slots(uint32_t rank)
{
    const hal_mailbox *mailbox = comms[rank]->mailbox;
    for (uint64_t i = 0; i < 2 * mailbox->slot_bytes; i++) {
        if (hal_mailbox_slot(mailbox, rank, 0)[i] != 0) {
            return 1;
        }
    }
    return 0;
}

/* Not under an emulator, and not where a container forbids it: every rank is refused there. */
static int system_allows_reads(void)
{
    uint64_t from = 1, to = 0;
    const struct iovec source = {&from, sizeof from}, target = {&to, sizeof to};
    return hal_process_read((int64_t)getpid(), &target, &source, 1) == 0 && to == from;
}

/* The watch of a backend asks for all ranks, its own among them. */
RANKS_TEST(live_ranks_are_not_dead)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint32_t q = 0; q < RANKS; q++) {
            assert_false(hal_mailbox_is_rank_dead(comms[r]->mailbox, q));
        }
    }
}

RANKS_TEST(large_data_passes_no_slot)
{
    if (!system_allows_reads()) {
        skip();
    }
    sum_check();
    assert_int_equal(has_used_slots(0) + has_used_slots(1), 0);
}

/* A rank finds another process, or none, where it expects rank 1's: only that rank is refused. */
RANKS_TEST(a_rank_that_cannot_read_gets_the_data_in_slots)
{
    if (!system_allows_reads()) {
        skip();
    }
    hal_mailbox_process *process = &hal_mailbox_rank_at(comms[0]->mailbox, 1)->process;
    const hal_mailbox_process is = *process;
    process->key[1]++;
    sum_check();
    assert_true(has_used_slots(1));
    assert_int_equal(atomic_load(&hal_mailbox_rank_at(comms[0]->mailbox, 0)->needs_slots), 1);
    assert_int_equal(atomic_load(&hal_mailbox_rank_at(comms[0]->mailbox, 1)->needs_slots), 0);
    *process = is;
    process->id = INT32_MAX;
    atomic_store(&hal_mailbox_rank_at(comms[0]->mailbox, 0)->needs_slots, 0);
    sum_check();
    assert_int_equal(atomic_load(&hal_mailbox_rank_at(comms[0]->mailbox, 0)->needs_slots), 1);
    sum_check(); /* at once through slots */
}

/* As where no process may read another one: each rank waits for the other one's slot. */
RANKS_TEST(ranks_that_cannot_read_get_the_data_in_slots)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        hal_mailbox_rank_at(comms[0]->mailbox, r)->process.id = INT32_MAX;
    }
    sum_check();
    assert_int_equal(has_used_slots(0) + has_used_slots(1), 2);
}

/* Rank 0 releases what it publishes before rank 1 has come; another queue gets memory then. */
static void released_early(uint32_t kind, uint64_t count, uint32_t calls)
{
    hal_queue *queue = NULL;
    hal_buffer *later = NULL;
    hal_point point;
    assert_ok(hal_queue_create(device, &queue));
    for (uint32_t i = 0; i < calls; i++) {
        assert_ok(rank_call(0, kind, count));
    }
    hal_buffer_release(sent[0]);
    sent[0] = NULL;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, BYTES, &later));
    assert_ok(hal_queue_fill(queue, (hal_range){later, 0, HAL_WHOLE}, 0));
    assert_ok(hal_queue_flush(queue, &point));
    const hal_status early = hal_point_wait(point, 20000000);
    assert_true(early == HAL_OK || early == HAL_ERROR_TIMEOUT);
    for (uint32_t i = 0; i < calls; i++) {
        assert_ok(rank_call(1, kind, count));
    }
    assert_ok(hal_queue_read(queues[1], received[1], 0, 4 * count, values));
    assert_ok(hal_queue_wait(queues[0], HAL_WAIT_FOREVER));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(values[i] == (float)(i % 1000 + 1));
    }
    hal_buffer_release(later);
    hal_queue_destroy(queue);
}

RANKS_TEST(memory_is_kept_until_it_was_read)
{
    released_early(HAL_COLLECTIVE_BROADCAST, ONE_PIECE, 1);
}

/* The slots are not free for the third call. */
RANKS_TEST(memory_is_kept_until_it_is_in_a_slot)
{
    released_early(HAL_COLLECTIVE_BROADCAST, SMALL, 3);
}

RANKS_TEST(a_failure_of_the_offering_rank_reaches_the_reader)
{
    assert_ok(rank_call(0, HAL_COLLECTIVE_ALL_REDUCE, COUNT));
    assert_ok(hal_comm_abort(comms[0], "enough"));
    assert_fails(rank_call(1, HAL_COLLECTIVE_ALL_REDUCE, COUNT), HAL_ERROR_INVALID_STATE, "enough");
    assert_int_not_equal(hal_queue_wait(queues[0], HAL_WAIT_FOREVER), HAL_OK);
}

static int tests_begin(void **state)
{
    assert_ok(hal_device_open("cpu", &device));
    return 0;
}

static int tests_end(void **state)
{
    hal_device_release(device);
    return 0;
}

UNIT_MAIN(tests_begin, tests_end)
