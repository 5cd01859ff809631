/* Parts of shared work: every unit of every stage is taken once, a thread begins with the part that
 * it had before, and takes the parts of threads that do not come. */
#include "cpu/threads/parts.h"

#include <pthread.h>
#include <string.h>

#include "unit.h"

enum { UNITS = 1000, STAGES = 50, THREADS = 5 };

static cpu_parts parts;
static _Atomic uint8_t taken[STAGES][UNITS];

static uint64_t units_of(uint64_t stage)
{
    return stage * 37 % UNITS;
}

static void *stages_take(void *argument)
{
    const uint32_t thread = (uint32_t)(uintptr_t)argument;
    for (uint64_t stage = 0; stage < STAGES; stage++) {
        uint64_t first, count;
        while (
            cpu_parts_take(&parts, thread, stage, units_of(stage), 1 + stage % 5, &first, &count)) {
            for (uint64_t i = first; i < first + count; i++) {
                atomic_fetch_add(&taken[stage][i], 1);
            }
        }
    }
    return NULL;
}

/* With fewer, as many and more threads than parts. */
TEST(test_units_are_taken_once)
{
    for (uint32_t threads = 1; threads <= THREADS; threads++) {
        pthread_t others[THREADS];
        memset((void *)taken, 0, sizeof taken);
        cpu_parts_init(&parts, 3);
        for (uint32_t i = 1; i < threads; i++) {
            assert_int_equal(pthread_create(&others[i], NULL, stages_take, (void *)(uintptr_t)i),
                             0);
        }
        stages_take(NULL);
        for (uint32_t i = 1; i < threads; i++) {
            pthread_join(others[i], NULL);
        }
        for (uint64_t stage = 0; stage < STAGES; stage++) {
            for (uint64_t i = 0; i < UNITS; i++) {
                assert_int_equal(taken[stage][i], i < units_of(stage));
            }
        }
    }
}

TEST(test_own_part_comes_first)
{
    uint64_t first, count;
    cpu_parts_init(&parts, 4);
    for (uint32_t thread = 0; thread < 4; thread++) {
        for (uint64_t i = 0; i < 5; i++) {
            assert_true(cpu_parts_take(&parts, thread, 0, 40, 2, &first, &count));
            assert_int_equal(first, thread * 10 + i * 2);
            assert_int_equal(count, 2);
        }
    }
    assert_false(cpu_parts_take(&parts, 2, 0, 40, 2, &first, &count));
    assert_true(cpu_parts_take(&parts, 7, 1, 3, 9, &first, &count)); /* part 3 of the next stage */
    assert_int_equal(first, 2);
    assert_int_equal(count, 1);
    assert_false(cpu_parts_take(&parts, 0, 0, 40, 2, &first, &count)); /* that stage is over */
}

UNIT_MAIN(NULL, NULL)
