/* The plugin of plain.c with two devices that access each other's memory, batches that run when
 * they are waited for, and three extensions, as it was built for release 1.0. */
#define hal_plugin_create plain_create
#include "plain.c"
#undef hal_plugin_create

#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { TIMES = 2048 };

__attribute__((visibility("default"))) const hal_plugin *
hal_plugin_create(uint32_t host_abi, const hal_host *host, hal_plugin_instance **instance);

typedef struct job {
    struct job *next;
    uint64_t value;
    uint32_t wait_count;
    hal_batch batch;
    hal_plugin_wait *waits;
} job;

/* The queue of plain.c is its first member. */
typedef struct deferred_queue {
    hal_plugin_queue plain;
    job *first;
    uint64_t ends[TIMES]; /* of value v, at v modulo TIMES, in nanoseconds */
} deferred_queue;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static deferred_queue *queue_of(hal_plugin_queue *queue)
{
    return (deferred_queue *)queue;
}

static hal_status enumerate_two(hal_plugin_instance *instance, hal_device_info *infos,
                                uint32_t capacity, uint32_t *count)
{
    for (uint32_t i = 0; i < 2 && i < capacity; i++) {
        enumerate(instance, &infos[i], 1, count);
        infos[i].features |= HAL_FEATURE_TIMESTAMPS | HAL_FEATURE_FILL_PATTERNS;
        snprintf(infos[i].id, sizeof infos[i].id, "deferred:%u", i);
    }
    *count = 2;
    return HAL_OK;
}

static hal_status device_open_any(hal_plugin_instance *instance, const char *id,
                                  hal_plugin_device **device)
{
    return device_open(instance, strncmp(id, "deferred:", 9) == 0 ? "plain:0" : id, device);
}

static hal_status queue_create_deferred(hal_plugin_device *device, hal_plugin_queue **queue)
{
    (void)device;
    *queue = calloc(1, sizeof(deferred_queue));
    return *queue ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

/* Needs the lock. Values of other queues were submitted, so they can be reached. */
static void queue_run(hal_plugin_queue *queue, uint64_t value)
{
    deferred_queue *self = queue_of(queue);
    while (queue->reached < value && self->first) {
        job *next = self->first;
        self->first = next->next;
        for (uint32_t i = 0; i < next->wait_count; i++) {
            queue_run(next->waits[i].queue, next->waits[i].value);
        }
        submit(queue, &next->batch, next->waits, next->wait_count, next->value);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        self->ends[next->value % TIMES] =
            (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        free(next);
    }
}

static void queue_destroy_deferred(hal_plugin_device *device, hal_plugin_queue *queue)
{
    pthread_mutex_lock(&lock);
    queue_run(queue, UINT64_MAX);
    pthread_mutex_unlock(&lock);
    queue_destroy(device, queue);
}

/* One piece of memory has copies of the batch's arrays. */
static hal_status submit_deferred(hal_plugin_queue *queue, const hal_batch *batch,
                                  const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    const size_t sizes[4] = {batch->command_count * sizeof *batch->commands,
                             batch->binding_count * sizeof *batch->bindings,
                             wait_count * sizeof *waits, batch->scalar_bytes};
    const void *sources[4] = {batch->commands, batch->bindings, waits, batch->scalars};
    void *copies[4];
    job *made = calloc(1, sizeof *made + sizes[0] + sizes[1] + sizes[2] + sizes[3]);
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    uint8_t *at = (uint8_t *)(made + 1);
    for (int i = 0; i < 4; i++) {
        copies[i] = at;
        if (sizes[i] > 0) {
            memcpy(at, sources[i], sizes[i]);
        }
        at += sizes[i];
    }
    made->value = value;
    made->waits = copies[2];
    made->wait_count = wait_count;
    made->batch = (hal_batch){.size = sizeof made->batch,
                              .command_count = batch->command_count,
                              .binding_count = batch->binding_count,
                              .scalar_bytes = batch->scalar_bytes,
                              .commands = copies[0],
                              .bindings = copies[1],
                              .scalars = copies[3]};
    pthread_mutex_lock(&lock);
    job **end = &queue_of(queue)->first;
    while (*end) {
        end = &(*end)->next;
    }
    *end = made;
    pthread_mutex_unlock(&lock);
    return HAL_OK;
}

static hal_status wait_deferred(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    pthread_mutex_lock(&lock);
    if (timeout_ns > 0) {
        queue_run(queue, value);
    }
    const hal_status status = queue->reached >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
    pthread_mutex_unlock(&lock);
    return status;
}

static hal_status queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    pthread_mutex_lock(&lock);
    const uint64_t *ends = queue_of(queue)->ends;
    *nanoseconds = ends[second % TIMES] - ends[first % TIMES];
    const int is_known = queue->reached < first + TIMES;
    pthread_mutex_unlock(&lock);
    return is_known ? HAL_OK : HAL_ERROR_INVALID_ARGUMENT;
}

static hal_status memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes)
{
    (void)device;
    *free_bytes = *total_bytes = UINT64_C(1) << 28;
    return HAL_OK;
}

static uint32_t device_can_access_peer(hal_plugin_device *device, hal_plugin_device *other)
{
    (void)device;
    (void)other;
    return 1;
}

#define VERSIONED(extension) \
    .size = sizeof(hal_extension_##extension), .version = HAL_EXTENSION_VERSION(1, 0)

static const void *query_extension(hal_plugin_instance *instance, const char *name, uint32_t major)
{
    static const hal_extension_timing timing = {VERSIONED(timing), .queue_elapsed = queue_elapsed};
    static const hal_extension_memory_info memory = {VERSIONED(memory_info),
                                                     .memory_info = memory_info};
    static const hal_extension_peers peers = {VERSIONED(peers),
                                              .device_can_access_peer = device_can_access_peer};
    (void)instance;
    return major != 1                                     ? NULL
           : strcmp(name, HAL_EXTENSION_TIMING) == 0      ? (const void *)&timing
           : strcmp(name, HAL_EXTENSION_MEMORY_INFO) == 0 ? (const void *)&memory
           : strcmp(name, HAL_EXTENSION_PEERS) == 0       ? (const void *)&peers
                                                          : NULL;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    static hal_plugin table;
    const hal_plugin *plain = plain_create(host_abi, host, instance);
    if (!plain) {
        return NULL;
    }
    table = *plain;
    table.name = "deferred";
    table.enumerate = enumerate_two;
    table.device_open = device_open_any;
    table.queue_create = queue_create_deferred;
    table.queue_destroy = queue_destroy_deferred;
    table.submit = submit_deferred;
    table.wait = wait_deferred;
    table.query_extension = query_extension;
    return &table;
}
