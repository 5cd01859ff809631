/* The mock plugin with tables and records of other sizes than hal's, as plugins of another minor
 * version have them. Built twice, for test_plugin_minors and conformance:
 *   hal_shorter.so   SHORTER: records without the reserved fields, and a table that ends before its
 *                    optional entries; the memory after it has addresses that must not be called;
 *   hal_longer.so    LONGER: a later minor: a longer table and longer records. */
#ifdef SHORTER
#define MOCK_NAME "shorter"
#else
#define MOCK_NAME "longer"
#endif

#define hal_plugin_create mock_create
#include "mock.c"
#undef hal_plugin_create

#include <stddef.h>

/* An info as a later minor has it. */
typedef struct longer_info {
    hal_device_info known;
    uint64_t more[5];
} longer_info;

/* A table as a later minor has it: hal must not call, nor copy, what it does not know. */
typedef struct longer_table {
    hal_plugin known;
    void *more[16];
} longer_table;

EXPORT const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                           hal_plugin_instance **instance);

static hal_status enumerate_other_size(hal_plugin_instance *instance, hal_device_info *infos,
                                       uint32_t capacity, uint32_t *count)
{
    (void)instance;
#ifdef LONGER
    const uint32_t stride = sizeof(longer_info);
#else
    const uint32_t stride = offsetof(hal_device_info, reserved);
#endif
    *count = state.device_count;
    for (uint32_t i = 0; i < state.device_count && i < capacity; i++) {
        hal_device_info info = state.infos[i];
        info.size = stride;
        uint8_t *place = (uint8_t *)infos + (size_t)i * stride;
        memset(place, 0xff, stride);
        memcpy(place, &info, stride < sizeof info ? stride : sizeof info);
    }
    return HAL_OK;
}

static hal_status kernel_create_minor(hal_plugin_device *device, const hal_ir_kernel *ir,
                                      hal_plugin_kernel **kernel)
{
    return ir->size < sizeof *ir ? state.host->fail(state.host, HAL_ERROR_INTERNAL,
                                                    "a kernel that is shorter than that of minor 0")
                                 : kernel_create(device, ir, kernel);
}

static hal_status submit_minor(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    return batch->size < sizeof *batch
               ? state.host->fail(state.host, HAL_ERROR_INTERNAL,
                                  "a batch that is shorter than that of minor 0")
               : submit(queue, batch, waits, wait_count, value);
}

/* The mock's own gives 1000 ns for each batch. */
static hal_status queue_elapsed_real(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                     uint64_t *nanoseconds)
{
    pthread_mutex_lock(&lock);
    const int is_known = first + TIMES > queue->done;
    *nanoseconds = queue->ends[second % TIMES] - queue->ends[first % TIMES];
    pthread_mutex_unlock(&lock);
    return is_known ? HAL_OK
                    : state.host->fail(state.host, HAL_ERROR_INVALID_ARGUMENT,
                                       "the first batch is forgotten");
}

/* Times, in a table as a later minor of the extension has it, and peers. */
static const void *query_extension_longer(hal_plugin_instance *instance, const char *name,
                                          uint32_t major)
{
    static struct {
        hal_extension_timing known;
        void *more[4];
    } timing = {.known = {.size = sizeof timing,
                          .version = HAL_EXTENSION_VERSION(1, 3),
                          .queue_elapsed = queue_elapsed_real}};
    memset(timing.more, 0xff, sizeof timing.more);
    if (strcmp(name, HAL_EXTENSION_TIMING) == 0) {
        return major == 1 ? &timing : NULL;
    }
    return strcmp(name, HAL_EXTENSION_PEERS) == 0 ? query_extension(instance, name, major) : NULL;
}

static void describe_devices(void)
{
    for (uint32_t i = 0; i < state.device_count; i++) {
        hal_device_info *info = &state.infos[i];
        info->kind = HAL_DEVICE_SOFTWARE;
        snprintf(info->name, sizeof info->name, "Device %c", 'A' + (char)i);
        snprintf(info->id, sizeof info->id, "minor-%u", i);
        info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
        info->features = HAL_FEATURE_TIMESTAMPS;
        info->max_queues = 1;
    }
    state.reach = 1;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    static longer_table table;
    const hal_plugin *mock =
        host->size < sizeof *host ? NULL : mock_create(host_abi, host, instance);
    if (!mock) {
        return NULL;
    }
    describe_devices();
    memset(&table, 0xff, sizeof table);
    table.known = *mock;
    table.known.enumerate = enumerate_other_size;
    table.known.kernel_create = kernel_create_minor;
    table.known.submit = submit_minor;
    table.known.query_extension = query_extension_longer;
#ifdef SHORTER
    const size_t end = offsetof(hal_plugin, query_extension);
    memset((char *)&table + end, 0xff, sizeof table - end);
    table.known.size = (uint32_t)end;
#else
    table.known.size = sizeof table;
    table.known.abi = HAL_PLUGIN_ABI + 9;
#endif
    return &table.known;
}
