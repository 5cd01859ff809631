/* Recording, flushing, and data in and out, over the mock plugin. */
#include "mock_device.h"

#include <unistd.h>

DEVICE_TEST(large_data_goes_in_pieces)
{
    enum { BYTES = (70 << 20) + 12345 };
    hal_buffer *buffer = mock_buffer(device, BYTES);
    uint32_t *data = malloc(BYTES + 4);
    assert_non_null(data);
    for (uint32_t i = 0; i < BYTES / 4 + 1; i++) {
        data[i] = i * 2654435761u;
    }
    assert_ok(hal_queue_write(queue, buffer, 0, data, BYTES));
    uint8_t *out = calloc(1, BYTES);
    assert_non_null(out);
    assert_ok(hal_queue_read(queue, buffer, 0, BYTES, out));
    assert_int_equal(memcmp(out, data, BYTES), 0);
    /* A few pieces of staging memory, not a second copy of it all. */
    hal_memory_statistics now;
    assert_ok(hal_device_get_memory(device, &now));
    assert_true(now.pooled_bytes <= (uint64_t)100 << 20);
    free(out);
    free(data);
    hal_buffer_release(buffer);
}

DEVICE_TEST(writes_are_in_the_order_of_the_queue)
{
    hal_buffer *buffer = mock_buffer(device, 16);
    hal_buffer *copy = mock_buffer(device, 16);
    uint32_t out[4];
    mock->hold = 1;
    assert_ok(hal_queue_write(queue, buffer, 0, "1111111111111111", 16));
    assert_ok(hal_queue_copy(queue, (hal_range){buffer, 0, 16}, (hal_range){copy, 0, 16}));
    assert_ok(hal_queue_write(queue, buffer, 0, "2222222222222222", 16));
    mock->hold = 0;
    assert_ok(hal_queue_read(queue, copy, 0, sizeof out, out));
    assert_memory_equal(out, "1111111111111111", 16);
    assert_ok(hal_queue_read(queue, buffer, 0, sizeof out, out));
    assert_memory_equal(out, "2222222222222222", 16);
    hal_buffer_release(buffer);
    hal_buffer_release(copy);
}

/* The mock notices memory that is freed under work. */
DEVICE_TEST(memory_outlives_its_work_though_waits_fail)
{
    for (int failures = 1; failures <= 3; failures++) {
        hal_device *own = mock_open("mock:1");
        hal_queue *other = mock_queue(own);
        hal_buffer *buffer = mock_buffer(own, 64);
        mock->slow = 1;
        assert_ok(hal_queue_fill(other, (hal_range){buffer, 0, HAL_WHOLE}, 1));
        assert_ok(hal_queue_flush(other, NULL));
        hal_buffer_release(buffer);
        mock->fail_with = HAL_ERROR_INTERNAL;
        mock->fail_in[MOCK_WAIT] = 1;
        mock->fail_more = failures - 1;
        hal_queue_destroy(other);
        mock->fail_more = 0;
        mock->fail_in[MOCK_WAIT] = 0;
        hal_device_release(own);
        mock->slow = 0;
        assert_int_equal(mock->misuses, 0);
    }
}

/* On a device that maps its memory the host writes it, but never under work that is in flight. */
DEVICE_TEST(mapped_devices_are_written_directly)
{
    hal_device *mapped = mock_open("mock:1");
    hal_queue *other = mock_queue(mapped);
    hal_buffer *buffer = mock_buffer(mapped, 16);
    hal_buffer *copy = mock_buffer(mapped, 16);
    char out[16];
    const uint32_t before = mock->calls[MOCK_SUBMIT];
    assert_ok(hal_queue_write(other, buffer, 0, "1111111111111111", 16));
    assert_ok(hal_queue_read(other, buffer, 0, 16, out));
    assert_memory_equal(out, "1111111111111111", 16);
    assert_int_equal(mock->calls[MOCK_SUBMIT], before);
    mock->hold = 1;
    hal_queue_copy(other, (hal_range){buffer, 0, 16}, (hal_range){copy, 0, 16});
    assert_ok(hal_queue_write(other, buffer, 0, "2222222222222222", 16));
    hal_queue_flush(other, NULL);
    assert_ok(hal_queue_write(other, buffer, 4, "3333", 4));
    mock->hold = 0;
    assert_ok(hal_queue_read(other, copy, 0, 16, out));
    assert_memory_equal(out, "1111111111111111", 16);
    assert_ok(hal_queue_read(other, buffer, 0, 16, out));
    assert_memory_equal(out, "2222333322222222", 16);
    hal_buffer_release(buffer);
    hal_buffer_release(copy);
    hal_queue_destroy(other);
    hal_device_release(mapped);
}

DEVICE_TEST(commands_reach_the_plugin_as_recorded)
{
    hal_buffer *in = mock_buffer(device, 1024);
    hal_buffer *out = mock_buffer(device, 1024);
    const uint32_t grid[3] = {3, 4, 5};
    const int32_t scalar = 42;
    const hal_range bindings[2] = {{in, 256, 512}, {NULL, 0, 0}};
    assert_ok(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 4));
    assert_ok(hal_queue_fill(queue, (hal_range){out, 16, 32}, 0xabcd));
    hal_point point;
    assert_ok(hal_queue_flush(queue, &point));
    assert_int_equal(mock->logged_count, 2);
    const mock_logged *dispatch = &mock->logged[0];
    assert_int_equal(dispatch->command.kind, HAL_COMMAND_DISPATCH);
    assert_memory_equal(dispatch->command.grid, grid, sizeof grid);
    assert_int_equal(dispatch->command.scalar_bytes, 4);
    assert_int_equal(dispatch->command.scalar_first % 8, 0);
    assert_int_equal(dispatch->bindings[0].offset, 256);
    assert_int_equal(dispatch->bindings[0].length, 512);
    assert_int_equal(dispatch->bindings[0].access, HAL_ACCESS_READ);
    assert_null(dispatch->bindings[1].memory);
    const mock_logged *fill = &mock->logged[1];
    assert_int_equal(fill->command.kind, HAL_COMMAND_FILL);
    assert_int_equal(fill->pattern, 0xabcd);
    assert_int_equal(fill->bindings[0].access, HAL_ACCESS_WRITE);
    hal_buffer_release(in);
    hal_buffer_release(out);
}

DEVICE_TEST(nothing_is_recorded_for_nothing)
{
    hal_buffer *buffer = mock_buffer(device, 64);
    const uint32_t grid[3] = {1, 0, 1};
    const hal_range bindings[2] = {{buffer, 0, 0}, {buffer, 64, HAL_WHOLE}};
    const int32_t scalar = 0;
    assert_ok(hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, 4));
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 64, 0}, 1));
    assert_ok(hal_queue_copy(queue, (hal_range){buffer, 0, 0}, (hal_range){buffer, 0, 0}));
    assert_ok(hal_queue_write(queue, buffer, 64, NULL, 0));
    assert_ok(hal_queue_read(queue, buffer, 64, 0, NULL));
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(mock->logged_count, 0);
    hal_buffer_release(buffer);
}

DEVICE_TEST(long_batches_flush_by_themselves)
{
    hal_buffer *a = mock_buffer(device, 64);
    hal_buffer *b = mock_buffer(device, 64);
    /* Twice: the wait makes batches short again. */
    for (uint32_t turn = 0; turn < 2; turn++) {
        uint32_t limit = HAL_QUEUE_BATCH_FIRST, submits = mock->calls[MOCK_SUBMIT];
        for (uint32_t batch = 0; batch < 8; batch++) {
            for (uint32_t i = batch ? 1 : 0; i < limit; i++) {
                assert_ok(mock_dispatch(queue, kernel, a, b));
                assert_int_equal(mock->calls[MOCK_SUBMIT], submits);
            }
            assert_ok(mock_dispatch(queue, kernel, a, b));
            assert_int_equal(mock->calls[MOCK_SUBMIT], ++submits);
            limit = 2 * limit < HAL_QUEUE_BATCH_COMMANDS ? 2 * limit : HAL_QUEUE_BATCH_COMMANDS;
        }
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
        assert_int_equal(mock->calls[MOCK_SUBMIT], submits + 1);
    }
    hal_buffer_release(a);
    hal_buffer_release(b);
}

DEVICE_TEST(batches_take_the_length_that_was_set)
{
    hal_buffer *a = mock_buffer(device, 64);
    assert_int_equal(hal_queue_set_batch(queue, 3, 2), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_queue_set_batch(NULL, 2, 4), HAL_ERROR_INVALID_ARGUMENT);
    assert_ok(hal_queue_set_batch(queue, 2, 4));
    for (uint32_t i = 0; i < 2 + 4 + 4 + 1; i++) {
        assert_ok(hal_queue_fill(queue, (hal_range){a, 0, 4}, i));
    }
    assert_int_equal(mock->calls[MOCK_SUBMIT], 3);
    assert_ok(hal_queue_set_batch(queue, 0, 0));
    hal_buffer_release(a);
}

/* Memory that only a batch in recording keeps cannot be trimmed, so its share is bounded. */
DEVICE_TEST(batches_that_use_much_memory_flush_by_themselves)
{
    const uint64_t part = UINT64_C(60) << 20;
    for (int i = 0; i < 6; i++) {
        hal_buffer *buffer = mock_buffer(device, part + ((uint64_t)i << 24) * 2);
        assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 1));
        hal_buffer_release(buffer);
    }
    assert_true(mock->calls[MOCK_SUBMIT] >= 1);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
}

/* A device that does not say how much memory it has is no device without memory. */
DEVICE_TEST(batches_grow_where_memory_is_not_known)
{
    hal_device *other = mock_open("mock:1");
    hal_queue *own = mock_queue(other);
    hal_buffer *buffer = mock_buffer(other, 64);
    assert_int_equal(hal_device_get_info(other)->memory_bytes, 0);
    for (uint32_t i = 0; i < 8; i++) {
        assert_ok(hal_queue_fill(own, (hal_range){buffer, 0, 4}, i));
    }
    assert_int_equal(mock->calls[MOCK_SUBMIT], 0);
    hal_queue_destroy(own);
    hal_buffer_release(buffer);
    hal_device_release(other);
}

DEVICE_TEST(buffers_and_kernels_may_go_at_once)
{
    mock->hold = 1;
    for (int i = 0; i < 20; i++) {
        hal_kernel *own = mock_kernel(device, 1000 + i);
        hal_buffer *a = mock_buffer(device, 5000);
        hal_buffer *b = mock_buffer(device, 5000);
        assert_ok(mock_dispatch(queue, own, a, b));
        hal_buffer_release(a);
        hal_buffer_release(b);
        hal_kernel_release(own);
        if (i % 7 == 0) {
            hal_queue_flush(queue, NULL);
            hal_device_trim(device);
        }
    }
    assert_int_equal(mock->live_kernels, 21);
    mock->hold = 0;
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_flush(queue, NULL));
    assert_int_equal(mock->live_kernels, 1);
    assert_int_equal(mock->misuses, 0);
}

DEVICE_TEST(failed_batches_are_dropped_and_the_queue_goes_on)
{
    hal_buffer *buffer = mock_buffer(device, 4);
    uint32_t value = 0;
    hal_point point;
    hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 1);
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 2);
    mock->fail_in[MOCK_SUBMIT] = 1;
    mock->fail_with = HAL_ERROR_OUT_OF_MEMORY;
    assert_fails(hal_queue_flush(queue, &point), HAL_ERROR_OUT_OF_MEMORY, "1 commands (mock:0)");
    assert_non_null(strstr(hal_status_message(), "the mock was told to fail"));
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_ok(hal_queue_read(queue, buffer, 0, 4, &value));
    assert_int_equal(value, 1);
    hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 3);
    assert_ok(hal_queue_read(queue, buffer, 0, 4, &value));
    assert_int_equal(value, 3);
    hal_buffer_release(buffer);
}

DEVICE_TEST(failures_without_words_have_the_status_name)
{
    hal_buffer *buffer = mock_buffer(device, 4);
    mock->no_words = 1;
    mock->fail_in[MOCK_SUBMIT] = 1;
    hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 2);
    assert_fails(hal_queue_flush(queue, NULL), HAL_ERROR_INTERNAL, "HAL_ERROR_INTERNAL");
    mock->fail_in[MOCK_SUBMIT] = 1;
    mock->fail_with = 99;
    hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 2);
    assert_fails(hal_queue_flush(queue, NULL), HAL_ERROR_INTERNAL,
                 "expected a status of the plugin, got 99");
    /* What a plugin said while all was well is no reason of a later failure. */
    mock->stray_words = 1;
    hal_buffer_release(mock_buffer(device, 1 << 20));
    mock->stray_words = 0;
    mock->fail_with = HAL_ERROR_INTERNAL;
    mock->fail_in[MOCK_SUBMIT] = 1;
    hal_queue_fill(queue, (hal_range){buffer, 0, 4}, 2);
    assert_fails(hal_queue_flush(queue, NULL), HAL_ERROR_INTERNAL, ": HAL_ERROR_INTERNAL");
    hal_buffer_release(buffer);
}

DEVICE_TEST(lost_devices_stay_lost_until_opened_anew)
{
    hal_device *lost = mock_open("mock:1");
    hal_queue *other = mock_queue(lost);
    hal_buffer *buffer = mock_buffer(lost, 64);
    hal_kernel *own = mock_kernel(lost, 5);
    mock->fail_in[MOCK_SUBMIT] = 1;
    mock->fail_with = HAL_ERROR_DEVICE_LOST;
    hal_queue_fill(other, (hal_range){buffer, 0, 4}, 2);
    hal_point point;
    void *pointer;
    hal_buffer *more;
    hal_memory_statistics now;
    assert_int_equal(hal_queue_flush(other, &point), HAL_ERROR_DEVICE_LOST);
    assert_fails(hal_queue_flush(other, &point), HAL_ERROR_DEVICE_LOST, "was lost earlier");
    assert_int_equal(hal_queue_fill(other, (hal_range){buffer, 0, 4}, 2), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(hal_queue_wait(other, 0), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(hal_queue_write(other, buffer, 0, "abcd", 4), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(hal_buffer_map_begin(buffer, &pointer), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(hal_buffer_create(lost, 0, 4, &more), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(hal_device_get_memory(lost, &now), HAL_ERROR_DEVICE_LOST);
    assert_int_equal(hal_graph_begin(other), HAL_ERROR_DEVICE_LOST);
    hal_device *anew = mock_open("mock:1");
    assert_ptr_not_equal(anew, lost);
    hal_buffer_release(buffer);
    hal_kernel_release(own);
    hal_queue_destroy(other);
    hal_device_release(lost);
    hal_device_release(anew);
}

/* Work submitted before the loss may be in flight, and uses memory and kernels. */
DEVICE_TEST(work_of_a_lost_device_ends_before_what_it_uses_goes)
{
    hal_device *lost = mock_open("mock:1");
    hal_queue *first = mock_queue(lost), *second = mock_queue(lost);
    hal_buffer *a = mock_buffer(lost, 64 * 4), *b = mock_buffer(lost, 64 * 4);
    hal_kernel *own = mock_kernel(lost, 5);
    mock->slow = 1; /* works when it is waited for */
    assert_ok(mock_dispatch(first, own, a, b));
    assert_ok(hal_queue_flush(first, NULL));
    mock->fail_in[MOCK_SUBMIT] = 1;
    mock->fail_with = HAL_ERROR_DEVICE_LOST;
    hal_queue_fill(second, (hal_range){a, 0, 4}, 2);
    assert_int_equal(hal_queue_flush(second, NULL), HAL_ERROR_DEVICE_LOST);
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_kernel_release(own);
    hal_queue_destroy(second);
    hal_queue_destroy(first);
    hal_device_release(lost);
    mock->slow = 0;
    if (atomic_load(&mock->misuses)) {
        fail_msg("hal broke the contract: %s", mock->misuse);
    }
}

DEVICE_TEST(kernels_are_made_once)
{
    const uint32_t before = mock->calls[MOCK_KERNEL];
    hal_kernel *one = mock_kernel(device, 77);
    hal_kernel *other = mock_kernel(device, 77);
    hal_kernel *third = mock_kernel(device, 78);
    assert_ptr_equal(one, other);
    assert_ptr_not_equal(one, third);
    assert_int_equal(mock->calls[MOCK_KERNEL], before + 2);
    assert_string_equal(hal_kernel_get_name(one), "shift");
    hal_kernel_release(one);
    hal_kernel_release(other);
    hal_kernel_release(third);
    mock->fail_in[MOCK_KERNEL] = 1;
    mock->fail_with = HAL_ERROR_COMPILE;
    hal_ir_kernel *ir = mock_ir(77);
    assert_fails(hal_kernel_create(device, ir, &one), HAL_ERROR_COMPILE, "creating kernel shift");
    assert_null(one);
    assert_ok(hal_kernel_create(device, ir, &one));
    hal_kernel_release(one);
    hal_ir_kernel_destroy(ir);
}

/* Two sources may come to the same legalised kernel: one dead operation more, and names. */
DEVICE_TEST(kernels_are_one_by_what_they_do)
{
    hal_kernel *made[3];
    const uint32_t before = mock->calls[MOCK_KERNEL];
    for (int i = 0; i < 3; i++) {
        hal_ir_builder *b = NULL;
        hal_ir_kernel *ir = NULL;
        hal_ir_builder_create(i == 2 ? "twin" : "one", &b);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_F32, HAL_ACCESS_WRITE);
        const hal_ir_value x = hal_ir_f32(b, 3.0f);
        if (i == 1) {
            hal_ir_sqrt(b, x);
        }
        hal_ir_store(b, out, hal_ir_u32(b, 0), x);
        assert_ok(hal_ir_builder_finish(b, &ir));
        assert_ok(hal_kernel_create(device, ir, &made[i]));
        hal_ir_builder_destroy(b);
        hal_ir_kernel_destroy(ir);
    }
    assert_ptr_equal(made[0], made[1]);
    assert_ptr_equal(made[0], made[2]);
    assert_int_equal(mock->calls[MOCK_KERNEL], before + 1);
    for (int i = 0; i < 3; i++) {
        hal_kernel_release(made[i]);
    }
    assert_int_equal(mock->live_kernels, 1);
}

DEVICE_TEST(native_kernels_go_by_format)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *signature = NULL;
    hal_kernel *one = NULL;
    hal_kernel *other = NULL;
    hal_ir_builder_create("native", &b);
    hal_ir_binding(b, "data", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    assert_ok(hal_ir_builder_finish(b, &signature));
    hal_ir_builder_destroy(b);
    assert_ok(hal_kernel_create_native(device, "mock-text", "code", 4, "main", signature, &one));
    assert_ok(hal_kernel_create_native(device, "mock-text", "code", 4, "main", signature, &other));
    assert_ptr_equal(one, other);
    hal_kernel_release(other);
    assert_ok(hal_kernel_create_native(device, "mock-binary", "code", 4, "main", signature,
                                       &other));
    assert_ptr_not_equal(one, other);
    hal_kernel_release(other);
    assert_fails(hal_kernel_create_native(device, "mock", "code", 4, "main", signature, &other),
                 HAL_ERROR_UNSUPPORTED, "accepts (mock-text,mock-binary), got \"mock\"");
    assert_fails(hal_kernel_create_native(device, "", "code", 4, "main", signature, &other),
                 HAL_ERROR_UNSUPPORTED, "got \"\"");
    hal_kernel_release(one);
    hal_ir_kernel_destroy(signature);
}

DEVICE_TEST(native_products_may_decline)
{
    hal_gemm_description product = mock_product();
    product.beta_is_zero = 1;
    hal_kernel *made = NULL;
    uint64_t workspace = 0;
    assert_ok(hal_kernel_create_gemm(device, &product, &made, &workspace));
    assert_int_equal(workspace, 4096);
    hal_buffer *buffer = mock_buffer(device, 8192);
    const double scalars[2] = {1.0, 0.0};
    const uint32_t grid[3] = {1, 1, 1};
    hal_range ranges[4] = {
        {buffer, 0, 64}, {buffer, 64, 64}, {buffer, 128, 64}, {buffer, 4096, 4096}};
    assert_ok(hal_queue_dispatch(queue, made, grid, ranges, 4, scalars, 16));
    ranges[2].offset = 64;
    assert_fails(hal_queue_dispatch(queue, made, grid, ranges, 4, scalars, 16),
                 HAL_ERROR_INVALID_ARGUMENT, "got one with bindings[1] (\"b\")");
    hal_kernel_release(made);
    product.m = 2000;
    assert_fails(hal_kernel_create_gemm(device, &product, &made, &workspace),
                 HAL_ERROR_UNSUPPORTED, "gemm");
    assert_null(made);
    product.lda = 3;
    assert_fails(hal_kernel_create_gemm(device, &product, &made, &workspace),
                 HAL_ERROR_INVALID_ARGUMENT,
                 "description.lda: expected at least the number of columns");
    product.lda = 4;
    double ns = -1;
    assert_ok(hal_gemm_estimate(device, &product, 0, &ns)); /* no entry: not known */
    assert_true(ns == 0);
    product.size = 0;
    assert_fails(hal_kernel_create_gemm(device, &product, &made, &workspace),
                 HAL_ERROR_INVALID_ARGUMENT,
                 "description.size: expected sizeof(hal_gemm_description)");
    /* A later minor's, which says nothing in what it has more, and which does. */
    struct {
        hal_gemm_description known;
        uint64_t more;
    } later = {.known = product};
    later.known.size = sizeof later;
    later.known.m = 4;
    assert_ok(hal_kernel_create_gemm(device, &later.known, &made, &workspace));
    hal_kernel_release(made);
    later.more = 1;
    assert_fails(hal_kernel_create_gemm(device, &later.known, &made, &workspace),
                 HAL_ERROR_INVALID_ARGUMENT,
                 "with zeros in the fields that this hal does not know");
    assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    hal_buffer_release(buffer);
}

static int begin(void **state)
{
    mock = mock_find("mock");
    mock->infos[1].features = HAL_FEATURE_MAP_DEVICE;
    mock->infos[1].memory_bytes = 0;
    return device_begin(state);
}

UNIT_MAIN(begin, device_end)
