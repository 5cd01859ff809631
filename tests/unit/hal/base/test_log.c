/* The log: quiet by default, levels by variable and callback, dumps of IR. */
#include "mock_fixture.h"
#include "scratch.h"

#include "base/log.h"

#include <unistd.h>

static mock_state *mock;
static char seen[65536];
static uint32_t seen_level;

static void collect(void *user, hal_log_level level, const char *message)
{
    assert_ptr_equal(user, seen);
    seen_level = level;
    strncat(seen, message, sizeof seen - strlen(seen) - 2);
    strcat(seen, "\n");
}

TEST(levels_are_kept)
{
    seen[0] = 0;
    hal_log_set_callback(collect, seen, HAL_LOG_WARN);
    assert_true(hal_log_is_enabled(HAL_LOG_ERROR));
    assert_true(hal_log_is_enabled(HAL_LOG_WARN));
    assert_false(hal_log_is_enabled(HAL_LOG_INFO));
    hal_log(HAL_LOG_INFO, "not %s", "this");
    hal_log(HAL_LOG_WARN, "but %s", "that");
    assert_string_equal(seen, "but that\n");
    assert_int_equal(seen_level, HAL_LOG_WARN);
}

TEST(the_variable_counts_without_a_level)
{
    setenv("HAL_LOG", "debug", 1);
    hal_log_set_callback(collect, seen, 0);
    assert_true(hal_log_is_enabled(HAL_LOG_DEBUG));
    setenv("HAL_LOG", "loud", 1);
    hal_log_set_callback(collect, seen, 0);
    assert_false(hal_log_is_enabled(HAL_LOG_ERROR));
    hal_device *device = NULL;
    assert_fails(hal_device_open("mock", &device), HAL_ERROR_INVALID_ARGUMENT,
                 "HAL_LOG: expected error, warn, info or debug, got \"loud\"");
    assert_null(device);
    setenv("HAL_LOG", "", 1);
    hal_device_release(mock_open("mock"));
    unsetenv("HAL_LOG");
    hal_log_set_callback(NULL, NULL, 0);
    assert_false(hal_log_is_enabled(HAL_LOG_ERROR));
}

TEST(plugins_log_through_hal)
{
    seen[0] = 0;
    hal_log_set_callback(collect, seen, HAL_LOG_DEBUG);
    hal_device *device = mock_open("mock");
    mock->host->log(mock->host, HAL_LOG_INFO, "from the plugin");
    mock->host->log(mock->host, 99, "as chatter");
    mock->host->log(mock->host, 0, "as an error");
    mock->host->log(mock->host, HAL_LOG_INFO, NULL);
    assert_non_null(strstr(seen, "from the plugin\nas chatter\nas an error\n"));
    assert_int_equal(seen_level, HAL_LOG_ERROR);
    assert_non_null(strstr(seen, "opened mock:0"));
    hal_device_release(device);
    hal_log_set_callback(NULL, NULL, 0);
}

TEST(dumps_show_both_sides_whatever_the_level)
{
    seen[0] = 0;
    hal_device *device = mock_open("mock");
    hal_log_set_callback(collect, seen, HAL_LOG_ERROR);
    hal_kernel_release(mock_kernel(device, 1));
    assert_string_equal(seen, "");
    setenv("HAL_DUMP", "native,ir", 1);
    hal_kernel_release(mock_kernel(device, 2));
    unsetenv("HAL_DUMP");
    assert_non_null(strstr(seen, "IR as built:\n"));
    assert_non_null(strstr(seen, "IR legalised:\n"));
    assert_non_null(strstr(seen, "shift"));
    hal_log_set_callback(NULL, NULL, 0);
    hal_device_release(device);
}

/* Promise 4: the library prints nothing by itself. */
TEST(nothing_is_printed_unless_asked)
{
    char path[SCRATCH_BYTES];
    const int file = scratch_file(path, "log");
    assert_true(file >= 0);
    unlink(path);
    fflush(stderr);
    const int kept = dup(2);
    dup2(file, 2);
    hal_device *device = NULL;
    hal_device_open("nobody", &device);
    hal_device_release(mock_open("mock"));
    fflush(stderr);
    const off_t quiet = lseek(file, 0, SEEK_END);
    hal_log_set_callback(NULL, NULL, HAL_LOG_INFO);
    hal_device_release(mock_open("mock"));
    fflush(stderr);
    const off_t loud = lseek(file, 0, SEEK_END);
    hal_log_set_callback(NULL, NULL, 0);
    dup2(kept, 2);
    close(kept);
    close(file);
    assert_int_equal(quiet, 0);
    assert_true(loud > 0);
}

static int begin(void **state)
{
    mock = mock_find("mock");
    unsetenv("HAL_LOG");
    return mock_begin(state);
}

UNIT_MAIN(begin, NULL)
