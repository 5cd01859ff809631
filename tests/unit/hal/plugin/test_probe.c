/* Features that a driver gets wrong: hal-probe finds them, hal does not offer them, and the
 * verdict is kept. The plugins of tests/plugins/probed.c are the cpu plugin, as hardware. */
#include "unit.h"

#include <hal/hal.h>
#include <hal/ir_build.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/place.h"
#include "scratch.h"

static char folder[SCRATCH_BYTES];
static int probe_count, complaint_count;

/* Counts the runs of hal-probe, and what is said of HAL_PROBE. */
static void line_follow(void *user, hal_log_level level, const char *message)
{
    (void)user;
    (void)level;
    probe_count += strstr(message, ": probed the driver") ||
                   strstr(message, ": could not probe the driver") != NULL;
    complaint_count += strncmp(message, "HAL_PROBE: ", 11) == 0;
}

static hal_device *device_open(const char *plugin)
{
    hal_device *device = NULL;
    probe_count = 0;
    assert_ok(hal_device_open(plugin, &device));
    return device;
}

static const hal_device_info *cpu_info(void)
{
    hal_device *device = device_open("cpu");
    const hal_device_info *info = hal_device_get_info(device);
    static hal_device_info kept;
    kept = *info;
    assert_int_equal(probe_count, 0); /* a processor has no vendor's driver */
    hal_device_release(device);
    return &kept;
}

static void expect_all(const hal_device *device)
{
    const hal_device_info *info = hal_device_get_info(device), *cpu = cpu_info();
    assert_int_equal(info->subgroup_width, cpu->subgroup_width);
    assert_int_equal(info->features, cpu->features);
    assert_int_equal(info->storage_types, cpu->storage_types);
    assert_string_equal(hal_device_get_quirks(device), "");
}

static void expect_masked(const hal_device *device)
{
    const hal_device_info *info = hal_device_get_info(device), *cpu = cpu_info();
    const char *faults = hal_device_get_quirks(device);
    assert_int_equal(info->subgroup_width, 0);
    assert_int_equal(info->features, cpu->features & ~(uint32_t)HAL_FEATURE_ATOMIC_64);
    assert_true(info->features & HAL_FEATURE_TIMESTAMPS);
    assert_int_equal(info->storage_types, cpu->storage_types & ~HAL_TYPE_BIT(HAL_TYPE_F16));
    assert_non_null(strstr(faults, "subgroups: work-item 0 has sum "));
    assert_non_null(strstr(faults, "atomic_64: its test crashed\n"));
    assert_non_null(strstr(faults, "storage_f16: its test did not end within the time limit\n"));
}

TEST(a_right_driver_keeps_all)
{
    hal_device *device = device_open("probed_right");
    assert_int_equal(probe_count, 1);
    expect_all(device);
    hal_device_release(device);
    device = device_open("probed_right");
    assert_int_equal(probe_count, 0);
    expect_all(device);
    hal_device_release(device);
}

/* Opens a device of whose tests one does not end: with a time limit of 2 s, or a longer one where
 * a busy machine makes others miss it. A verdict of a short limit is not kept. */
static hal_device *hanging_device_open(const char *plugin)
{
    static const char *const limits[] = {"2000", "9000", "60000"};
    hal_device *device = NULL;
    for (int i = 0, late = 0; i < 3 && late != 1; i++) {
        hal_device_release(device);
        setenv("HAL_PROBE", limits[i], 1);
        device = device_open(plugin);
        assert_int_equal(probe_count, 1);
        const char *faults = hal_device_get_quirks(device);
        for (late = 0; (faults = strstr(faults, "within the time limit")) != NULL; faults++) {
            late++;
        }
    }
    unsetenv("HAL_PROBE");
    return device;
}

TEST(what_is_wrong_is_not_offered)
{
    hal_device *device = hanging_device_open("probed_wrong");
    expect_masked(device);
    hal_device_release(device);
    setenv("HAL_PROBE", "1", 1);
    device = device_open("probed_wrong");
    assert_int_equal(probe_count, 1); /* a verdict that a short limit made is not kept */
    hal_device_release(device);
    unsetenv("HAL_PROBE");
}

/* -0 + 0 in a kernel that the device compiles. */
static float sum_of_zeros(hal_device *device)
{
    static const char text[] = "kernel zeros\ngroup 1 1 1\nbinding x f32 read_write\n"
                               "%i = local_id u32 x\n%zero = constant f32 0\n"
                               "%x = load f32 x[%i]\n%y = add f32 %x, %zero\nstore x[%i], %y\n";
    const uint32_t grid[3] = {1, 1, 1};
    float x = -0.0f;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    hal_queue *queue = NULL;
    hal_buffer *buffer = NULL;
    assert_ok(hal_ir_parse(text, strlen(text), &ir));
    assert_ok(hal_kernel_create(device, ir, &kernel));
    assert_ok(hal_queue_create(device, &queue));
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, sizeof x, &buffer));
    assert_ok(hal_queue_write(queue, buffer, 0, &x, sizeof x));
    const hal_range range = {buffer, 0, HAL_WHOLE};
    assert_ok(hal_queue_dispatch(queue, kernel, grid, &range, 1, NULL, 0));
    assert_ok(hal_queue_read(queue, buffer, 0, sizeof x, &x));
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    hal_kernel_release(kernel);
    hal_ir_kernel_destroy(ir);
    return x;
}

TEST(constants_that_are_folded_wrongly_are_hidden)
{
    setenv("HAL_PROBE", "off", 1);
    hal_device *device = device_open("probed_folds");
    assert_true(signbit(sum_of_zeros(device)));
    hal_device_release(device);
    unsetenv("HAL_PROBE");
    device = device_open("probed_folds");
    assert_non_null(strstr(hal_device_get_quirks(device),
                           "constants_f32: add f32 of 0x80000000 with the constant 0x0 as second "
                           "operand is 0x80000000 instead of 0x0\n"));
    assert_int_equal(hal_device_get_info(device)->wrong_constants, HAL_TYPE_BIT(HAL_TYPE_F32));
    assert_false(signbit(sum_of_zeros(device)));
    hal_device_release(device);
}

TEST(a_process_that_is_silent_is_ended)
{
    hal_device *device = hanging_device_open("probed_silent");
    assert_non_null(strstr(hal_device_get_quirks(device),
                           "storage_f16: its test did not end within the time limit\n"));
    hal_device_release(device);
}

TEST(what_the_driver_prints_is_no_answer)
{
    hal_device *device = device_open("probed_noisy");
    assert_int_equal(probe_count, 1);
    expect_all(device);
    hal_device_release(device);
}

TEST(what_hal_probe_does_not_answer_is_asked_once)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        hal_device *device = device_open("probed_shy");
        assert_int_equal(probe_count, attempt == 0);
        expect_all(device);
        hal_device_release(device);
    }
}

TEST(matrix_units)
{
    hal_device *device = device_open("probed_matrix:0");
    assert_string_equal(hal_device_get_quirks(device), "");
    assert_int_equal(hal_device_get_info(device)->matrix_types, HAL_TYPES_MATRIX);
    hal_device_release(device);
    for (int attempt = 0; attempt < 2; attempt++) {
        device = device_open("probed_matrix_wrong:0");
        assert_int_equal(probe_count, attempt == 0); /* then the verdict is known */
        assert_non_null(strstr(hal_device_get_quirks(device), "matrix_bf16: row 0, column 0 is "));
        assert_non_null(strstr(hal_device_get_quirks(device), "matrix_f64: row 0, column 0 is "));
        assert_null(strstr(hal_device_get_quirks(device), "matrix_f16"));
        hal_device_release(device);
    }
}

TEST(what_cannot_be_judged_is_tried_once)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        hal_device *device = device_open("probed_alone");
        assert_int_equal(probe_count, attempt == 0);
        expect_all(device);
        hal_device_release(device);
    }
}

TEST(it_can_be_switched_off)
{
    static const char *const values[] = {"off", "0"};
    for (int i = 0; i < 2; i++) {
        setenv("HAL_PROBE", values[i], 1);
        hal_device *device = device_open("probed_wrong");
        assert_int_equal(probe_count, 0);
        expect_all(device);
        hal_device_release(device);
    }
    assert_int_equal(complaint_count, 0);
    unsetenv("HAL_PROBE");
}

TEST(a_limit_that_is_no_number_is_reported)
{
    static const char *const values[] = {"no", "10s", "-1", "", "99999999999999999999"};
    for (int i = 0; i < 5; i++) {
        complaint_count = 0;
        setenv("HAL_PROBE", values[i], 1);
        hal_device *device = device_open("probed_right");
        assert_int_equal(complaint_count, i < 3);
        expect_all(device);
        hal_device_release(device);
    }
    unsetenv("HAL_PROBE");
}

TEST(without_a_cache_nothing_is_probed)
{
    setenv("HAL_CACHE_DIR", "off", 1);
    hal_device *device = device_open("probed_wrong");
    assert_int_equal(probe_count, 0);
    expect_all(device);
    hal_device_release(device);
    setenv("HAL_CACHE_DIR", folder, 1);
}

static void run(const char *format, const char *path)
{
    char command[4 * SCRATCH_BYTES];
    snprintf(command, sizeof command, format, path);
    assert_int_equal(system(command), 0);
}

/* One process at install time makes the verdict for all users. A file that is not one is as none,
 * and stays. */
TEST(the_installation_has_verdicts)
{
    char verdicts[2 * SCRATCH_BYTES], fresh[2 * SCRATCH_BYTES];
    snprintf(verdicts, sizeof verdicts, "%s/halyard/verdicts", hal_place_library());
    snprintf(fresh, sizeof fresh, "%s/fresh", folder);
    run("rm -rf '%s'", verdicts);
    for (int attempt = 0; attempt < 3; attempt++) {
        setenv("HAL_CACHE_DIR", attempt == 0 ? verdicts : fresh, 1);
        hal_device *device = device_open("probed_matrix_wrong:0");
        assert_int_equal(probe_count, attempt != 1);
        assert_non_null(strstr(hal_device_get_quirks(device), "matrix_bf16: row 0, column 0 is "));
        hal_device_release(device);
        if (attempt == 1) {
            run("for i in '%s'/*; do echo no entry > \"$i\"; done", verdicts);
        }
    }
    run("grep -q 'no entry' '%s'/*", verdicts);
    run("rm -r '%s'", verdicts);
    setenv("HAL_CACHE_DIR", folder, 1);
}

static int begin(void **state)
{
    (void)state;
    if (!scratch_folder(folder, "probe")) {
        return -1;
    }
    unsetenv("HAL_BACKEND");
    unsetenv("HAL_PROBE");
    setenv("HAL_CACHE_DIR", folder, 1);
    hal_log_set_callback(line_follow, NULL, HAL_LOG_INFO);
    return setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/probed", 1);
}

static int end(void **state)
{
    (void)state;
    char command[SCRATCH_BYTES + 16];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

UNIT_MAIN(begin, end)
