/* Descriptions of devices by plugins: of older and newer minors, and what they must not
 * hold. */

#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/device_info.h"
#include "base/status.h"

#define RECORDS 3u
#define ROOM (RECORDS * HAL_DEVICE_INFO_MAX_BYTES)

static const hal_plugin_entries plugin = {.name = "tested"};

static hal_device_info usual(void)
{
    return (hal_device_info){.size = sizeof(hal_device_info),
                             .kind = HAL_DEVICE_DISCRETE,
                             .name = "Device",
                             .id = "device",
                             .max_allocation = 1024,
                             .max_binding = 1024,
                             .binding_alignment = 16,
                             .compute_units = 4,
                             .max_group_items = 128,
                             .max_group_size = {128, 128, 64},
                             .max_grid = {65535, 65535, 65535},
                             .max_queues = 2,
                             .max_loop_iterations = 7};
}

/* Infos from records of `size` bytes each, which lie so far apart. */
static hal_status take(const hal_device_info *info, uint32_t size, hal_device_info **infos)
{
    static char records[ROOM];
    memset(records, 0xee, sizeof records);
    for (uint32_t i = 0; i < RECORDS; i++) {
        hal_device_info one = *info;
        one.size = size;
        one.compute_units += i;
        snprintf(one.id, sizeof one.id, "device %u", i);
        memcpy(records + (size_t)i * size, &one, size < sizeof one ? size : sizeof one);
    }
    return hal_device_infos_take(&plugin, records, RECORDS, infos);
}

TEST(records_of_every_minor)
{
    static const uint32_t sizes[] = {offsetof(hal_device_info, reserved), 472,
                                     sizeof(hal_device_info) + 8, HAL_DEVICE_INFO_MAX_BYTES};
    const hal_device_info info = usual();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hal_device_info *infos = NULL;
        assert_ok(take(&info, sizes[s], &infos));
        for (uint32_t i = 0; i < RECORDS; i++) {
            assert_int_equal(infos[i].size, sizeof *infos);
            assert_string_equal(infos[i].name, "Device");
            assert_int_equal(infos[i].compute_units, 4 + i);
            assert_int_equal(infos[i].max_queues, 2);
            assert_int_equal(infos[i].max_loop_iterations, 7);
        }
        free(infos);
    }
}

static void expect_refused(const hal_device_info *info, const char *words)
{
    hal_device_info *infos = NULL;
    assert_int_equal(hal_device_infos_take(&plugin, (const char *)info, 1, &infos),
                     HAL_ERROR_BAD_PLUGIN);
    assert_null(infos);
    if (!strstr(hal_status_message(), "plugin tested: device 0") ||
        !strstr(hal_status_message(), words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, hal_status_message());
    }
}

TEST(sizes_that_cannot_be)
{
    static const uint32_t sizes[] = {0,
                                     4,
                                     offsetof(hal_device_info, reserved[1]) - 8,
                                     sizeof(hal_device_info) + 4,
                                     HAL_DEVICE_INFO_MAX_BYTES + 8,
                                     UINT32_MAX - 7,
                                     UINT32_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        hal_device_info info = usual();
        info.size = sizes[s];
        expect_refused(&info, "size: expected sizeof(hal_device_info)");
    }
}

TEST(records_of_two_sizes)
{
    hal_device_info two[2] = {usual(), usual()};
    two[1].id[0] = 'D';
    two[1].size += 8;
    hal_device_info *infos = NULL;
    assert_fails(hal_device_infos_take(&plugin, (const char *)two, 2, &infos), HAL_ERROR_BAD_PLUGIN,
                 "device 1: size: expected 472, as device 0, got 480");
    two[1].size = 0;
    assert_fails(hal_device_infos_take(&plugin, (const char *)two, 2, &infos), HAL_ERROR_BAD_PLUGIN,
                 "device 1: size: expected sizeof(hal_device_info)");
}

/* hal opens devices by their ids. */
TEST(two_devices_of_one_id)
{
    const hal_device_info two[2] = {usual(), usual()};
    hal_device_info *infos = NULL;
    assert_fails(hal_device_infos_take(&plugin, (const char *)two, 2, &infos), HAL_ERROR_BAD_PLUGIN,
                 "device 1: id: expected one that no other device has, got \"device\"");
}

#define REFUSED(change, words)          \
    do {                                \
        hal_device_info info = usual(); \
        info.change;                    \
        expect_refused(&info, words);   \
    } while (0)

TEST(fields_that_cannot_be)
{
    REFUSED(kind = 0, "kind");
    REFUSED(kind = 6, "kind");
    REFUSED(id[0] = 0, "id: expected a text");
    REFUSED(binding_alignment = 0, "binding_alignment");
    REFUSED(binding_alignment = 24, "binding_alignment");
    REFUSED(binding_alignment = 512, "binding_alignment");
    REFUSED(subgroup_width = 3, "subgroup_width");
    REFUSED(subgroup_width = 256, "subgroup_width");
    REFUSED(max_group_items = 0, "max_group_items");
    REFUSED(max_group_size[2] = 0, "max_group_size");
    REFUSED(max_grid[1] = 0, "max_grid");
    REFUSED(max_allocation = 0, "max_allocation");
    REFUSED(max_binding = 0, "max_binding");
}

static hal_device_info taken(const hal_device_info *info, const hal_plugin_entries *from)
{
    hal_device_info *infos = NULL;
    assert_ok(hal_device_infos_take(from, (const char *)info, 1, &infos));
    const hal_device_info got = *infos;
    free(infos);
    return got;
}

static hal_status any_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                              uint64_t *nanoseconds)
{
    (void)queue;
    *nanoseconds = second - first;
    return HAL_OK;
}

static hal_status any_part(hal_plugin_device *device, uint64_t *bytes)
{
    (void)device;
    *bytes = 4096;
    return HAL_OK;
}

static hal_status any_memory(hal_plugin_device *device, uint64_t bytes, hal_plugin_memory **memory)
{
    *memory = NULL;
    return device && bytes ? HAL_ERROR_UNSUPPORTED : HAL_ERROR_INTERNAL;
}

static hal_status any_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                           hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    return HAL_ERROR_UNSUPPORTED;
}

static hal_status any_parts(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                            uint64_t bytes)
{
    return device && memory && offset + bytes ? HAL_ERROR_UNSUPPORTED : HAL_ERROR_INTERNAL;
}

TEST(what_is_more_than_hal_can_use_is_cut_down)
{
    hal_device_info info = usual();
    info.max_bindings = 1000;
    info.shared_bytes = UINT32_MAX;
    info.max_group_items = UINT32_MAX;
    info.max_group_size[0] = UINT32_MAX;
    info.preferred_group = UINT32_MAX;
    info.compute_units = 0;
    info.max_queues = 0;
    info.exactness = info.features = info.storage_types = info.arithmetic_types = UINT32_MAX;
    info.math_f32 = info.math_f64 = info.matrix_types = UINT32_MAX;
    info.reserved[3] = 1;
    const hal_device_info got = taken(&info, &plugin);
    assert_int_equal(got.max_bindings, HAL_IR_MAX_BINDINGS);
    assert_int_equal(got.shared_bytes, HAL_IR_MAX_SHARED_BYTES);
    assert_int_equal(got.max_group_items, HAL_IR_MAX_GROUP_ITEMS);
    assert_int_equal(got.max_group_size[0], HAL_IR_MAX_GROUP_ITEMS);
    assert_int_equal(got.max_group_size[1], 128);
    assert_int_equal(got.preferred_group, HAL_IR_MAX_GROUP_ITEMS);
    assert_int_equal(got.compute_units, 1);
    assert_int_equal(got.max_queues, 1);
    assert_int_equal(got.exactness, 0xf);
    assert_int_equal(got.features, 0x3ff & ~HAL_FEATURE_TIMESTAMPS);
    assert_int_equal(got.storage_types, 0x7ffe);
    assert_int_equal(got.arithmetic_types, 0x7ffe);
    assert_int_equal(got.math_f32, 0x3fff);
    assert_int_equal(got.math_f64, 0x3fff);
    assert_int_equal(got.matrix_types, HAL_TYPES_MATRIX);
    assert_int_equal(got.reserved[3], 0);

    info.preferred_group = 0;
    assert_int_equal(taken(&info, &plugin).preferred_group, 64);
    info.max_group_size[0] = 32;
    assert_int_equal(taken(&info, &plugin).preferred_group, 32);

    const hal_plugin_entries with_entries = {.name = "tested",
                                             .queue_elapsed = any_elapsed,
                                             .part_bytes = any_part,
                                             .memory_reserve = any_memory,
                                             .memory_commit = any_parts,
                                             .memory_decommit = any_parts};
    const uint32_t of_gemm = HAL_FEATURE_INTEGER_PRODUCTS | HAL_FEATURE_GROUPED_PRODUCTS;
    hal_plugin_entries with_gemm = with_entries;
    with_gemm.gemm = any_gemm;
    assert_int_equal(taken(&info, &with_gemm).features, 0x7ff | of_gemm);
    assert_int_equal(taken(&info, &with_entries).features, 0x7ff);
    hal_plugin_entries lacks[] = {with_entries, with_entries, with_entries, with_entries};
    lacks[0].part_bytes = NULL;
    lacks[1].memory_reserve = NULL;
    lacks[2].memory_commit = NULL;
    lacks[3].memory_decommit = NULL;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(taken(&info, &lacks[i]).features, 0x7ff & ~HAL_FEATURE_VIRTUAL_MEMORY);
    }
}

TEST(strings_end_and_are_fit_to_be_shown)
{
    hal_device_info info = usual();
    memset(info.name, 'n', sizeof info.name);
    memset(info.id, 'i', sizeof info.id);
    memset(info.driver, 'd', sizeof info.driver);
    memset(info.architecture, 'a', sizeof info.architecture);
    memcpy(info.name, "\x1b[2J\n\x7f\xc3\xa4", 8);
    const hal_device_info got = taken(&info, &plugin);
    assert_int_equal(strlen(got.name), 127);
    assert_memory_equal(got.name, "?[2J??\xc3\xa4n", 9);
    assert_int_equal(strlen(got.id), 63);
    assert_int_equal(strlen(got.driver), 63);
    assert_int_equal(strlen(got.architecture), 63);
    assert_int_equal(got.max_queues, 2);

    static const struct {
        const char *in, *out;
    } texts[] = {
        {"\xe2\x82\xac \xf0\x9f\x98\x80 \xc3\x9f", "\xe2\x82\xac \xf0\x9f\x98\x80 \xc3\x9f"},
        {"a\xff"
         "b\x80"
         "c",
         "a?b?c"},                           /* bytes that begin nothing */
        {"\xc0\xaf \xe0\x80\xaf", "?? ???"}, /* longer than they need be */
        {"\xed\xa0\x80", "???"},             /* half of a pair */
        {"\xf4\x90\x80\x80", "????"},        /* beyond the last character */
        {"\xf8\x88\x80\x80\x80", "?????"},
        {"\xc2\x9b"
         "2J",
         "??2J"}, /* a control of two bytes */
        {"cut \xe2\x82", "cut ??"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        info = usual();
        memcpy(info.driver, texts[i].in, strlen(texts[i].in) + 1);
        const hal_device_info shown = taken(&info, &plugin);
        assert_string_equal(shown.driver, texts[i].out);
    }
}

UNIT_MAIN(NULL, NULL)
