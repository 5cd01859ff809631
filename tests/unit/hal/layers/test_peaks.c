/* Peaks: measured once, kept in the compile cache, found again; 0 for what a device lacks. */
#include "unit.h"

#include <hal/hal.h>
#include <stddef.h>
#include <string.h>

#include "scratch.h"

static char folder[SCRATCH_BYTES];
static hal_device *device;

static int begin(void **state)
{
    setenv("HAL_CACHE_DIR", scratch_folder(folder, "peaks"), 1);
    setenv("HAL_CPU_THREADS", "1", 1);
    return hal_device_open("cpu", &device);
}

static int end(void **state)
{
    char command[SCRATCH_BYTES + 16];
    hal_device_release(device);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

TEST(unknown_peaks_are_an_error)
{
    hal_device_peaks peaks = {.size = sizeof peaks};
    assert_fails(hal_device_get_peaks(NULL, 0, &peaks), HAL_ERROR_INVALID_ARGUMENT, "device");
    assert_fails(hal_device_get_peaks(device, 0, NULL), HAL_ERROR_INVALID_ARGUMENT, "peaks");
    assert_fails(hal_device_get_peaks(device, 0, &peaks), HAL_ERROR_NOT_FOUND,
                 "hal-info --peaks measures them");
}

TEST(measured_peaks_are_kept)
{
    hal_device_peaks measured = {.size = sizeof measured}, kept = {.size = sizeof kept};
    assert_ok(hal_device_get_peaks(device, 1, &measured));
    assert_true(measured.copy > 1e6 && measured.upload > 1e6 && measured.download > 1e6);
    assert_true(measured.add_f32 > 1e6 && measured.add_f64 > 1e6);
    assert_true(measured.launch_ns > 0 && measured.wait_ns > 0 && measured.transfer_ns > 0);
    assert_ok(hal_device_get_peaks(device, 0, &kept));
    assert_memory_equal(&kept, &measured, sizeof kept);
    /* A program of an older version has a smaller structure. */
    hal_device_peaks part = {.size = offsetof(hal_device_peaks, upload), .upload = 7};
    assert_ok(hal_device_get_peaks(device, 0, &part));
    assert_true(part.copy == measured.copy && part.upload == 7);
}

UNIT_MAIN(begin, end)
