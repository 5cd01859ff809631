/* Plugin files of all kinds: what becomes of each and what is said about it: the path and the
 * system loader's own words (promise 3), both versions of a newer major (promise 6), what it is
 * that is missing (promise 8), and that one bad file hides no other (promise 9). */
#include "mock_fixture.h"
#include "scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[SCRATCH_BYTES];

/* The one plugin of the path that is not next to the library. */
static const hal_plugin_report *look(const char *path, hal_registry_report **report)
{
    setenv("HAL_PLUGIN_PATH", path, 1);
    assert_ok(hal_registry_report_create(report));
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
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void expect_file(const char *name, hal_status status, const char *words)
{
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    expect(path, status, words);
    unlink(path);
}

TEST(files_that_are_no_library)
{
    char path[SCRATCH_BYTES + 64];
    make_file("hal_text.so",
              "this is no shared object at all, only a line of text that is long enough to\n"
              "hold the header of one\n");
    expect_file("hal_text.so", HAL_ERROR_BAD_PLUGIN, "invalid ELF header");
    make_file("hal_empty.so", "");
    expect_file("hal_empty.so", HAL_ERROR_BAD_PLUGIN, "file too short");
    snprintf(path, sizeof path, "%s/hal_dangling.so", folder);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    expect(folder, HAL_ERROR_NOT_FOUND, "a dangling link");
    unlink(path);
    snprintf(path, sizeof path, "%s/hal_folder.so", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    expect(folder, HAL_ERROR_BAD_PLUGIN, "hal_folder.so: expected a regular file, got a folder");
    rmdir(path);
    /* Opening a pipe that nobody writes to would wait for ever. */
    snprintf(path, sizeof path, "%s/hal_pipe.so", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_file("hal_pipe.so", HAL_ERROR_BAD_PLUGIN, "got a pipe");
    expect("/nowhere/hal_missing.so", HAL_ERROR_NOT_FOUND, "no such file");
}

TEST(a_file_that_may_not_be_read)
{
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/hal_secret.so", folder);
    make_file("hal_secret.so", "nobody reads this");
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(folder, 0711), 0);
    scratch_obey_modes(true);
    expect(path, HAL_ERROR_BAD_PLUGIN, "Permission denied");
    assert_int_equal(chmod(folder, 0), 0);
    expect(path, HAL_ERROR_NOT_FOUND, "Permission denied");
    assert_int_equal(chmod(folder, 0700), 0);
    scratch_obey_modes(false);
    unlink(path);
}

/* The first `bytes` bytes of the mock plugin, with byte `at` set, as hal_part.so. */
static void make_part(size_t bytes, long at, int value)
{
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/hal_part.so", folder);
    FILE *from = fopen(TEST_PLUGINS "/mock/hal_mock.so", "rb");
    FILE *to = fopen(path, "wb");
    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < bytes; i++) {
        const int byte = getc(from);
        if (byte == EOF) {
            break;
        }
        putc((long)i == at ? value : byte, to);
    }
    fclose(from);
    assert_int_equal(fclose(to), 0);
}

TEST(files_that_were_cut_off)
{
    static const size_t bytes[] = {128, 1024, 4096, 4097, 9000, 16384};
    make_part(20, -1, 0);
    expect_file("hal_part.so", HAL_ERROR_BAD_PLUGIN, "file too short");
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        make_part(bytes[i], -1, 0);
        expect_file("hal_part.so", HAL_ERROR_BAD_PLUGIN, "copy or install it again");
    }
}

TEST(libraries_of_another_machine)
{
    make_part(SIZE_MAX, 18, 0xf3); /* e_machine: RISC-V */
    expect_file("hal_part.so", HAL_ERROR_BAD_PLUGIN, "expected ELF machine");
    make_part(SIZE_MAX, 4, 1); /* e_ident: 32 bits */
    expect_file("hal_part.so", HAL_ERROR_BAD_PLUGIN, "wrong ELF class");
}

TEST(libraries_that_are_no_plugin)
{
    expect(TEST_PLUGINS "/no_symbol", HAL_ERROR_BAD_PLUGIN, "hal_plugin_create");
    expect(TEST_PLUGINS "/draft", HAL_ERROR_TOO_OLD,
           "of a draft of the plugin ABI; build it again");
    expect(TEST_PLUGINS "/needy", HAL_ERROR_LIBRARY_MISSING, "libneeded.so");
}

TEST(tables_that_do_not_fit)
{
    expect(TEST_PLUGINS "/no_table", HAL_ERROR_TOO_NEW, "expected a table for plugin ABI");
    char words[64];
    snprintf(words, sizeof words, "expected plugin ABI %u.%u", HAL_PLUGIN_ABI_MAJOR,
             HAL_PLUGIN_ABI_MINOR);
    expect(TEST_PLUGINS "/newer", HAL_ERROR_TOO_NEW, "got 7.3");
    expect(TEST_PLUGINS "/newer", HAL_ERROR_TOO_NEW, words);
    expect(TEST_PLUGINS "/other_major", HAL_ERROR_TOO_NEW, "got 9.");
    if (HAL_PLUGIN_ABI_MAJOR > 0) { /* there is no major before 0 */
        expect(TEST_PLUGINS "/older", HAL_ERROR_TOO_OLD, ".4");
        expect(TEST_PLUGINS "/older", HAL_ERROR_TOO_OLD, words);
    }
    expect(TEST_PLUGINS "/cut", HAL_ERROR_BAD_PLUGIN, "submit: expected a required entry");
    expect(TEST_PLUGINS "/short", HAL_ERROR_BAD_PLUGIN, "submit: expected a required entry");
    expect(TEST_PLUGINS "/missing", HAL_ERROR_BAD_PLUGIN,
           "kernel_destroy: expected a required entry");
    expect(TEST_PLUGINS "/tiny", HAL_ERROR_BAD_PLUGIN, "got 4 bytes");
    expect(TEST_PLUGINS "/no_instance", HAL_ERROR_BAD_PLUGIN, "expected an instance, got none");
    expect(TEST_PLUGINS "/no_ir_version", HAL_ERROR_BAD_PLUGIN, "ir_version: expected");
    expect(TEST_PLUGINS "/other_extension", HAL_ERROR_BAD_PLUGIN, "hal.timing: expected a table");
    expect(TEST_PLUGINS "/bad_name", HAL_ERROR_BAD_PLUGIN, "\"Broken!\"");
    expect(TEST_PLUGINS "/other_name", HAL_ERROR_BAD_PLUGIN,
           "expected \"other_name\", as in the file's name, got \"somebody\"; rename the file to "
           "hal_somebody.so");
}

TEST(enumerations_that_fail)
{
    expect(TEST_PLUGINS "/no_device", HAL_ERROR_NO_DEVICE, "no device found");
    expect(TEST_PLUGINS "/no_driver", HAL_ERROR_DRIVER_MISSING,
           "the driver of nothing is not installed");
    expect(TEST_PLUGINS "/bad_status", HAL_ERROR_INTERNAL, "4711");
    expect(TEST_PLUGINS "/bad_info", HAL_ERROR_BAD_PLUGIN, "binding_alignment");
    expect(TEST_PLUGINS "/bad_stride", HAL_ERROR_BAD_PLUGIN, "got 3");
    expect(TEST_PLUGINS "/no_id", HAL_ERROR_BAD_PLUGIN, "device 0: id: expected a text");
    expect(TEST_PLUGINS "/same_ids", HAL_ERROR_BAD_PLUGIN, "got \"broken\", as device 0");
    expect(TEST_PLUGINS "/unwritten", HAL_ERROR_BAD_PLUGIN,
           "device 0: size: expected sizeof(hal_device_info)");
    expect(TEST_PLUGINS "/many", HAL_ERROR_BAD_PLUGIN, "up to 4096, got 4294967295");
    expect(TEST_PLUGINS "/counts", HAL_ERROR_BAD_PLUGIN, "expected a constant number of devices");
}

TEST(a_device_that_goes_while_it_is_counted)
{
    hal_registry_report *report = NULL;
    const hal_plugin_report *plugin = look(TEST_PLUGINS "/fewer", &report);
    assert_ok(plugin->status);
    assert_int_equal(plugin->device_count, 1);
    hal_registry_report_destroy(report);
}

/* Strings without an end, every bit set, limits as large as numbers are. */
TEST(claims_are_cut_down_to_what_can_be)
{
    hal_registry_report *report = NULL;
    const hal_plugin_report *plugin = look(TEST_PLUGINS "/absurd", &report);
    assert_ok(plugin->status);
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
    assert_int_equal(info->features & HAL_FEATURE_TIMESTAMPS, 0);
    hal_registry_report_destroy(report);
}

TEST(tables_that_end_early_work_and_their_tails_are_not_read)
{
    expect(TEST_PLUGINS "/early_end", HAL_OK, "");
}

/* Promise 9: files and tables of every bad kind in front, and the good plugin after them works. */
TEST(bad_plugins_hide_no_other)
{
    static const char *const bad[] = {"no_symbol", "no_table", "newer", "other_major", "short",
                                      "missing",   "bad_name", "tiny",  "needy",       "no_device",
                                      "no_driver", "counts",   "older", "cut"};
    enum { BAD = sizeof bad / sizeof *bad, FILES = 3 };
    char search[4096];
    size_t length = (size_t)snprintf(search, sizeof search, "%s", folder);
    for (size_t i = 0; i < BAD; i++) {
        length += (size_t)snprintf(search + length, sizeof search - length, ":%s/%s", TEST_PLUGINS,
                                   bad[i]);
    }
    snprintf(search + length, sizeof search - length, ":%s/mock", TEST_PLUGINS);
    make_file("hal_a.so", "");
    make_file("hal_b.so", "text");
    make_part(5000, -1, 0);
    hal_registry_report *report = NULL;
    look(search, &report);
    assert_true(report->plugin_count >= FILES + BAD + 2);
    for (size_t i = 0; i < FILES + BAD; i++) {
        assert_int_not_equal(report->plugins[i].status, HAL_OK);
        assert_int_not_equal(strlen(report->plugins[i].message), 0);
    }
    const hal_plugin_report *good = &report->plugins[FILES + BAD];
    assert_ok(good->status);
    assert_string_equal(good->name, "mock");
    assert_int_equal(good->device_count, 2);
    assert_string_equal(report->choice, "mock:0");
    hal_device *device = mock_open(NULL);
    assert_string_equal(hal_device_get_plugin_name(device), "mock");
    hal_device_release(device);
    hal_registry_report_destroy(report);
    char path[SCRATCH_BYTES + 64];
    static const char *const files[] = {"a", "b", "part"};
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/hal_%s.so", folder, files[i]);
        unlink(path);
    }
}

TEST(the_first_of_a_name_counts)
{
    hal_registry_report *report = NULL;
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/hal_mock.so", folder);
    assert_int_equal(symlink(TEST_PLUGINS "/mock/hal_mock.so", path), 0);
    char search[512];
    snprintf(search, sizeof search, "%s:%s", TEST_PLUGINS "/mock", folder);
    look(search, &report);
    assert_ok(report->plugins[0].status);
    assert_string_equal(report->plugins[2].path, path);
    assert_int_equal(report->plugins[2].status, HAL_ERROR_INVALID_STATE);
    assert_non_null(strstr(report->plugins[2].message, "not used"));
    hal_registry_report_destroy(report);
    unlink(path);
}

/* As CMake names shared libraries on macOS. */
TEST(plugins_may_end_in_dylib)
{
    hal_registry_report *report = NULL;
    char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/hal_mock.dylib", folder);
    assert_int_equal(symlink(TEST_PLUGINS "/mock/hal_mock.so", path), 0);
    look(folder, &report);
    assert_ok(report->plugins[0].status);
    assert_string_equal(report->plugins[0].path, path);
    assert_string_equal(report->plugins[0].name, "mock");
    hal_registry_report_destroy(report);
    hal_device *device = mock_open(NULL);
    assert_string_equal(hal_device_get_plugin_name(device), "mock");
    hal_device_release(device);
    unlink(path);
    expect("/nowhere/hal_missing.dylib", HAL_ERROR_NOT_FOUND, "no such file");
}

TEST(own_folder_is_searched_last)
{
    hal_registry_report *report = NULL;
    look(TEST_PLUGINS "/mock", &report);
    assert_int_equal(report->path_count, 2);
    assert_non_null(strstr(report->paths[1], "/halyard/plugins"));
    assert_int_equal(report->paths[1][0], '/');
    hal_registry_report_destroy(report);
    unsetenv("HAL_PLUGIN_PATH");
    assert_ok(hal_registry_report_create(&report));
    assert_int_equal(report->path_count, 1);
    hal_registry_report_destroy(report);
}

TEST(relative_paths_are_made_whole)
{
    char before[512];
    hal_registry_report *report = NULL;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(TEST_PLUGINS), 0);
    look("mock/hal_mock.so::mock", &report);
    assert_ok(report->plugins[0].status);
    assert_string_equal(report->paths[0], TEST_PLUGINS "/mock/hal_mock.so");
    assert_int_equal(report->path_count, 3);
    hal_registry_report_destroy(report);
    assert_int_equal(chdir(before), 0);
}

static int begin(void **state)
{
    unsetenv("HAL_BACKEND");
    return !scratch_folder(folder, "loader");
}

static int end(void **state)
{
    return rmdir(folder);
}

UNIT_MAIN(begin, end)
