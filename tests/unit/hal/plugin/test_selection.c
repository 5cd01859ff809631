/* Selections: HAL_BACKEND's grammar, the default choice and every sentence about a device that is
 * not there. */
#include "mock_sides.h"
#include <sys/wait.h>
#include <unistd.h>

static void opens(const char *selection, const char *plugin, uint32_t index)
{
    hal_device *device = mock_open(selection);
    assert_string_equal(hal_device_get_plugin_name(device), plugin);
    assert_int_equal(hal_device_get_index(device), index);
    hal_device_release(device);
}

static void fails(const char *selection, hal_status status, const char *words)
{
    hal_device *device = (hal_device *)1;
    assert_fails(hal_device_open(selection, &device), status, words);
    assert_null(device);
}

static void items_name_devices(void **state)
{
    opens("mock", "mock", 0);
    opens("mock:1", "mock", 1);
    opens("mock_two:0", "mock_two", 0);
    opens("mock:device 1", "mock", 1);
    opens("mock:DEVICE 1 OF", "mock", 1);
    opens("id:mock_two-id-1", "mock_two", 1);
    opens("id:MOCK-ID-0", "mock", 0);
    opens("  mock_two:1 ", "mock_two", 1);
}

static void lists_are_in_order_of_preference(void **state)
{
    opens("nobody,mock:7, mock:1,mock_two", "mock", 1);
    opens("id:nothing,auto", "mock", 0);
}

static void the_call_wins_over_the_variable(void **state)
{
    setenv("HAL_BACKEND", "mock_two:1", 1);
    opens(NULL, "mock_two", 1);
    opens("mock", "mock", 0);
    setenv("HAL_BACKEND", "nobody", 1);
    fails(NULL, HAL_ERROR_NOT_FOUND, "HAL_BACKEND \"nobody\"");
    setenv("HAL_BACKEND", "", 1);
    opens(NULL, "mock", 0);
    unsetenv("HAL_BACKEND");
    opens(NULL, "mock", 0);
}

/* Promises 1 and 2: an error with what was tried and where. */
static void what_is_not_there_is_said(void **state)
{
    fails("nobody", HAL_ERROR_NOT_FOUND, "expected the name of a plugin, got \"nobody\"");
    fails("nobody", HAL_ERROR_NOT_FOUND, TEST_PLUGINS "/mock");
    fails("nobody", HAL_ERROR_NOT_FOUND, "hal_mock.so, hal_mock_two.so");
    fails("mock:2", HAL_ERROR_NOT_FOUND, "got \"2\"; its devices are 0 \"Mock device 0");
    fails("mock:99999999999999999999", HAL_ERROR_NOT_FOUND,
          "expected the index of a device, got \"9999");
    fails("mock:radeon", HAL_ERROR_NOT_FOUND, "expected a part of a device's name, got \"radeon\"");
    fails("mock:radeon", HAL_ERROR_NOT_FOUND, "1 \"Mock device 1 of mock\"");
    fails("id:nothing", HAL_ERROR_NOT_FOUND, "mock:1 is id:mock-id-1");
    fails("nobody,mock:7", HAL_ERROR_NOT_FOUND, "; then ");
}

static void what_cannot_be_read_is_said(void **state)
{
    fails("", HAL_ERROR_INVALID_ARGUMENT, "got an empty item");
    fails(",", HAL_ERROR_INVALID_ARGUMENT, "got an empty item");
    fails(" ", HAL_ERROR_INVALID_ARGUMENT, "got an empty item");
    fails("mock:", HAL_ERROR_INVALID_ARGUMENT, "after the colon, got \"mock:\"");
    fails("id", HAL_ERROR_INVALID_ARGUMENT, "id:text");
    fails("auto:1", HAL_ERROR_INVALID_ARGUMENT, "expected auto without an index");
    fails("Mock", HAL_ERROR_INVALID_ARGUMENT, "expected a plugin's name of lower case letters");
    fails("../mock", HAL_ERROR_INVALID_ARGUMENT, "expected a plugin's name of lower case letters");
    fails("mock/../x", HAL_ERROR_INVALID_ARGUMENT,
          "expected a plugin's name of lower case letters");
    char text[400];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    fails(text, HAL_ERROR_INVALID_ARGUMENT, "got a longer one");
    assert_fails(hal_device_open("mock", NULL), HAL_ERROR_INVALID_ARGUMENT,
                 "hal_device_open: device: expected a valid pointer, got null");
}

static void the_first_failure_gives_the_status(void **state)
{
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/no_driver:" TEST_PLUGINS "/mock", 1);
    fails("no_driver,nobody", HAL_ERROR_DRIVER_MISSING, "the driver of nothing");
    fails("nobody,no_driver", HAL_ERROR_NOT_FOUND, "the driver of nothing");
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock", 1);
}

static void opening_may_fail(void **state)
{
    mock->fail_in[MOCK_DEVICE_OPEN] = 1;
    mock->fail_with = HAL_ERROR_TOO_OLD;
    fails("mock:1", HAL_ERROR_TOO_OLD, "the mock was told to fail");
    mock->fail_in[MOCK_DEVICE_OPEN] = 1;
    opens("mock:1,mock_two", "mock_two", 0);
    mock->fail_in[MOCK_DEVICE_OPEN] = 1; /* auto continues to the next */
    opens("auto", "mock", 1);
}

static void plugins_that_are_not_asked_for_stay_asleep(void **state)
{
    const uint32_t before = two->calls[MOCK_ENUMERATE];
    opens("mock", "mock", 0);
    fails("nobody", HAL_ERROR_NOT_FOUND, "");
    assert_int_equal(two->calls[MOCK_ENUMERATE], before);
}

static void opened_twice_is_one_device(void **state)
{
    const uint32_t before = mock->calls[MOCK_DEVICE_OPEN];
    hal_device *one = mock_open("mock:1");
    hal_device *other = mock_open("id:mock-id-1");
    hal_device *third = mock_open("mock:0");
    assert_ptr_equal(one, other);
    assert_ptr_not_equal(one, third);
    assert_int_equal(mock->calls[MOCK_DEVICE_OPEN], before + 2);
    hal_device_release(third);
    hal_device_release(one);
    assert_int_equal(mock->live_devices, 1);
    hal_device_release(other);
    mock_is_clean(mock);
}

static void named_files_are_found_by_their_table(void **state)
{
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock/hal_mock_two.so", 1);
    opens("mock_two", "mock_two", 0);
    fails("mock", HAL_ERROR_NOT_FOUND, "expected the name of a plugin, got \"mock\"");
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock", 1);
}

/* Promise 12: software is the last resort. */
static void auto_prefers_hardware(void **state)
{
    mock->infos[0].kind = HAL_DEVICE_CPU;
    mock->infos[1].kind = HAL_DEVICE_SOFTWARE;
    two->infos[0].kind = HAL_DEVICE_INTEGRATED;
    hal_registry_report *report = NULL;
    unsetenv("HAL_BACKEND");
    /* The kinds are taken at the first enumeration: this test comes first. */
    assert_ok(hal_registry_report_create(&report));
    assert_string_equal(report->choice, "mock_two:1");
    assert_non_null(strstr(report->reasoning, "mock_two:1: chosen by default choice"));
    assert_non_null(strstr(report->reasoning, "mock:0: not chosen: the processor comes after"));
    assert_non_null(strstr(report->reasoning, "mock:1: not chosen: software devices come last"));
    assert_non_null(strstr(report->reasoning, "mock_two:0: not chosen: an integrated device"));
    hal_registry_report_destroy(report);
    opens(NULL, "mock_two", 1);
    opens("mock_two", "mock_two", 1); /* a driver lists what is integrated, or a processor, first */
    opens("mock", "mock", 0);
    setenv("HAL_BACKEND", "nobody,mock:1", 1);
    assert_ok(hal_registry_report_create(&report));
    assert_string_equal(report->choice, "mock:1");
    assert_non_null(strstr(report->reasoning, "mock:1: chosen by HAL_BACKEND, item mock:1"));
    assert_non_null(strstr(report->reasoning, "expected the name of a plugin, got \"nobody\""));
    hal_registry_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test_setup(auto_prefers_hardware, sides_reset)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(plugins_that_are_not_asked_for_stay_asleep, sides_reset),
        cmocka_unit_test_setup(items_name_devices, sides_reset),
        cmocka_unit_test_setup(lists_are_in_order_of_preference, sides_reset),
        cmocka_unit_test_setup(the_call_wins_over_the_variable, sides_reset),
        cmocka_unit_test_setup(what_is_not_there_is_said, sides_reset),
        cmocka_unit_test_setup(what_cannot_be_read_is_said, sides_reset),
        cmocka_unit_test_setup(the_first_failure_gives_the_status, sides_reset),
        cmocka_unit_test_setup(opening_may_fail, sides_reset),
        cmocka_unit_test_setup(opened_twice_is_one_device, sides_reset),
        cmocka_unit_test_setup(named_files_are_found_by_their_table, sides_reset),
    };
    /* Devices are enumerated once in a process: other kinds need one of their own. */
    const pid_t child = fork();
    if (child == 0) {
        exit(cmocka_run_group_tests(first, sides_begin, NULL));
    }
    int kinds = -1;
    if (child < 0 || waitpid(child, &kinds, 0) != child) {
        return 1;
    }
    return cmocka_run_group_tests(tests, sides_begin, NULL) + (kinds != 0);
}
