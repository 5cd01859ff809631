/* Promise 6: plugins of another minor than hal's, with shorter and longer tables, load and work,
 * and what they lack is as docs/plugin-abi.md has it. */
#include "mock_fixture.h"

#include <hal/ir_build.h>

#define ITEMS 64u

/* The kernel of mock_ir on a device: out = in + 7, by way of the upload and download of buffers. */
static void expect_work(hal_device *device)
{
    hal_kernel *kernel = mock_kernel(device, 7);
    hal_queue *queue = mock_queue(device);
    hal_buffer *in = mock_buffer(device, ITEMS * sizeof(int32_t));
    hal_buffer *out = mock_buffer(device, ITEMS * sizeof(int32_t));
    int32_t numbers[ITEMS];
    for (int32_t i = 0; i < (int32_t)ITEMS; i++) {
        numbers[i] = 3 * i;
    }
    assert_ok(hal_queue_write(queue, in, 0, numbers, sizeof numbers));
    assert_ok(mock_dispatch(queue, kernel, in, out));
    memset(numbers, 0, sizeof numbers);
    assert_ok(hal_queue_read(queue, out, 0, sizeof numbers, numbers));
    for (int32_t i = 0; i < (int32_t)ITEMS; i++) {
        assert_int_equal(numbers[i], 3 * i + 7);
    }
    hal_buffer_release(in);
    hal_buffer_release(out);
    hal_queue_destroy(queue);
    hal_kernel_release(kernel);
}

/* A device of a plugin, and what has to be seen of it whatever the size of its records is. */
static hal_device *open_device(const char *plugin, uint32_t index)
{
    char selection[64];
    snprintf(selection, sizeof selection, "%s:%u", plugin, index);
    hal_device *device = mock_open(selection);
    const hal_device_info *info = hal_device_get_info(device);
    assert_string_equal(info->name, index == 0 ? "Device A" : "Device B");
    assert_string_equal(info->id, index == 0 ? "minor-0" : "minor-1");
    assert_int_equal(info->size, sizeof *info);
    assert_int_equal(info->max_grid[2], 65535);
    assert_int_equal(info->max_queues, 1);
    return device;
}

/* What hal_point_get_elapsed answers of two batches. */
static hal_status elapsed(hal_device *device, uint64_t *nanoseconds)
{
    hal_queue *queue = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 256);
    hal_point points[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, 1));
        assert_ok(hal_queue_flush(queue, &points[i]));
    }
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    const hal_status status = hal_point_get_elapsed(points[0], points[1], nanoseconds);
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    return status;
}

static void expect_entries(const char *plugin, int has_elapsed)
{
    hal_device *device = open_device(plugin, 0);
    expect_work(device);
    uint64_t nanoseconds = UINT64_MAX;
    const hal_status status = elapsed(device, &nanoseconds);
    assert_int_equal(status, has_elapsed ? HAL_OK : HAL_ERROR_UNSUPPORTED);
    assert_int_equal(nanoseconds == UINT64_MAX, !has_elapsed);
    assert_int_equal(hal_device_get_info(device)->features,
                     has_elapsed ? HAL_FEATURE_TIMESTAMPS : 0);
    /* None of them has these, however their tables end. */
    hal_kernel *kernel = NULL;
    uint64_t workspace = 0;
    const hal_gemm_description product = mock_product();
    assert_int_equal(hal_kernel_create_gemm(device, &product, &kernel, &workspace),
                     HAL_ERROR_UNSUPPORTED);
    hal_device_release(device);
}

/* Between the devices of a plugin: by the plugin itself, or through the host. */
static void expect_transfer(const char *plugin)
{
    hal_device *devices[2];
    hal_queue *queues[2];
    hal_buffer *buffers[2];
    for (uint32_t i = 0; i < 2; i++) {
        devices[i] = open_device(plugin, i);
        queues[i] = mock_queue(devices[i]);
        buffers[i] = mock_buffer(devices[i], 256);
    }
    assert_ok(hal_queue_fill(queues[0], (hal_range){buffers[0], 0, HAL_WHOLE}, 0xabcd1234));
    assert_ok(hal_queue_transfer(queues[0], buffers[0], 0, queues[1], buffers[1], 0, 256));
    uint32_t words[64] = {0};
    assert_ok(hal_queue_read(queues[1], buffers[1], 0, sizeof words, words));
    assert_int_equal(words[0], 0xabcd1234);
    assert_int_equal(words[63], 0xabcd1234);
    for (uint32_t i = 0; i < 2; i++) {
        hal_buffer_release(buffers[i]);
        hal_queue_destroy(queues[i]);
        hal_device_release(devices[i]);
    }
}

TEST(a_table_without_its_last_entries_works)
{
    expect_entries("shorter", 0);
    expect_transfer("shorter");
}

TEST(a_later_minor_works_and_its_tail_is_not_read)
{
    expect_entries("longer", 1);
    expect_transfer("longer");
}

static int begin(void **state)
{
    unsetenv("HAL_BACKEND");
    return setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/minors", 1);
}

UNIT_MAIN(begin, NULL)
