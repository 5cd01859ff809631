/* What hal does without each optional entry of a plugin's table, as docs/plugin-abi.md has it. The
 * mock plugin has them all; each test takes one out of the table that hal copied, and sees that it
 * was used before. */
#include "mock_fixture.h"

#include "core/device.h"
#include "core/kernel.h"

static mock_state *mock;
static hal_plugin_entries whole; /* the mock's table with all of its entries */

static hal_plugin_entries *table_of(hal_device *device)
{
    return &device->module->table;
}

static hal_queue *filled(hal_device *device, hal_buffer *buffer, uint32_t pattern)
{
    hal_queue *queue = mock_queue(device);
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, pattern));
    return queue;
}

static int reset(void **state)
{
    hal_device *device = mock_open("mock");
    if (!whole.size) {
        whole = *table_of(device);
    }
    *table_of(device) = whole;
    hal_device_release(device);
    mock_reset(mock);
    return 0;
}

TEST_WITH(without_memory_info_hal_counts, reset, NULL)
{
    hal_device *device = mock_open("mock");
    hal_memory_statistics now;
    mock->memory_limit = 123456789;
    assert_ok(hal_device_get_memory(device, &now));
    assert_int_equal(now.total_bytes, 123456789);
    const uint32_t calls = mock->calls[MOCK_MEMORY_INFO];
    table_of(device)->memory_info = NULL;
    hal_buffer *buffer = mock_buffer(device, 1 << 20);
    assert_ok(hal_device_get_memory(device, &now));
    assert_int_equal(now.total_bytes, hal_device_get_info(device)->memory_bytes);
    assert_int_equal(now.free_bytes, now.total_bytes - now.in_use_bytes - now.pooled_bytes);
    assert_int_equal(now.in_use_bytes, 1 << 20);
    /* The message of an out-of-memory error has figures all the same. */
    mock->memory_limit = 0;
    hal_buffer *more = NULL;
    assert_fails(hal_buffer_create(device, HAL_MEMORY_DEVICE, 4 << 20, &more),
                 HAL_ERROR_OUT_OF_MEMORY, "of 1073741824 free");
    assert_int_equal(mock->calls[MOCK_MEMORY_INFO], calls);
    hal_buffer_release(buffer);
    hal_device_release(device);
}

static hal_status device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    static const hal_quirk all[] = {{.name = "slow", .reason = "takes its time", .is_active = 1},
                                    {.name = "mute", .is_active = 7},
                                    {.name = "off", .reason = "was turned off"}};
    if (index < sizeof all / sizeof all[0]) {
        *quirk = all[index]; /* and loses the size */
    }
    return device ? HAL_OK : HAL_ERROR_INTERNAL;
}

TEST_WITH(without_quirks_there_are_none, reset, NULL)
{
    static const char *const names[] = {"slow", "mute", "off"};
    static const char *const reasons[] = {"takes its time", "", "was turned off"};
    hal_device *device = mock_open("mock");
    hal_quirk quirk;
    assert_fails(hal_device_get_quirk(device, 0, &quirk), HAL_ERROR_NOT_FOUND, "got 0");
    table_of(device)->device_quirk = device_quirk; /* which the mock lacks */
    for (uint32_t i = 0; i < 3; i++) {
        assert_ok(hal_device_get_quirk(device, i, &quirk));
        assert_string_equal(quirk.name, names[i]);
        assert_string_equal(quirk.reason, reasons[i]);
        assert_int_equal(quirk.is_active, i < 2);
        assert_int_equal(quirk.size, sizeof quirk);
    }
    assert_fails(hal_device_get_quirk(device, 3, &quirk), HAL_ERROR_NOT_FOUND, "got 3");
    assert_fails(hal_device_get_quirk(device, 0, NULL), HAL_ERROR_INVALID_ARGUMENT, "quirk");
    assert_fails(hal_device_get_quirk(NULL, 0, &quirk), HAL_ERROR_INVALID_ARGUMENT, "device");
    hal_device_release(device);
}

TEST_WITH(without_queue_elapsed_there_are_no_times, reset, NULL)
{
    hal_device *device = mock_open("mock");
    hal_buffer *buffer = mock_buffer(device, 256);
    hal_queue *queue = filled(device, buffer, 1);
    hal_point point;
    uint64_t nanoseconds = 0;
    assert_ok(hal_queue_flush(queue, &point));
    assert_ok(hal_point_wait(point, HAL_WAIT_FOREVER));
    assert_ok(hal_point_get_elapsed(point, point, &nanoseconds));
    table_of(device)->queue_elapsed = NULL;
    assert_fails(hal_point_get_elapsed(point, point, &nanoseconds), HAL_ERROR_UNSUPPORTED,
                 "does not support HAL_FEATURE_TIMESTAMPS");
    hal_queue_destroy(queue);
    hal_buffer_release(buffer);
    hal_device_release(device);
}

static hal_status make_native(hal_device *device)
{
    const hal_ir_kernel signature = {.size = sizeof signature,
                                     .version = HAL_IR_VERSION,
                                     .group_size = {1, 1, 1},
                                     .name_bytes = 2,
                                     .names = "n"};
    hal_kernel *kernel = NULL;
    const hal_status status =
        hal_kernel_create_native(device, "mock-text", "code", 4, "n", &signature, &kernel);
    hal_kernel_release(kernel);
    return status;
}

TEST_WITH(without_native_code_no_format_is_taken, reset, NULL)
{
    hal_device *device = mock_open("mock");
    hal_plugin_entries *table = table_of(device);
    const hal_plugin_entries all = *table;
    assert_ok(make_native(device));
    table->formats = NULL;
    assert_fails(make_native(device), HAL_ERROR_UNSUPPORTED, "none");
    *table = all;
    table->kernel_create_native = NULL;
    assert_fails(make_native(device), HAL_ERROR_UNSUPPORTED, "mock-text");
    hal_device_release(device);
}

TEST_WITH(without_gemm_there_is_no_native_product, reset, NULL)
{
    hal_device *device = mock_open("mock");
    const hal_gemm_description product = mock_product();
    hal_kernel *kernel = NULL;
    uint64_t workspace = 0;
    assert_ok(hal_kernel_create_gemm(device, &product, &kernel, &workspace));
    hal_kernel_release(kernel);
    table_of(device)->gemm = NULL;
    assert_fails(hal_kernel_create_gemm(device, &product, &kernel, &workspace),
                 HAL_ERROR_UNSUPPORTED, "has no matrix product");
    double ns = 1;
    assert_fails(hal_gemm_estimate(device, &product, 0, &ns), HAL_ERROR_UNSUPPORTED,
                 "no matrix product");
    hal_device_release(device);
}

/* A description with groups goes only to a plugin that says that it knows them. */
TEST_WITH(groups_of_rows_need_their_feature, reset, NULL)
{
    hal_gemm_description product = mock_product();
    hal_kernel *kernel = NULL;
    uint64_t workspace = 0;
    double ns = 1;
    product.type_offsets = HAL_TYPE_I32;
    hal_device *device = mock_open("mock");
    assert_fails(hal_kernel_create_gemm(device, &product, &kernel, &workspace),
                 HAL_ERROR_UNSUPPORTED, "description.type_offsets: expected none");
    assert_fails(hal_kernel_create_gemm_ahead(device, &product, &kernel, &workspace),
                 HAL_ERROR_UNSUPPORTED, "description.type_offsets: expected none");
    assert_fails(hal_gemm_estimate(device, &product, 0, &ns), HAL_ERROR_UNSUPPORTED,
                 "description.type_offsets: expected none");
    device->info.features |= HAL_FEATURE_GROUPED_PRODUCTS;
    assert_ok(hal_kernel_create_gemm(device, &product, &kernel, &workspace));
    assert_int_equal(kernel->binding_count, 5);
    hal_kernel_release(kernel);
    assert_ok(hal_gemm_estimate(device, &product, 0, &ns));
    product.type_offsets = HAL_TYPE_U32;
    assert_fails(hal_kernel_create_gemm(device, &product, &kernel, &workspace),
                 HAL_ERROR_INVALID_ARGUMENT,
                 "description.type_offsets: expected HAL_TYPE_I32, HAL_TYPE_I64 or none");
    product.type_offsets = HAL_TYPE_I64;
    product.levels = 1;
    assert_fails(hal_kernel_create_gemm(device, &product, &kernel, &workspace),
                 HAL_ERROR_INVALID_ARGUMENT, "description.levels: expected 0 with groups");
    product.levels = 0;
    product.stride_c = 16;
    assert_fails(hal_kernel_create_gemm(device, &product, &kernel, &workspace),
                 HAL_ERROR_INVALID_ARGUMENT, "description.stride_c: expected 0 with groups");
    hal_device_release(device);
}

TEST_WITH(without_attention_there_is_none, reset, NULL)
{
    hal_device *device = mock_open("mock");
    hal_attention_description description = mock_attention();
    hal_kernel *kernel = NULL;
    assert_ok(hal_kernel_create_attention(device, &description, &kernel));
    assert_string_equal(hal_kernel_get_name(kernel), "attention");
    hal_kernel_release(kernel);
    description.m = 1001;
    assert_int_equal(hal_kernel_create_attention(device, &description, &kernel),
                     HAL_ERROR_UNSUPPORTED);
    assert_null(kernel);
    description.m = 5;
    table_of(device)->attention = NULL;
    assert_fails(hal_kernel_create_attention(device, &description, &kernel), HAL_ERROR_UNSUPPORTED,
                 "has no attention");
    hal_device_release(device);
}

TEST_WITH(attention_is_checked, reset, NULL)
{
    hal_device *device = mock_open("mock");
    hal_kernel *kernel = NULL;
    hal_attention_description wrong[7];
    static const char *const names[7] = {".type",  ".causal", ".precision", ".m",
                                         ".batch", ".v",      ".size"};
    for (uint32_t i = 0; i < 7; i++) {
        wrong[i] = mock_attention();
    }
    wrong[0].type = HAL_TYPE_I32;
    wrong[1].causal = 2;
    wrong[2].precision = HAL_GEMM_NORMWISE;
    wrong[3].m = 0;
    wrong[4].batch = 0;
    wrong[5].v.batch = -1;
    wrong[6].size = 8;
    for (uint32_t i = 0; i < 7; i++) {
        assert_fails(hal_kernel_create_attention(device, &wrong[i], &kernel),
                     HAL_ERROR_INVALID_ARGUMENT, names[i]);
    }
    hal_device_release(device);
}

/* Between two devices: the first word of the target, and how often the plugin was asked. */
static uint32_t transferred(hal_device *from, hal_device *to, uint32_t pattern, uint32_t *asked)
{
    hal_buffer *source = mock_buffer(from, 4096);
    hal_buffer *target = mock_buffer(to, 4096);
    hal_queue *one = filled(from, source, pattern);
    hal_queue *other = filled(to, target, 0);
    const uint32_t before = mock->calls[MOCK_REACHES];
    assert_ok(hal_queue_transfer(one, source, 0, other, target, 0, 4096));
    uint32_t word = 0;
    assert_ok(hal_queue_read(other, target, 4092, sizeof word, &word));
    *asked = mock->calls[MOCK_REACHES] - before;
    hal_queue_destroy(one);
    hal_queue_destroy(other);
    hal_buffer_release(source);
    hal_buffer_release(target);
    return word;
}

TEST_WITH(without_device_reaches_hal_goes_through_the_host, reset, NULL)
{
    hal_device *one = mock_open("mock:0");
    hal_device *other = mock_open("mock:1");
    uint32_t asked = 0;
    mock->reach = 1;
    assert_int_equal(transferred(one, other, 0x11223344, &asked), 0x11223344);
    assert_true(asked > 0);
    table_of(one)->device_can_access_peer = NULL;
    assert_int_equal(transferred(one, other, 0x55667788, &asked), 0x55667788);
    assert_int_equal(asked, 0);
    hal_device_release(one);
    hal_device_release(other);
}

/* Names are looked at once, when a plugin is loaded: two plugins that lack one each. */
TEST(without_version_or_build_id)
{
    setenv("HAL_PLUGIN_PATH",
           TEST_PLUGINS "/without/hal_without_version.so:" TEST_PLUGINS
                        "/without/hal_without_build_id.so",
           1);
    hal_device *unversioned = mock_open("without_version");
    hal_device *unbuilt = mock_open("without_build_id");
    hal_registry_report *report = NULL;
    assert_ok(hal_registry_report_create(&report));
    assert_string_equal(report->plugins[0].name, "without_version");
    assert_string_equal(report->plugins[0].version, "");
    assert_string_not_equal(report->plugins[1].version, "");
    assert_string_not_equal(unversioned->plugin->build_id, "");
    assert_string_equal(unbuilt->plugin->build_id, report->plugins[1].version);
    assert_non_null(strstr(unbuilt->cache.identity, report->plugins[1].version));
    hal_registry_report_destroy(report);
    hal_device_release(unversioned);
    hal_device_release(unbuilt);
    mock_begin(state);
}

static int begin(void **state)
{
    mock_begin(state);
    mock = mock_find("mock");
    mock->infos[0].features = HAL_FEATURE_TIMESTAMPS;
    return 0;
}

static int end(void **state)
{
    mock_is_clean(mock);
    return 0;
}

UNIT_MAIN(begin, end)
