/* Copies by several threads: every byte, and none beyond, of any number. */
#include "unit.h"
#include "base/copy_team.h"
#include "base/platform.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* Bytes of a copy, at most; those of a transfer with one helper, and with all. */
enum { MOST = 5 << 20, EDGE = 64, ONE_HELPER = 16 << 20, ALL_HELPERS = 64 << 20 };

static uint8_t source[MOST], target[MOST + 2 * EDGE];

static void expect_copy(hal_copy_team *team, uint64_t bytes, uint8_t mark)
{
    memset(target, mark, sizeof target);
    hal_copy_team_copy(team, target + EDGE, source, bytes);
    assert_memory_equal(target + EDGE, source, bytes);
    for (int i = 0; i < EDGE; i++) {
        assert_int_equal(target[i], mark);
        assert_int_equal(target[EDGE + bytes + (uint64_t)i], mark);
    }
}

TEST(copies_every_byte)
{
    static const uint64_t sizes[] = {0, 1, 63, 262143, 262144, 262145, 1000003, MOST - 1, MOST};
    for (size_t i = 0; i < MOST; i++) {
        source[i] = (uint8_t)(i * 2654435761u >> 9);
    }
    hal_copy_team *team = hal_copy_team_begin(ALL_HELPERS);
    for (int round = 0; round < 30; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            expect_copy(team, sizes[i], (uint8_t)(round + 1));
        }
    }
    hal_copy_team_end(team);
}

TEST(copies_alone)
{
    assert_null(hal_copy_team_begin(4096));
    assert_null(hal_copy_team_begin(ONE_HELPER - 1));
    expect_copy(NULL, 1000003, 9);
    hal_copy_team_end(NULL);
}

TEST(has_helpers_from_16_mib_on)
{
    hal_copy_team *team = hal_copy_team_begin(ONE_HELPER);
    assert_int_equal(team != NULL, hal_processor_count() > 1);
    expect_copy(team, MOST, 5);
    hal_copy_team_end(team);
}

/* Signals stay with the threads of the program. */
TEST(takes_no_signals)
{
    for (int i = 0; i < 100; i++) {
        hal_copy_team_end(hal_copy_team_begin(ALL_HELPERS));
    }
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
}

UNIT_MAIN(NULL, NULL)
