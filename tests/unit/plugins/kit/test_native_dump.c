/* HAL_DUMP=native, as plugins follow it: asked for or not, a heading, and one line of the log for
 * each line of the code. */

#include "unit.h"
#include <kit/native_dump.h>
#include <stdlib.h>
#include <string.h>

static char heard[8][1200];
static int count;

static void hear(const hal_host *host, uint32_t level, const char *message)
{
    assert_int_equal(level, HAL_LOG_INFO);
    assert_true(count < 8 && strlen(message) < sizeof heard[0]);
    strcpy(heard[count++], message);
}

static const hal_host the_host = {.size = sizeof the_host, .log = hear};

static int nothing_heard(void **state)
{
    count = 0;
    return 0;
}

TEST_WITH(only_when_asked_for, nothing_heard, NULL)
{
    unsetenv("HAL_DUMP");
    assert_false(kit_native_dump_begin(&the_host, "blur", "card"));
    setenv("HAL_DUMP", "ir,batch", 1);
    assert_false(kit_native_dump_begin(&the_host, "blur", "card"));
    assert_int_equal(count, 0);
    setenv("HAL_DUMP", "ir,native", 1);
    assert_true(kit_native_dump_begin(&the_host, "blur", "card"));
    assert_int_equal(count, 1);
    assert_string_equal(heard[0], "kernel blur for card:");
}

TEST_WITH(line_by_line, nothing_heard, NULL)
{
    kit_native_dump_text(&the_host, "first\n\n  third %s\nlast");
    assert_int_equal(count, 4);
    assert_string_equal(heard[0], "first");
    assert_string_equal(heard[1], "");
    assert_string_equal(heard[2], "  third %s");
    assert_string_equal(heard[3], "last");
    kit_native_dump_text(&the_host, "");
    assert_int_equal(count, 4);
}

/* A line too long for the log is cut, and the next line is complete. */
TEST_WITH(long_lines, nothing_heard, NULL)
{
    char code[3000];
    memset(code, 'x', sizeof code);
    strcpy(code + 2500, "\nend");
    kit_native_dump_text(&the_host, code);
    assert_int_equal(count, 2);
    assert_int_equal(strspn(heard[0], "x"), strlen(heard[0]));
    assert_true(strlen(heard[0]) > 1000);
    assert_string_equal(heard[1], "end");
}

UNIT_MAIN(NULL, NULL)
