/* Plugin files of all kinds: what becomes of each and what is said about it. */
#include "mock_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/halyard-loader-XXXXXX";

/* The one plugin of the path that is not beside the library. */
static const hal_plugin_report *look(const char *path, hal_registry_report **report)
{
    setenv("HAL_PLUGIN_PATH", path, 1);
    assert_int_equal(hal_registry_inspect(report), HAL_OK);
    assert_true((*report)->plugin_count > 0);
    return &(*report)->plugins[0];
}

static void expect(const char *path, hal_status status, const char *words)
{
    hal_registry_report *report = NULL;
    const hal_plugin_report *plugin = look(path, &report);
    assert_int_equal(plugin->status, status);
    if (!strstr(plugin->message, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, plugin->message);
    }
    if (status != HAL_OK) {
        assert_int_equal(plugin->device_count, 0);
        if (!strstr(plugin->message, plugin->path) &&
            (!plugin->name[0] || !strstr(plugin->message, plugin->name))) {
            fail_msg("neither path nor name is in \"%s\"", plugin->message);
        }
    }
    hal_registry_report_destroy(report);
}

static void make_file(const char *name, const char *content)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void expect_file(const char *name, hal_status status, const char *words)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    expect(path, status, words);
    unlink(path);
}

static void files_that_are_no_library(void **state)
{
    (void)state;
    char path[128];
    make_file("hal_text.so", "this is no shared object at all, only a line of text that is long enough to\n"
                              "hold the header of one\n");
    expect_file("hal_text.so", HAL_ERROR_BAD_PLUGIN, "invalid ELF header");
    make_file("hal_empty.so", "");
    expect_file("hal_empty.so", HAL_ERROR_BAD_PLUGIN, "file too short");
    snprintf(path, sizeof path, "%s/hal_dangling.so", folder);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    expect(folder, HAL_ERROR_NOT_FOUND, "a link that leads nowhere");
    unlink(path);
    snprintf(path, sizeof path, "%s/hal_folder.so", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    expect(folder, HAL_ERROR_BAD_PLUGIN, "hal_folder.so");
    rmdir(path);
    expect("/nowhere/hal_missing.so", HAL_ERROR_NOT_FOUND, "no such file");
}

static void libraries_that_are_no_plugin(void **state)
{
    (void)state;
    expect(TEST_PLUGINS "/no_symbol", HAL_ERROR_BAD_PLUGIN, "hal_plugin_query");
    expect(TEST_PLUGINS "/needy", HAL_ERROR_LIBRARY_MISSING, "libneeded.so");
}

static void tables_that_do_not_fit(void **state)
{
    (void)state;
    expect(TEST_PLUGINS "/no_table", HAL_ERROR_TOO_NEW, "gives no table");
    char words[64];
    snprintf(words, sizeof words, "this hal has %u.%u", HAL_PLUGIN_ABI_MAJOR, HAL_PLUGIN_ABI_MINOR);
    expect(TEST_PLUGINS "/newer", HAL_ERROR_TOO_NEW, "interface 7.3");
    expect(TEST_PLUGINS "/newer", HAL_ERROR_TOO_NEW, words);
    expect(TEST_PLUGINS "/other_major", HAL_ERROR_TOO_NEW, "interface 9.");
    expect(TEST_PLUGINS "/older", HAL_ERROR_TOO_OLD, "interface 0.4");
    expect(TEST_PLUGINS "/older", HAL_ERROR_TOO_OLD, words);
    expect(TEST_PLUGINS "/cut", HAL_ERROR_BAD_PLUGIN, "no entry 'submit'");
    expect(TEST_PLUGINS "/short", HAL_ERROR_BAD_PLUGIN, "no entry 'submit'");
    expect(TEST_PLUGINS "/missing", HAL_ERROR_BAD_PLUGIN, "no entry 'kernel_destroy'");
    expect(TEST_PLUGINS "/tiny", HAL_ERROR_BAD_PLUGIN, "size of 4 bytes");
    expect(TEST_PLUGINS "/bad_name", HAL_ERROR_BAD_PLUGIN, "\"Broken!\"");
    expect(TEST_PLUGINS "/other_name", HAL_ERROR_BAD_PLUGIN, "calls itself somebody");
}

static void enumerations_that_fail(void **state)
{
    (void)state;
    expect(TEST_PLUGINS "/no_device", HAL_ERROR_NO_DEVICE, "finds no device");
    expect(TEST_PLUGINS "/no_driver", HAL_ERROR_DRIVER_MISSING,
           "the driver of nothing is not installed");
    expect(TEST_PLUGINS "/bad_status", HAL_ERROR_INTERNAL, "4711");
    expect(TEST_PLUGINS "/bad_info", HAL_ERROR_BAD_PLUGIN, "binding_alignment");
    expect(TEST_PLUGINS "/bad_stride", HAL_ERROR_BAD_PLUGIN, "it is 3 bytes long");
    expect(TEST_PLUGINS "/unwritten", HAL_ERROR_BAD_PLUGIN, "device 0: its record states that it is 0");
    expect(TEST_PLUGINS "/many", HAL_ERROR_BAD_PLUGIN, "4294967295 in the end, or more than 4096");
    expect(TEST_PLUGINS "/counts", HAL_ERROR_BAD_PLUGIN, "a larger number of devices each time");
}

static void a_device_that_goes_while_it_is_counted(void **state)
{
    (void)state;
    hal_registry_report *report = NULL;
    const hal_plugin_report *plugin = look(TEST_PLUGINS "/fewer", &report);
    assert_int_equal(plugin->status, HAL_OK);
    assert_int_equal(plugin->device_count, 1);
    hal_registry_report_destroy(report);
}

/* Strings without an end, every bit set, limits as large as numbers are. */
static void claims_are_cut_down_to_what_can_be(void **state)
{
    (void)state;
    hal_registry_report *report = NULL;
    const hal_plugin_report *plugin = look(TEST_PLUGINS "/absurd", &report);
    assert_int_equal(plugin->status, HAL_OK);
    const hal_device_info *info = plugin->devices;
    assert_int_equal(strlen(info->name), sizeof info->name - 1);
    assert_int_equal(info->name[0], '?');
    assert_int_equal(strlen(info->id), sizeof info->id - 1);
    assert_int_equal(strlen(info->driver), sizeof info->driver - 1);
    assert_int_equal(strlen(info->architecture), sizeof info->architecture - 1);
    assert_int_equal(info->max_bindings, HAL_IR_MAX_BINDINGS);
    assert_int_equal(info->max_group_items, HAL_IR_MAX_GROUP_ITEMS);
    assert_int_equal(info->preferred_group, HAL_IR_MAX_GROUP_ITEMS);
    assert_int_equal(info->shared_bytes, HAL_IR_MAX_SHARED_BYTES);
    assert_int_equal(info->exactness, 15);
    assert_int_equal(info->abilities & HAL_ABILITY_TIMESTAMPS, 0);
    hal_registry_report_destroy(report);
}

static void older_minors_work_and_their_tails_are_not_read(void **state)
{
    (void)state;
    expect(TEST_PLUGINS "/old_minor", HAL_OK, "");
}

static void a_bad_plugin_hides_no_other(void **state)
{
    (void)state;
    hal_registry_report *report = NULL;
    look(TEST_PLUGINS "/short:" TEST_PLUGINS "/mock", &report);
    assert_true(report->plugin_count >= 3);
    assert_int_equal(report->plugins[0].status, HAL_ERROR_BAD_PLUGIN);
    assert_int_equal(report->plugins[1].status, HAL_OK);
    assert_string_equal(report->plugins[1].name, "mock");
    assert_int_equal(report->plugins[1].device_count, 2);
    assert_string_equal(report->plugins[2].name, "mock_two");
    assert_string_equal(report->paths[0], TEST_PLUGINS "/short");
    assert_string_equal(report->paths[1], TEST_PLUGINS "/mock");
    hal_registry_report_destroy(report);
}

static void the_first_of_a_name_counts(void **state)
{
    (void)state;
    hal_registry_report *report = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/hal_mock.so", folder);
    assert_int_equal(symlink(TEST_PLUGINS "/mock/hal_mock.so", path), 0);
    char search[512];
    snprintf(search, sizeof search, "%s:%s", TEST_PLUGINS "/mock", folder);
    look(search, &report);
    assert_int_equal(report->plugins[0].status, HAL_OK);
    assert_string_equal(report->plugins[2].path, path);
    assert_int_equal(report->plugins[2].status, HAL_ERROR_INVALID_STATE);
    assert_non_null(strstr(report->plugins[2].message, "not used"));
    hal_registry_report_destroy(report);
    unlink(path);
}

static void own_folder_is_searched_last(void **state)
{
    (void)state;
    hal_registry_report *report = NULL;
    look(TEST_PLUGINS "/mock", &report);
    assert_int_equal(report->path_count, 2);
    assert_non_null(strstr(report->paths[1], "/halyard/plugins"));
    assert_int_equal(report->paths[1][0], '/');
    hal_registry_report_destroy(report);
    unsetenv("HAL_PLUGIN_PATH");
    assert_int_equal(hal_registry_inspect(&report), HAL_OK);
    assert_int_equal(report->path_count, 1);
    hal_registry_report_destroy(report);
}

static void relative_paths_are_made_whole(void **state)
{
    (void)state;
    char before[512];
    hal_registry_report *report = NULL;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(TEST_PLUGINS), 0);
    look("mock/hal_mock.so::mock", &report);
    assert_int_equal(report->plugins[0].status, HAL_OK);
    assert_string_equal(report->paths[0], TEST_PLUGINS "/mock/hal_mock.so");
    assert_int_equal(report->path_count, 3);
    hal_registry_report_destroy(report);
    assert_int_equal(chdir(before), 0);
}

static int begin(void **state)
{
    (void)state;
    unsetenv("HAL_BACKEND");
    return mkdtemp(folder) ? 0 : 1;
}

static int end(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_no_library),
        cmocka_unit_test(libraries_that_are_no_plugin),
        cmocka_unit_test(tables_that_do_not_fit),
        cmocka_unit_test(enumerations_that_fail),
        cmocka_unit_test(a_device_that_goes_while_it_is_counted),
        cmocka_unit_test(claims_are_cut_down_to_what_can_be),
        cmocka_unit_test(older_minors_work_and_their_tails_are_not_read),
        cmocka_unit_test(a_bad_plugin_hides_no_other),
        cmocka_unit_test(the_first_of_a_name_counts),
        cmocka_unit_test(own_folder_is_searched_last),
        cmocka_unit_test(relative_paths_are_made_whole),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
