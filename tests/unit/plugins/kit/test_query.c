/* The answer to hal_plugin_query: a host that lacks a function of minor 0 gets no table, as plugins
 * call those without asking. */
#include "unit.h"
#include <kit/query.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char sentence[512];
static const hal_host *kept;

static hal_status fail_kept(hal_status status, const char *message)
{
    snprintf(sentence, sizeof sentence, "%s", message);
    return status;
}

static void *allocate(uint64_t bytes, uint64_t alignment)
{
    return NULL;
}

static void say(uint32_t level, const char *message)
{
}

static hal_status cache_load(const char *id, const uint64_t key[2], void **data, uint64_t *bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static hal_status cache_store(const char *id, const uint64_t key[2], const void *data,
                              uint64_t bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static void report(const char *message)
{
}

static void queue_reached(hal_plugin_queue *queue, uint64_t value)
{
}

static void queue_failed(hal_plugin_queue *queue, const char *message)
{
}

static const hal_host complete = {.size = sizeof complete,
                                  .abi = HAL_PLUGIN_ABI,
                                  .allocate = allocate,
                                  .release = free,
                                  .log = say,
                                  .fail = fail_kept,
                                  .cache_load = cache_load,
                                  .cache_store = cache_store,
                                  .report = report,
                                  .queue_reached = queue_reached,
                                  .queue_failed = queue_failed};

static void keep_host(const hal_host *host)
{
    kept = host;
}

static const hal_plugin *query(uint32_t host_abi, const hal_host *host)
{
    static hal_plugin table = {.size = sizeof table, .abi = HAL_PLUGIN_ABI, .name = "tested"};
    sentence[0] = 0;
    return kit_plugin_query(&table, host_abi, host, keep_host);
}

TEST(other_versions)
{
    assert_null(query(HAL_PLUGIN_ABI, NULL));
    assert_null(query(HAL_PLUGIN_ABI + (1u << 16), &complete));
    assert_string_equal(sentence, "");
    assert_null(kept);
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
        assert_null(query(HAL_PLUGIN_ABI, &host));
        if (host.fail) { /* nobody hears of its absence */
            assert_non_null(strstr(sentence, functions[i].name));
        }
    }
    hal_host shorter = complete;
    shorter.size = offsetof(hal_host, queue_failed);
    assert_null(query(HAL_PLUGIN_ABI, &shorter));
    assert_non_null(strstr(sentence, "queue_failed"));
    assert_null(kept);
}

/* Runs last: the first host that is taken stays. */
TEST(one_host)
{
    const hal_host copy = complete;
    const hal_plugin *table = query(HAL_PLUGIN_ABI, &complete);
    assert_non_null(table);
    assert_ptr_equal(kept, &complete);
    assert_non_null(table->build_id);
    assert_ptr_equal(query(HAL_PLUGIN_ABI, &complete), table);
    assert_null(query(HAL_PLUGIN_ABI, &copy));
    assert_non_null(strstr(sentence, "another copy"));
    assert_ptr_equal(kept, &complete);
}

UNIT_MAIN(NULL, NULL)
