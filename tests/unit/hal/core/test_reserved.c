/* Reserved buffers, reports and clocks: what hal answers for a plugin without them. With a plugin
 * that has them, the cases reserved/... and reports/... of hal-conformance test hal as well. */
#include "mock_device.h"

#include <hal/reserved.h>

DEVICE_TEST(a_device_without_virtual_memory_reserves_nothing)
{
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT, lacks = HAL_ERROR_UNSUPPORTED;
    uint64_t bytes = 0;
    hal_buffer *buffer = NULL, *plain = mock_buffer(device, 64);
    assert_fails(hal_device_get_part_bytes(device, &bytes), lacks, "HAL_FEATURE_VIRTUAL_MEMORY");
    assert_fails(hal_buffer_reserve(device, 65536, &buffer), lacks, "use hal_buffer_create");
    assert_null(buffer);
    assert_fails(hal_buffer_reserve(device, 65536, NULL), wrong, "buffer");
    assert_fails(hal_buffer_reserve(NULL, 65536, &buffer), wrong, "device");
    assert_fails(hal_buffer_commit(plain, 0, 64), wrong, "hal_buffer_reserve");
    assert_fails(hal_buffer_decommit(NULL, 0, 64), wrong, "buffer");
    assert_fails(hal_buffer_protect(plain, 0, 64, HAL_ACCESS_READ), wrong, "hal_buffer_reserve");
    hal_buffer_release(plain);
}

DEVICE_TEST(hal_tells_its_own_part_of_a_report)
{
    hal_kernel_report report = {.known = 1};
    assert_ok(hal_kernel_get_report(kernel, &report));
    assert_int_equal(report.size, sizeof report);
    assert_int_equal(report.known, 0);
    assert_int_equal(report.from_cache, 0);
    assert_true(report.compile_ns > 0);
    assert_int_equal(report.compile_ns, hal_kernel_get_compile_ns(kernel));
    assert_fails(hal_kernel_get_report(NULL, &report), HAL_ERROR_INVALID_ARGUMENT, "kernel");
    assert_fails(hal_kernel_get_report(kernel, NULL), HAL_ERROR_INVALID_ARGUMENT, "report");
}

DEVICE_TEST(a_device_without_a_clock_has_times_between_points)
{
    hal_clocks clocks = {0};
    hal_point point = {0};
    uint64_t end = 0;
    hal_buffer *buffer = mock_buffer(device, 64);
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, 64}, 1));
    assert_ok(hal_queue_flush(queue, &point));
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_fails(hal_device_get_clocks(device, &clocks), HAL_ERROR_UNSUPPORTED, "clock");
    assert_fails(hal_device_get_clocks(device, NULL), HAL_ERROR_INVALID_ARGUMENT, "clocks");
    assert_fails(hal_point_get_time(point, &end), HAL_ERROR_UNSUPPORTED, "hal_point_get_elapsed");
    hal_buffer_release(buffer);
}

UNIT_MAIN(device_begin, device_end)
