/* The program hal-info: what it prints, its exit status, that its JSON is JSON, and that plugins
 * which crash hide no others (promise 9). */
#include "assert_json.h"
#include "mock_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static char output[1 << 20];

/* Runs the program with a plugin path; its exit status. */
static int run(const char *path, const char *arguments)
{
    char command[2048];
    snprintf(command, sizeof command, "HAL_PLUGIN_PATH='%s' " EMULATOR " '%s' %s 2>&1", path,
             HAL_INFO, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = 0;
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(const char *words)
{
    if (!strstr(output, words)) {
        fail_msg("\"%s\" is not in:\n%s", words, output);
    }
}

TEST(devices_and_failures_are_listed)
{
    assert_int_equal(run(TEST_PLUGINS "/mock:" TEST_PLUGINS "/no_driver:" TEST_PLUGINS "/needy",
                         ""),
                     0);
    expect("mock:0  Mock device 0 of mock\n");
    expect("mock_two:1  Mock device 1 of mock_two\n");
    expect("largest binding      256.0 MiB");
    expect("storage types        bool i8 u8");
    expect("not usable: HAL_ERROR_DRIVER_MISSING");
    expect("the driver of nothing is not installed");
    expect("not usable: HAL_ERROR_LIBRARY_MISSING");
    expect("libneeded.so");
    expect("Choice without a selection: mock:0\n");
    expect("mock:1: not chosen: ");
    expect("Searched\n  " TEST_PLUGINS "/mock\n  " TEST_PLUGINS "/no_driver\n");
    expect("/halyard/plugins\n");
}

TEST(json_is_json)
{
    assert_int_equal(run(TEST_PLUGINS "/mock:" TEST_PLUGINS "/bad_name:" TEST_PLUGINS "/short",
                         "--json"),
                     0);
    assert_json(output);
    expect("\"choice\": \"mock:0\"");
    expect("\\\"Broken!\\\"");
    expect("\"status\": \"HAL_ERROR_BAD_PLUGIN\"");
    expect("\"max_grid\": [65535, 65535, 65535]");
    expect("\"in_use_bytes\": 0");
}

TEST(bad_arguments_are_refused)
{
    assert_int_equal(run("", "--wrong"), 2);
    expect("hal-info: expected an option of those below, got --wrong");
    expect("hal-info [--json] [--peaks]");
    assert_int_equal(run("", "--help"), 0);
    expect("hal-info [--json] [--peaks]");
}

TEST(plugins_that_end_the_process_hide_no_other)
{
    assert_int_equal(run(TEST_PLUGINS "/rude/hal_crashes.so:" TEST_PLUGINS
                                      "/rude/hal_exits.so:" TEST_PLUGINS "/mock",
                         ""),
                     0);
    expect("hal_crashes.so: crashed (signal 6");
    expect("hal_exits.so: ended the process with status 0");
    expect("mock:0  Mock device 0 of mock\n");
    expect("Choice without a selection: mock:0\n");
}

/* Programs that ignore SIGCHLD pass that on. */
TEST(crashes_are_told_where_children_have_no_status)
{
    signal(SIGCHLD, SIG_IGN);
    char command[1024];
    snprintf(command, sizeof command,
             "HAL_PLUGIN_PATH='" TEST_PLUGINS "/rude/hal_crashes.so' " EMULATOR " '%s' 2>&1",
             HAL_INFO);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = 0;
    pclose(pipe);
    signal(SIGCHLD, SIG_DFL);
    expect("hal_crashes.so: crashed (signal 6");
}

TEST(a_selection_that_fits_nothing_is_said_first)
{
    setenv("HAL_BACKEND", "nobody", 1);
    assert_int_equal(run(TEST_PLUGINS "/mock", "--json"), 1);
    assert_json(output);
    assert_int_equal(run(TEST_PLUGINS "/mock", ""), 1);
    assert_memory_equal(output, "HAL_BACKEND=nobody names no usable device", 41);
    expect("Choice without a selection: none");
    expect("expected the name of a plugin, got \"nobody\"");
    unsetenv("HAL_BACKEND");
}

static int begin(void **state)
{
    unsetenv("HAL_BACKEND");
    unsetenv("HAL_LOG");
    return 0;
}

UNIT_MAIN(begin, NULL)
