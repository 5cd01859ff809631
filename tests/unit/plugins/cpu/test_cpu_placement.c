/* The pool's threads keep off the caller's processor, and a pause of the system while they are
 * moved does not leave them on the wrong one for long. The system's calls are replaced. */
#include "cpu/threads/placement.h"

#include <kit/clock.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "unit.h"

enum { PROCESSORS = 4 };

static int caller_processor;
static cpu_set_t moved_to; /* the only thread's processors, once it was moved */
static uint32_t moves, pause_ms;
static bool was_moved;

int __wrap_sched_getcpu(void);
int __wrap_sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set);

int __wrap_sched_getcpu(void)
{
    return caller_processor;
}

int __wrap_sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set)
{
    memset(set, 0, bytes);
    for (int i = 0; i < PROCESSORS; i++) {
        CPU_SET_S(i, bytes, set);
    }
    if (thread != 0 && was_moved) {
        memcpy(set, &moved_to, sizeof(moved_to));
    }
    return 0;
}

int __wrap_sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set)
{
    const struct timespec pause = {.tv_sec = pause_ms / 1000,
                                   .tv_nsec = pause_ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
    memcpy(&moved_to, set, sizeof(moved_to));
    was_moved = true;
    moves++;
    return 0;
}

/* Calls that avoid a processor until a thread is moved. Returns the milliseconds
 * that this took. */
static uint64_t avoid(cpu_placement *placement, int processor)
{
    const uint64_t start = kit_clock_ns();
    const uint32_t before = moves;
    caller_processor = processor;
    while (moves == before) {
        cpu_placement_avoid_caller(placement);
    }
    assert_int_equal(CPU_COUNT(&moved_to), PROCESSORS - 1);
    assert_false(CPU_ISSET(processor, &moved_to));
    return (kit_clock_ns() - start) / 1000000;
}

TEST(test_threads_avoid_the_caller)
{
    cpu_placement placement;
    was_moved = false;
    cpu_placement_init(&placement, PROCESSORS);
    cpu_placement_enter(&placement);
    avoid(&placement, 1);
    const uint32_t before = moves;
    cpu_placement_avoid_caller(&placement);
    assert_int_equal(moves, before); /* the caller is where it was */
    avoid(&placement, 2);
    avoid(&placement, 1);
    cpu_placement_release(&placement);
}

TEST(test_more_threads_than_processors_are_left_alone)
{
    cpu_placement placement;
    was_moved = false;
    const uint32_t before = moves;
    cpu_placement_init(&placement, PROCESSORS + 1);
    cpu_placement_enter(&placement);
    cpu_placement_avoid_caller(&placement);
    assert_int_equal(moves, before);
    cpu_placement_release(&placement);
}

/* Whoever gives a thread other processors, such as taskset -a -p, keeps it there. */
TEST(test_a_thread_stays_where_others_put_it)
{
    cpu_placement placement;
    was_moved = false;
    cpu_placement_init(&placement, PROCESSORS);
    cpu_placement_enter(&placement);
    avoid(&placement, 1);
    CPU_ZERO(&moved_to);
    CPU_SET(2, &moved_to);
    const uint32_t before = moves;
    atomic_store(&placement.next_ns, 0);
    caller_processor = 3;
    cpu_placement_avoid_caller(&placement);
    assert_int_equal(moves, before);
    cpu_placement_release(&placement);
}

/* Without a limit the pause below would count a hundred times: 20 s. */
TEST(test_a_pause_does_not_count)
{
    cpu_placement placement;
    was_moved = false;
    cpu_placement_init(&placement, PROCESSORS);
    cpu_placement_enter(&placement);
    pause_ms = 200;
    avoid(&placement, 1);
    pause_ms = 0;
    assert_true(avoid(&placement, 2) < 10000);
    cpu_placement_release(&placement);
}

UNIT_MAIN(NULL, NULL)
