/* Copies by several threads: every byte, and none beyond, of any number. */
#include "unit.h"
#include "base/copy_workers.h"
#include "base/platform.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* Bytes of a copy, at most; those of a transfer with one helper, and with all. */
enum { MOST = 5 << 20, EDGE = 64, ONE_HELPER = 2 << 20, ALL_HELPERS = 64 << 20 };

static uint8_t source[MOST], target[MOST + 2 * EDGE];

static void expect_copy(hal_copy_workers *workers, uint64_t bytes, uint8_t mark)
{
    memset(target, mark, sizeof target);
    hal_copy_workers_copy(workers, target + EDGE, source, bytes);
    assert_memory_equal(target + EDGE, source, bytes);
    for (int i = 0; i < EDGE; i++) {
        assert_int_equal(target[i], mark);
        assert_int_equal(target[EDGE + bytes + (uint64_t)i], mark);
    }
}

static void fill_source(void)
{
    for (size_t i = 0; i < MOST; i++) {
        source[i] = (uint8_t)(i * 2654435761u >> 9);
    }
}

TEST(copies_every_byte)
{
    static const uint64_t sizes[] = {0, 1, 63, 65535, 65536, 65537, 1000003, MOST - 1, MOST};
    hal_copy_workers workers;
    fill_source();
    hal_copy_workers_begin(&workers, ALL_HELPERS);
    for (int round = 0; round < 30; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            expect_copy(&workers, sizes[i], (uint8_t)(round + 1));
        }
    }
    hal_copy_workers_end(&workers);
}

/* As transfers do: the next copy is added before one is finished. */
TEST(copies_overlap)
{
    enum { PIECE = 300001, PIECES = MOST / PIECE };
    hal_copy_workers workers;
    fill_source();
    for (int helpers = 0; helpers < 2; helpers++) {
        hal_copy_workers_begin(&workers, helpers ? ALL_HELPERS : 1);
        for (int round = 0; round < 20; round++) {
            memset(target, round + 1, sizeof target);
            hal_copy_workers_add(&workers, target, source, PIECE);
            for (int i = 0; i < PIECES; i++) {
                const size_t next = (size_t)(i + 1) * PIECE;
                if (i + 1 < PIECES) {
                    hal_copy_workers_add(&workers, target + next, source + next, PIECE);
                }
                hal_copy_workers_finish(&workers);
                assert_memory_equal(target + next - PIECE, source + next - PIECE, PIECE);
            }
            assert_memory_equal(target, source, PIECES * PIECE);
            assert_int_equal(target[PIECES * PIECE], round + 1);
        }
        hal_copy_workers_end(&workers);
    }
}

/* What is added is finished by the end. */
TEST(ends_after_copies)
{
    hal_copy_workers workers;
    fill_source();
    memset(target, 0, sizeof target);
    hal_copy_workers_begin(&workers, ALL_HELPERS);
    hal_copy_workers_add(&workers, target, source, MOST);
    hal_copy_workers_end(&workers);
    if (workers.helper_count > 0) {
        assert_memory_equal(target, source, MOST);
    }
}

TEST(copies_alone)
{
    hal_copy_workers workers;
    hal_copy_workers_begin(&workers, ONE_HELPER - 1);
    assert_int_equal(workers.helper_count, 0);
    expect_copy(&workers, 1000003, 9);
    hal_copy_workers_end(&workers);
}

TEST(has_helpers_from_2_mib_on)
{
    hal_copy_workers workers;
    hal_copy_workers_begin(&workers, ONE_HELPER);
    assert_int_equal(workers.helper_count, hal_processor_count() > 1);
    expect_copy(&workers, MOST, 5);
    hal_copy_workers_end(&workers);
}

/* Signals stay with the threads of the program. */
TEST(takes_no_signals)
{
    for (int i = 0; i < 100; i++) {
        hal_copy_workers workers;
        hal_copy_workers_begin(&workers, ALL_HELPERS);
        hal_copy_workers_end(&workers);
    }
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
}

UNIT_MAIN(NULL, NULL)
