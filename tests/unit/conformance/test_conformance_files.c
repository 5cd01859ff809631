/* Files are told apart, so that those which other programs remove hide none that were added. */
#include <stdio.h>

#include "hal/files.h"
#include "scratch.h"
#include "unit.h"

enum { FILES = 20 };

static char paths[2 * FILES][SCRATCH_BYTES];

static void make_files(int first)
{
    for (int i = first; i < first + FILES; i++) {
        const int file = scratch_file(paths[i], "seen");
        assert_true(file >= 0);
        close(file);
    }
}

static void remove_files(int first)
{
    for (int i = first; i < first + FILES; i++) {
        unlink(paths[i]);
    }
}

TEST(removed_files_hide_no_added_ones)
{
    static files seen;
    make_files(0);
    const uint32_t before = files_seen(&seen);
    assert_true(before >= FILES);
    make_files(FILES);
    remove_files(0);
    const uint32_t after = files_seen(&seen);
    remove_files(FILES);
    assert_true(after >= before + FILES);
    assert_true(files_seen(&seen) >= after);
}

/* More than the set holds are not counted, and the look ends. */
TEST(a_full_set_counts_no_more)
{
    static files seen = {.count = FILES_MOST};
    make_files(0);
    assert_int_equal(files_seen(&seen), FILES_MOST);
    remove_files(0);
}

UNIT_MAIN(NULL, NULL)
