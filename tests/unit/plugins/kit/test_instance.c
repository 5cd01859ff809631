/* Instances: a host that lacks a function of minor 0 gets none, as plugins call those without
 * asking; two instances have two hosts; of devices with one id the later ones get others; what is
 * no extension of the plugin is not offered. */
#include "unit.h"
#include <kit/host.h>
#include <kit/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char sentence[512];
static const hal_host *told; /* the host of the last failure */

static hal_status fail_kept(const hal_host *host, hal_status status, const char *message)
{
    snprintf(sentence, sizeof sentence, "%s", message);
    told = host;
    return status;
}

static void host_free(const hal_host *host, void *memory)
{
    (void)host;
    free(memory);
}

static void *allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    return NULL;
}

static void say(const hal_host *host, uint32_t level, const char *message)
{
}

static hal_status cache_load(const hal_host *host, const char *id, const uint64_t key[2],
                             void **data, uint64_t *bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static hal_status cache_store(const hal_host *host, const char *id, const uint64_t key[2],
                              const void *data, uint64_t bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static void report(const hal_host *host, const char *message)
{
}

static void queue_reached(const hal_host *host, hal_plugin_queue *queue, uint64_t value)
{
}

static void queue_failed(const hal_host *host, hal_plugin_queue *queue, const char *message)
{
}

static const hal_host complete = {.size = sizeof complete,
                                  .abi = HAL_PLUGIN_ABI,
                                  .allocate = allocate,
                                  .release = host_free,
                                  .log = say,
                                  .fail = fail_kept,
                                  .cache_load = cache_load,
                                  .cache_store = cache_store,
                                  .report = report,
                                  .queue_reached = queue_reached,
                                  .queue_failed = queue_failed};

static hal_plugin_instance *made;

static bool has_devices;

/* Without devices says whose host it has; else four, three of which have one id. */
static hal_status device_list(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    static const char *const ids[] = {"gpu", "gpu", "cpu", "gpu"};
    *count = has_devices ? 4 : 0;
    for (uint32_t i = 0; i < *count && i < capacity; i++) {
        infos[i] = (hal_device_info){.size = sizeof *infos};
        snprintf(infos[i].id, sizeof infos[i].id, "%s", ids[i]);
    }
    return has_devices ? HAL_OK : kit_fail(HAL_ERROR_NO_DEVICE, "no device at all");
}

/* Says which one is opened. */
static hal_status device_open(uint32_t index, hal_plugin_device **device)
{
    return kit_fail(HAL_ERROR_IO, "device %u", index);
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    return kit_fail(HAL_ERROR_IO, "batch %llu", (unsigned long long)value);
}

static const hal_plugin *create(uint32_t host_abi, const hal_host *host)
{
    static kit_plugin plugin = {.table = {.name = "tested", .submit = submit},
                                .enumerate = device_list,
                                .device_open = device_open};
    sentence[0] = 0;
    told = NULL;
    made = NULL;
    return kit_plugin_create(&plugin, host_abi, host, &made);
}

TEST(other_versions)
{
    assert_null(create(HAL_PLUGIN_ABI, NULL));
    assert_null(create(HAL_PLUGIN_ABI + (1u << 16), &complete));
    assert_string_equal(sentence, "");
    assert_null(made);
}

/* Null, or beyond the size that the host states. */
TEST(hosts_that_lack_a_function)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
        {"allocate", offsetof(hal_host, allocate)},
        {"release", offsetof(hal_host, release)},
        {"log", offsetof(hal_host, log)},
        {"fail", offsetof(hal_host, fail)},
        {"cache_load", offsetof(hal_host, cache_load)},
        {"cache_store", offsetof(hal_host, cache_store)},
        {"report", offsetof(hal_host, report)},
        {"queue_reached", offsetof(hal_host, queue_reached)},
        {"queue_failed", offsetof(hal_host, queue_failed)},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        hal_host host = complete;
        memset((char *)&host + functions[i].offset, 0, sizeof host.fail);
        assert_null(create(HAL_PLUGIN_ABI, &host));
        if (host.fail) { /* nobody hears of its absence */
            assert_non_null(strstr(sentence, functions[i].name));
        }
    }
    hal_host shorter = complete;
    shorter.size = offsetof(hal_host, queue_failed);
    assert_null(create(HAL_PLUGIN_ABI, &shorter));
    assert_non_null(strstr(sentence, "queue_failed"));
    assert_null(made);
}

/* Each instance has a host of its own, which every entry finds by the instance or by the objects
 * that were made from it. */
TEST(two_instances)
{
    const hal_host other = complete;
    uint32_t count = 1;
    const hal_plugin *table = create(HAL_PLUGIN_ABI, &complete);
    hal_plugin_instance *first = made;
    assert_non_null(table);
    assert_non_null(table->build_id);
    assert_int_equal(table->size, sizeof(hal_plugin));
    assert_int_equal(table->ir_version, HAL_IR_VERSION);
    assert_ptr_equal(create(HAL_PLUGIN_ABI, &other), table);
    hal_plugin_instance *second = made;
    assert_ptr_not_equal(first, second);
    assert_int_equal(table->enumerate(first, NULL, 0, &count), HAL_ERROR_NO_DEVICE);
    assert_ptr_equal(told, &complete);
    assert_int_equal(table->enumerate(second, NULL, 0, &count), HAL_ERROR_NO_DEVICE);
    assert_ptr_equal(told, &other);
    const hal_host *queues[2] = {&complete, &other}; /* an object begins with its host */
    for (int i = 0; i < 2; i++) {
        hal_plugin_queue *queue = (hal_plugin_queue *)(void *)&queues[i];
        assert_int_equal(table->submit(queue, NULL, NULL, 0, 7), HAL_ERROR_IO);
        assert_ptr_equal(told, queues[i]);
    }
    assert_string_equal(sentence, "batch 7");
    table->instance_destroy(first);
    assert_int_equal(table->enumerate(second, NULL, 0, &count), HAL_ERROR_NO_DEVICE);
    assert_ptr_equal(told, &other);
    table->instance_destroy(second);
}

/* An extension without an entry is not offered, and neither is another major. */
TEST(devices_with_one_id)
{
    static const char *const wanted[] = {"gpu", "gpu#2", "cpu", "gpu#3"};
    hal_device_info infos[4];
    hal_plugin_device *device;
    uint32_t count;
    const hal_plugin *table = create(HAL_PLUGIN_ABI, &complete);
    assert_non_null(table);
    has_devices = true;
    assert_int_equal(table->enumerate(made, infos, 4, &count), HAL_OK);
    for (uint32_t i = 0; i < 4; i++) {
        char opened[32];
        assert_string_equal(infos[i].id, wanted[i]);
        assert_int_equal(table->device_open(made, wanted[i], &device), HAL_ERROR_IO);
        snprintf(opened, sizeof opened, "device %u", i);
        assert_string_equal(sentence, opened);
    }
    assert_int_equal(table->device_open(made, "gpu#4", &device), HAL_ERROR_NOT_FOUND);
    has_devices = false;
    table->instance_destroy(made);
}

TEST(extensions)
{
    const hal_plugin *table = create(HAL_PLUGIN_ABI, &complete);
    assert_null(table->query_extension(made, HAL_EXTENSION_GEMM, 1));
    assert_null(table->query_extension(made, HAL_EXTENSION_ATTENTION, 1));
    assert_null(table->query_extension(made, "somebody.else", 1));
    table->instance_destroy(made);
}

UNIT_MAIN(NULL, NULL)
