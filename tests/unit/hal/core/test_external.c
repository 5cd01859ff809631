/* Imported memory: when its release comes, and what hal passes to the plugin and keeps from it. */
#include "mock_device.h"

typedef struct owner {
    uint32_t words[16];
    int released;
} owner;

static void count_release(void *user)
{
    ((owner *)user)->released++;
}

static hal_buffer *import_words(owner *own, uint32_t access)
{
    hal_buffer *buffer = NULL;
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uint64_t)(uintptr_t)own->words,
                                      .bytes = sizeof own->words,
                                      .access = access};
    assert_ok(hal_buffer_import(device, &handle, count_release, own, &buffer));
    return buffer;
}

static int reset(void **state)
{
    mock_reset(mock);
    hal_queue_wait(queue, HAL_WAIT_FOREVER);
    return 0;
}

TEST_WITH(an_unused_import_is_released_at_once, reset, NULL)
{
    owner own = {.words = {1, 2, 3}};
    hal_buffer *buffer = import_words(&own, HAL_ACCESS_READ_WRITE);
    assert_int_equal(hal_buffer_get_bytes(buffer), sizeof own.words);
    assert_int_equal(hal_buffer_get_kind(buffer), HAL_MEMORY_SHARED);
    assert_true(hal_buffer_is_shared(buffer));
    hal_buffer_retain(buffer);
    hal_buffer_release(buffer);
    assert_int_equal(own.released, 0);
    hal_buffer_release(buffer);
    assert_int_equal(own.released, 1);
}

TEST_WITH(the_release_waits_for_the_last_batch_of_each_queue, reset, NULL)
{
    owner own = {0};
    hal_queue *second = mock_queue(device);
    hal_buffer *buffer = import_words(&own, HAL_ACCESS_READ_WRITE);
    mock->hold = 1;
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, 16}, 1));
    assert_ok(hal_queue_fill(second, (hal_range){buffer, 16, 16}, 2));
    assert_ok(hal_queue_flush(queue, NULL));
    hal_buffer_release(buffer);
    assert_ok(hal_queue_flush(second, NULL));
    assert_int_equal(own.released, 0);
    mock->hold = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_wait(second, HAL_WAIT_FOREVER));
    assert_int_equal(own.released, 1);
    assert_int_equal(own.words[0], 1);
    assert_int_equal(own.words[4], 2);
    hal_queue_destroy(second);
}

TEST_WITH(a_batch_that_is_never_flushed_ends_with_its_queue, reset, NULL)
{
    owner own = {0};
    hal_queue *second = mock_queue(device);
    hal_buffer *buffer = import_words(&own, HAL_ACCESS_READ_WRITE);
    assert_ok(hal_queue_fill(second, (hal_range){buffer, 0, 16}, 5));
    hal_buffer_release(buffer);
    assert_int_equal(own.released, 0);
    hal_queue_destroy(second);
    assert_int_equal(own.released, 1);
}

TEST_WITH(a_failed_import_releases_nothing, reset, NULL)
{
    owner own = {0};
    hal_buffer *buffer = NULL;
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uint64_t)(uintptr_t)own.words,
                                      .bytes = sizeof own.words,
                                      .access = HAL_ACCESS_READ_WRITE};
    mock->fail_in[MOCK_ALLOCATE] = 1;
    assert_fails(hal_buffer_import(device, &handle, count_release, &own, &buffer),
                 HAL_ERROR_INTERNAL, "hal_buffer_import");
    assert_null(buffer);
    assert_int_equal(own.released, 0);
    hal_buffer_release(import_words(&own, HAL_ACCESS_READ));
    assert_int_equal(own.released, 1);
}

TEST_WITH(a_refused_write_leaves_no_use, reset, NULL)
{
    owner own = {0};
    hal_buffer *buffer = import_words(&own, HAL_ACCESS_READ);
    assert_fails(hal_queue_fill(queue, (hal_range){buffer, 0, 16}, 1), HAL_ERROR_INVALID_ARGUMENT,
                 "HAL_ACCESS_READ");
    hal_buffer_release(buffer);
    assert_int_equal(own.released, 1);
}

TEST_WITH(kinds_that_the_plugin_lacks_are_unsupported, reset, NULL)
{
    hal_external_info info;
    hal_memory_handle handle = {.size = sizeof handle,
                                .kind = HAL_HANDLE_DMA_BUF,
                                .bytes = 64,
                                .access = HAL_ACCESS_READ_WRITE};
    hal_buffer *buffer = NULL;
    assert_ok(hal_device_get_external(device, &info));
    assert_int_equal(info.import_kinds, HAL_HANDLE_BIT(HAL_HANDLE_HOST));
    assert_int_equal(info.export_kinds, 0);
    assert_fails(hal_buffer_import(device, &handle, NULL, NULL, &buffer), HAL_ERROR_UNSUPPORTED,
                 "imports HAL_HANDLE_HOST, got HAL_HANDLE_DMA_BUF");
    buffer = mock_buffer(device, 64);
    assert_fails(hal_buffer_export(buffer, HAL_HANDLE_NATIVE, &handle), HAL_ERROR_UNSUPPORTED,
                 "exports no memory");
    hal_buffer_release(buffer);
}

TEST_WITH(imports_keep_the_device_open, reset, NULL)
{
    owner own = {0};
    hal_device *other = mock_open("mock_two");
    hal_buffer *buffer = NULL;
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uint64_t)(uintptr_t)own.words,
                                      .bytes = sizeof own.words,
                                      .access = HAL_ACCESS_READ_WRITE};
    mock_state *two = mock_find("mock_two");
    assert_ok(hal_buffer_import(other, &handle, count_release, &own, &buffer));
    hal_device_release(other);
    assert_int_equal(two->live_devices, 1);
    hal_buffer_release(buffer);
    assert_int_equal(own.released, 1);
    assert_int_equal(two->live_devices, 0);
}

UNIT_MAIN(device_begin, device_end)
