/* Plugins that were built against a copy of the headers of 1.0 work (tests/abi/frozen): plain.c,
 * and deferred.c with extensions. */
#include "mock_fixture.h"

#define ITEMS 64u

static hal_device *open_device(const char *plugin, uint32_t index)
{
    char selection[64];
    snprintf(selection, sizeof selection, "%s:%u", plugin, index);
    return mock_open(selection);
}

static void expect_words(hal_queue *queue, hal_buffer *buffer, const uint32_t *words)
{
    uint32_t read[ITEMS] = {0};
    assert_ok(hal_queue_read(queue, buffer, 0, sizeof read, read));
    assert_memory_equal(read, words, sizeof read);
}

/* Fills, copies, reads and writes, over two queues. */
static void expect_work(const char *plugin)
{
    hal_device *device = open_device(plugin, 0);
    hal_queue *queues[2] = {mock_queue(device), mock_queue(device)};
    hal_buffer *from = mock_buffer(device, ITEMS * 4), *to = mock_buffer(device, ITEMS * 4);
    uint32_t words[ITEMS];
    for (uint32_t i = 0; i < ITEMS; i++) {
        words[i] = i < 8 ? 0x01020304 : 3 * i;
    }
    assert_ok(hal_queue_write(queues[0], from, 0, words, sizeof words));
    assert_ok(hal_queue_fill(queues[0], (hal_range){from, 0, 32}, 0x01020304));
    assert_ok(
        hal_queue_copy(queues[1], (hal_range){from, 0, HAL_WHOLE}, (hal_range){to, 0, HAL_WHOLE}));
    expect_words(queues[1], to, words);
    hal_buffer_release(from);
    hal_buffer_release(to);
    hal_queue_destroy(queues[0]);
    hal_queue_destroy(queues[1]);
    hal_device_release(device);
}

TEST(the_required_entries)
{
    expect_work("plain");
    hal_device *device = open_device("plain", 0);
    hal_queue *queue = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 256);
    const uint8_t byte = 7;
    assert_fails(hal_queue_fill_pattern(queue, (hal_range){buffer, 1, 3}, &byte, 1),
                 HAL_ERROR_UNSUPPORTED, "fills whole words with 4 bytes only");
    assert_ok(hal_queue_fill_pattern(queue, (hal_range){buffer, 4, 8}, &byte, 1));
    hal_point point;
    uint64_t nanoseconds = 0;
    assert_ok(hal_queue_flush(queue, &point));
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(hal_point_get_elapsed(point, point, &nanoseconds), HAL_ERROR_UNSUPPORTED);
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    hal_device_release(device);
}

TEST(extensions)
{
    expect_work("deferred");
    hal_device *devices[2];
    hal_queue *queues[2];
    hal_buffer *buffers[2];
    hal_point points[2];
    uint64_t nanoseconds = 0;
    uint32_t words[ITEMS] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        devices[i] = open_device("deferred", i);
        queues[i] = mock_queue(devices[i]);
        buffers[i] = mock_buffer(devices[i], sizeof words);
    }
    const uint64_t pattern[2] = {0x1111111122222222, 0x3333333344444444};
    assert_ok(hal_queue_fill_pattern(queues[0], (hal_range){buffers[0], 0, HAL_WHOLE}, pattern,
                                     sizeof pattern));
    assert_ok(hal_queue_transfer(queues[0], buffers[0], 0, queues[1], buffers[1], 0, sizeof words));
    for (uint32_t i = 0; i < ITEMS; i++) {
        words[i] = (uint32_t)(pattern[i / 2 % 2] >> 32 * (i % 2));
    }
    expect_words(queues[1], buffers[1], words);
    for (int i = 0; i < 2; i++) {
        assert_ok(hal_queue_fill(queues[0], (hal_range){buffers[0], 0, HAL_WHOLE}, 1));
        assert_ok(hal_queue_flush(queues[0], &points[i]));
    }
    assert_ok(hal_queue_wait(queues[0], HAL_WAIT_FOREVER));
    assert_ok(hal_point_get_elapsed(points[0], points[1], &nanoseconds));
    hal_memory_statistics now;
    assert_ok(hal_device_get_memory(devices[0], &now));
    assert_int_equal(now.total_bytes, 1 << 28);
    for (uint32_t i = 0; i < 2; i++) {
        hal_buffer_release(buffers[i]);
        hal_queue_destroy(queues[i]);
        hal_device_release(devices[i]);
    }
}

/* hal_registry_report has the names of the extensions. */
TEST(the_report_names_them)
{
    hal_registry_report *report = NULL;
    assert_ok(hal_registry_report_create(&report));
    uint32_t found = 0;
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        const int is_plain = strcmp(plugin->name, "plain") == 0;
        if (is_plain || strcmp(plugin->name, "deferred") == 0) {
            assert_ok(plugin->status);
            assert_string_equal(plugin->extensions,
                                is_plain ? "" : "hal.memory_info, hal.timing, hal.peers");
            found++;
        }
    }
    assert_int_equal(found, 2);
    hal_registry_report_destroy(report);
}

static int begin(void **state)
{
    unsetenv("HAL_BACKEND");
    return setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/frozen", 1);
}

UNIT_MAIN(begin, NULL)
