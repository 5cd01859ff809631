/* order.c: faults between batches and queues. The cpu plugin runs a batch inside `submit`; here a
 * batch runs when its queue is waited for, as on a device that works in parallel with the host.
 * Only then does a lost wait have an effect. */
#include "mutant.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_PENDING 64u                /* batches of a queue */
#define SHORT 2u                        /* commands of a batch that a wait with a limit runs */
#define LOOKS 64u                       /* a look at a longer batch runs it once in that many */
#define PATIENT_NS UINT64_C(2000000000) /* a wait with such a limit runs what it waits for */

/* A batch that has not run yet. */
typedef struct pending {
    struct pending *next;
    wrap_batch batch;
    hal_plugin_wait *waits;
    uint32_t wait_count;
    uint64_t value;
} pending;

/* The mutant's data of a queue. */
typedef struct timeline {
    pending *first;
    uint32_t count;
    uint32_t looks;
    uint64_t reached;
    uint32_t device; /* number of the device */
    hal_plugin_device *owner;
} timeline;

/* Under the lock: the device of which a batch failed. */
static hal_plugin_device *lost_device;

/* Guards all timelines. The holder may run batches, which wait for others. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct {
    bool waits_dropped;     /* a batch does not wait for other queues */
    bool other_device_only; /* except for queues of the same device */
    uint32_t most_waits;    /* a batch waits for so many of the queues at most; 0: for all */
    bool value_is_short;    /* values are compared by their low 16 bits */
    bool is_deep;           /* to reach a value, a call reaches the one before it */
    bool limit_lies;        /* a wait that ends by its limit says that all is done */
    bool overtakes;         /* a batch overtakes the one before it */
    bool copies_short;      /* copies to another device lose the last bytes */
    bool loses_all;         /* a batch that fails loses each device */
    bool tells_early;       /* a value is told as reached when it is submitted */
    bool targets_start;     /* copies to another device begin at its memory's beginning */
    uint32_t most_deep;     /* waits of waits of waits are dropped from there on; 0: never */
    uint32_t early_from;    /* a wait does without the last batch from that many on; 0: never */
} faults;

static hal_status wait_for_others(const hal_plugin_queue *queue, const pending *batch);

static hal_status check_lost(const timeline *line)
{
    return lost_device != line->owner && !(lost_device && faults.loses_all)
               ? HAL_OK
               : wrap_fail(HAL_ERROR_DEVICE_LOST, "mutant: the device was lost by a batch");
}

static void pending_free(pending *old)
{
    wrap_batch_free(&old->batch);
    free(old->waits);
    free(old);
}

static hal_status run_first(hal_plugin_queue *queue, timeline *line)
{
    pending *batch = line->first;
    if (!batch) {
        return wrap_fail(HAL_ERROR_INVALID_STATE,
                         "mutant: a wait for a value that was never submitted");
    }
    if (faults.overtakes && batch->next) {
        const wrap_batch later = batch->next->batch;
        batch->next->batch = batch->batch;
        batch->batch = later;
    }
    hal_status status = wait_for_others(queue, batch);
    if (status == HAL_OK) {
        status = wrap_inside()->submit(queue, &batch->batch.batch, NULL, 0, batch->value);
    }
    line->first = batch->next;
    line->count--;
    line->reached = batch->value;
    if (status != HAL_OK) {
        wrap_host()->queue_failed(wrap_host(), queue, "mutant: a batch failed");
        lost_device = line->owner;
    }
    pending_free(batch);
    return check_lost(line);
}

/* Reaches the value before first, in a call of its own. */
static hal_status reach(hal_plugin_queue *queue, timeline *line, uint64_t value)
{
    volatile char frame[8192];
    frame[0] = 0;
    const hal_status before =
        line->reached + 1 < value ? reach(queue, line, value - 1) : (hal_status)frame[0];
    return before == HAL_OK && line->reached < value ? run_first(queue, line) : before;
}

static hal_status wait_for_others(const hal_plugin_queue *queue, const pending *batch)
{
    static uint32_t depth; /* under the lock */
    hal_status status = HAL_OK;
    const timeline *own = wrap_find(queue);
    if (faults.most_deep > 0 && depth >= faults.most_deep) {
        return HAL_OK;
    }
    depth++;
    for (uint32_t i = 0; i < batch->wait_count && status == HAL_OK; i++) {
        timeline *other = wrap_find(batch->waits[i].queue);
        if (faults.waits_dropped && (!faults.other_device_only || own->device != other->device)) {
            continue;
        }
        if (faults.most_waits > 0 && i >= faults.most_waits) {
            break;
        }
        while (other && other->reached < batch->waits[i].value && status == HAL_OK) {
            status = faults.is_deep ? reach(batch->waits[i].queue, other, batch->waits[i].value)
                                    : run_first(batch->waits[i].queue, other);
        }
    }
    depth--;
    return status;
}

/* Of copies between two devices. */
static void shorten_copies(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        hal_binding *binding = &batch->bindings[batch->commands[i].binding_first];
        if (batch->commands[i].kind == HAL_COMMAND_COPY && binding[0].length > 64) {
            hal_plugin_device *const *from = wrap_find(binding[0].memory);
            hal_plugin_device *const *to = wrap_find(binding[1].memory);
            const bool is_other = from && to && *from != *to;
            const uint64_t lost = is_other && faults.copies_short ? 16 : 0;
            binding[0].length -= lost;
            binding[1].length -= lost;
            binding[1].offset = is_other && faults.targets_start ? 0 : binding[1].offset;
        }
    }
}

static pending *keep(const hal_batch *batch, const hal_plugin_wait *waits, uint32_t wait_count)
{
    pending *made = calloc(1, sizeof(*made));
    hal_plugin_wait *others = malloc(wait_count * sizeof(*waits) + 1);
    if (!made || !others || !wrap_batch_copy(&made->batch, batch)) {
        free(others);
        free(made);
        return NULL;
    }
    if (wait_count > 0) {
        memcpy(others, waits, wait_count * sizeof(*waits));
    }
    made->waits = others;
    made->wait_count = wait_count;
    if (faults.copies_short || faults.targets_start) {
        shorten_copies(&made->batch);
    }
    return made;
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    timeline *line = wrap_find(queue);
    pending *made = keep(batch, waits, wait_count);
    if (!made) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    made->value = value;
    pthread_mutex_lock(&lock);
    hal_status status = check_lost(line);
    if (status == HAL_OK && line->count >= MOST_PENDING && !faults.is_deep) {
        status = run_first(queue, line);
    }
    pending **end = &line->first;
    while (*end) {
        end = &(*end)->next;
    }
    *end = status == HAL_OK ? made : NULL;
    line->count += status == HAL_OK;
    pthread_mutex_unlock(&lock);
    if (faults.tells_early && status == HAL_OK) {
        wrap_host()->queue_reached(wrap_host(), queue, value);
    }
    if (status != HAL_OK) {
        pending_free(made);
    }
    return status;
}

/* Whether a wait runs the next batch: a look and a limit are too short for long ones. */
static bool may_run(timeline *line, uint64_t timeout_ns)
{
    return timeout_ns >= PATIENT_NS || !line->first ||
           line->first->batch.batch.command_count <= SHORT ||
           (timeout_ns == 0 && !faults.is_deep && ++line->looks % LOOKS == 0);
}

static hal_status wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    timeline *line = wrap_find(queue);
    hal_status status = HAL_OK;
    if (faults.limit_lies && timeout_ns != 0 && timeout_ns != UINT64_MAX) {
        return HAL_OK;
    }
    value &= faults.value_is_short ? 0xffff : UINT64_MAX;
    pthread_mutex_lock(&lock);
    const bool early = faults.early_from > 0 && line->count >= faults.early_from;
    while (line->reached < value && status == HAL_OK && may_run(line, timeout_ns)) {
        if (early && timeout_ns != 0 && line->count == 1) {
            break;
        }
        status = faults.is_deep ? reach(queue, line, value) : run_first(queue, line);
        if (timeout_ns == 0) {
            break;
        }
    }
    if (status == HAL_OK && !early && line->reached < value) {
        status = HAL_ERROR_TIMEOUT;
        usleep((useconds_t)(timeout_ns / 1000));
    } else if (status == HAL_OK) {
        status = check_lost(line);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static hal_status queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    hal_status status = wrap_inside()->queue_create(device, queue);
    timeline *line = status == HAL_OK ? wrap_keep(*queue, sizeof(*line)) : NULL;
    if (status == HAL_OK && !line) {
        wrap_inside()->queue_destroy(device, *queue);
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a queue");
    }
    if (line) {
        const uint32_t *number = wrap_find(device);
        line->device = number ? *number : 0;
        line->owner = device;
    }
    return status;
}

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    wrap_drop(queue);
    wrap_inside()->queue_destroy(device, queue);
}

static void device_close(hal_plugin_device *device)
{
    pthread_mutex_lock(&lock);
    lost_device = lost_device == device ? NULL : lost_device;
    pthread_mutex_unlock(&lock);
    wrap_drop(device);
    wrap_inside()->device_close(device);
}

/* No fault by itself. */
static void deferred(wrap_table *table)
{
    table->device_close = device_close;
    table->queue_create = queue_create;
    table->queue_destroy = queue_destroy;
    table->submit = submit;
    table->wait = wait;
}

static void wait_dropped(wrap_table *table)
{
    faults.waits_dropped = true;
    deferred(table);
}

static void overtake(wrap_table *table)
{
    faults.overtakes = true;
    deferred(table);
}

static void wait_second(wrap_table *table)
{
    faults.most_waits = 1;
    deferred(table);
}

static void wait_fifth(wrap_table *table)
{
    faults.most_waits = 4;
    deferred(table);
}

static void wait_seventeenth(wrap_table *table)
{
    faults.most_waits = 16;
    deferred(table);
}

static void wait_33rd(wrap_table *table)
{
    faults.most_waits = 32;
    deferred(table);
}

static void wait_65th(wrap_table *table)
{
    faults.most_waits = 64;
    deferred(table);
}

static void wait_257th(wrap_table *table)
{
    faults.most_waits = 256;
    deferred(table);
}

static void wait_value(wrap_table *table)
{
    faults.value_is_short = true;
    deferred(table);
}

static void wait_deep(wrap_table *table)
{
    faults.is_deep = true;
    deferred(table);
}

static void wait_limit(wrap_table *table)
{
    faults.limit_lies = true;
    deferred(table);
}

static void wait_early(wrap_table *table)
{
    faults.early_from = 8;
    deferred(table);
}

static hal_status enumerate_two(hal_plugin_instance *instance, hal_device_info *infos,
                                uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity >= 2) {
        infos[1] = infos[0];
        strcpy(infos[1].id, "the second one");
    }
    *count = 2;
    return status;
}

static hal_status open_one_of_two(hal_plugin_instance *instance, const char *id,
                                  hal_plugin_device **device)
{
    const bool is_second = strcmp(id, "the second one") == 0;
    if (!is_second && strcmp(id, wrap_first_id()) != 0) {
        return wrap_fail(HAL_ERROR_NOT_FOUND, "mutant: a device that is not there");
    }
    const hal_status status = wrap_inside()->device_open(instance, wrap_first_id(), device);
    uint32_t *number = status == HAL_OK ? wrap_keep(*device, sizeof(*number)) : NULL;
    if (number) {
        *number = is_second;
    }
    return status;
}

static uint32_t reaches(hal_plugin_device *device, hal_plugin_device *other)
{
    (void)device;
    (void)other;
    return 1;
}

/* No fault by itself. */
static void two(wrap_table *table)
{
    table->enumerate = enumerate_two;
    table->device_open = open_one_of_two;
    table->device_can_access_peer = reaches;
    deferred(table);
}

static hal_status allocate_of_device(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                     hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    hal_plugin_device **owner = status == HAL_OK ? wrap_keep(*memory, sizeof(*owner)) : NULL;
    if (owner) {
        *owner = device;
    }
    return status;
}

static void free_of_device(hal_plugin_device *device, hal_plugin_memory *memory)
{
    wrap_drop(memory);
    wrap_inside()->memory_free(device, memory);
}

static void two_with_owners(wrap_table *table)
{
    two(table);
    table->memory_allocate = allocate_of_device;
    table->memory_free = free_of_device;
}

static void two_copy(wrap_table *table)
{
    faults.copies_short = true;
    two_with_owners(table);
}

static void two_copy_offset(wrap_table *table)
{
    faults.targets_start = true;
    two_with_owners(table);
}

static void reached_early(wrap_table *table)
{
    faults.tells_early = true;
    deferred(table);
}

static void waits_sixteen_deep(wrap_table *table)
{
    faults.most_deep = 16;
    deferred(table);
}

static void two_lost(wrap_table *table)
{
    faults.loses_all = true;
    two(table);
}

static void two_waits(wrap_table *table)
{
    faults.waits_dropped = true;
    faults.other_device_only = true;
    two(table);
}

/* The time since the queue was made, not since the first point. */
static hal_status elapsed_since_start(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                      uint64_t *nanoseconds)
{
    (void)first;
    return wrap_inside()->queue_elapsed(queue, 1, second, nanoseconds);
}

static hal_status elapsed_in_micro(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                   uint64_t *nanoseconds)
{
    const hal_status status = wrap_inside()->queue_elapsed(queue, first, second, nanoseconds);
    *nanoseconds /= 1000;
    return status;
}

static void elapsed_unit(wrap_table *table)
{
    table->queue_elapsed = elapsed_in_micro;
}

/* The times of the last 64 batches are kept, and older ones taken for the oldest of these. */
static hal_status elapsed_of_64(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    const uint64_t oldest = second > 64 ? second - 64 : 1;
    return wrap_inside()->queue_elapsed(queue, first > oldest ? first : oldest, second,
                                        nanoseconds);
}

static void elapsed_recent(wrap_table *table)
{
    table->queue_elapsed = elapsed_of_64;
}

static void elapsed_total(wrap_table *table)
{
    table->queue_elapsed = elapsed_since_start;
}

const mutant mutants_order[] = {{.name = "deferred", .table = deferred},
                                {.name = "two", .table = two},
                                {.name = "wait_dropped", .table = wait_dropped},
                                {.name = "wait_early", .table = wait_early},
                                {.name = "wait_limit", .table = wait_limit},
                                {.name = "two_waits", .table = two_waits},
                                {.name = "elapsed_total", .table = elapsed_total},
                                {.name = "wait_second", .table = wait_second},
                                {.name = "wait_fifth", .table = wait_fifth},
                                {.name = "wait_seventeenth", .table = wait_seventeenth},
                                {.name = "wait_33rd", .table = wait_33rd},
                                {.name = "wait_65th", .table = wait_65th},
                                {.name = "wait_257th", .table = wait_257th},
                                {.name = "wait_value", .table = wait_value},
                                {.name = "wait_deep", .table = wait_deep},
                                {.name = "overtake", .table = overtake},
                                {.name = "two_copy", .table = two_copy},
                                {.name = "two_lost", .table = two_lost},
                                TABLE(two_copy_offset),
                                TABLE(reached_early),
                                TABLE(waits_sixteen_deep),
                                {.name = "elapsed_unit", .table = elapsed_unit},
                                {.name = "elapsed_recent", .table = elapsed_recent},
                                {.name = NULL}};
