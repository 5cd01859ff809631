/* failures.c: faults after a call that failed: in batches that are refused, and in what such a call
 * leaves. Those of batches that fail later are in threaded.c. */
#include "mutant.h"

/* ---- Refused batches ---- */

/* The commands before an unknown one have run when the batch is refused. */
static hal_status submit_in_part(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_batch known = *batch;
    known.command_count = 0;
    while (known.command_count < batch->command_count &&
           batch->commands[known.command_count].kind <= HAL_COMMAND_COPY_ROWS) {
        known.command_count++;
    }
    const hal_status status = wrap_inside()->submit(queue, &known, waits, wait_count, value);
    return status != HAL_OK || known.command_count == batch->command_count
               ? status
               : wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: a command of an unknown kind");
}

static void refused_in_part(wrap_table *table)
{
    table->submit = submit_in_part;
}

/* An unknown command does nothing. */
static hal_status submit_known(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_batch known = *batch;
    while (known.command_count > 0 &&
           batch->commands[known.command_count - 1].kind > HAL_COMMAND_COPY_ROWS) {
        known.command_count--;
    }
    return wrap_inside()->submit(queue, &known, waits, wait_count, value);
}

static void unknown_ignored(wrap_table *table)
{
    table->submit = submit_known;
}

/* After a batch that was refused, the next one only reaches its value. */
static hal_status submit_once(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    static bool was_refused;
    hal_batch taken = *batch;
    taken.command_count = was_refused ? 0 : batch->command_count;
    const hal_status status = wrap_inside()->submit(queue, &taken, waits, wait_count, value);
    was_refused = status == HAL_ERROR_UNSUPPORTED;
    return status;
}

static void refused_swallows(wrap_table *table)
{
    table->submit = submit_once;
}

static void fail_nothing(hal_plugin_queue *queue)
{
    (void)queue;
}

static void fails_not(wrap_table *table)
{
    table->queue_fail_next = fail_nothing;
}

/* After a failure the device cannot be opened, and is not called lost. */
static bool has_failed;

static void fail_next(hal_plugin_queue *queue)
{
    has_failed = true;
    wrap_inside()->queue_fail_next(queue);
}

static hal_status open_before_failures(hal_plugin_instance *instance, const char *id,
                                       hal_plugin_device **device)
{
    *device = NULL;
    return has_failed ? wrap_fail(HAL_ERROR_INTERNAL, "mutant: the context is broken")
                      : wrap_inside()->device_open(instance, id, device);
}

static void reopen_internal(wrap_table *table)
{
    table->queue_fail_next = fail_next;
    table->device_open = open_before_failures;
}

/* ---- A call that fails ---- */

/* The mutant's data of a queue. */
typedef struct blocks {
    void *first, *second; /* memory of the host */
} blocks;

static bool fails_leaks;

/* Takes two blocks of the host's memory for a queue. */
static hal_status create_with_blocks(hal_plugin_device *device, hal_plugin_queue **queue)
{
    const hal_host *host = wrap_host();
    blocks taken = {.first = host->allocate(host, 64, 16)};
    taken.second = taken.first ? host->allocate(host, 64, 16) : NULL;
    hal_status status = taken.second ? wrap_inside()->queue_create(device, queue)
                                     : wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory");
    blocks *kept = status == HAL_OK ? wrap_keep(*queue, sizeof(*kept)) : NULL;
    if (kept) {
        *kept = taken;
    } else {
        host->release(host, taken.second);
        host->release(host, fails_leaks ? NULL : taken.first);
    }
    return status;
}

static void destroy_with_blocks(hal_plugin_device *device, hal_plugin_queue *queue)
{
    const hal_host *host = wrap_host();
    const blocks *kept = wrap_find(queue);
    if (kept) {
        host->release(host, kept->first);
        host->release(host, kept->second);
    }
    wrap_drop(queue);
    wrap_inside()->queue_destroy(device, queue);
}

/* No fault by itself. */
static void takes_memory(wrap_table *table)
{
    table->queue_create = create_with_blocks;
    table->queue_destroy = destroy_with_blocks;
}

static void failed_leaks(wrap_table *table)
{
    fails_leaks = true;
    takes_memory(table);
}

/* ---- Failures without a message ---- */

static hal_status reserve_silently(hal_plugin_device *device, uint64_t bytes,
                                   hal_plugin_memory **memory)
{
    return bytes >> 47 == 0 ? wrap_inside()->memory_reserve(device, bytes, memory)
                            : HAL_ERROR_OUT_OF_MEMORY;
}

static void reserve_silent(wrap_table *table)
{
    table->memory_reserve = reserve_silently;
}

enum { TIMES = 8192 }; /* that are kept */

static hal_status submit_counted(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    uint64_t *last = wrap_keep(queue, sizeof(*last));
    if (last) {
        *last = value;
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void destroy_counted(hal_plugin_device *device, hal_plugin_queue *queue)
{
    wrap_drop(queue);
    wrap_inside()->queue_destroy(device, queue);
}

static hal_status time_silently(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns)
{
    const uint64_t *last = wrap_find(queue);
    return last && value + TIMES < *last ? HAL_ERROR_INVALID_ARGUMENT
                                         : wrap_inside()->queue_time(queue, value, device_ns);
}

static void time_silent(wrap_table *table)
{
    table->submit = submit_counted;
    table->queue_destroy = destroy_counted;
    table->queue_time = time_silently;
}

static _Atomic(hal_plugin_device *) lost;

static hal_status create_owned(hal_plugin_device *device, hal_plugin_queue **queue)
{
    const hal_status status = wrap_inside()->queue_create(device, queue);
    hal_plugin_device **owner = status == HAL_OK ? wrap_keep(*queue, sizeof(*owner)) : NULL;
    if (owner) {
        *owner = device;
    }
    return status;
}

static void fail_and_note(hal_plugin_queue *queue)
{
    hal_plugin_device *const *owner = wrap_find(queue);
    lost = owner ? *owner : NULL;
    wrap_inside()->queue_fail_next(queue);
}

static hal_status allocate_silently(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                    hal_plugin_memory **memory)
{
    return device != lost ? wrap_inside()->memory_allocate(device, kind, bytes, memory)
                          : HAL_ERROR_DEVICE_LOST;
}

/* An allocation on a lost device fails without a word. */
static void lost_allocates_silently(wrap_table *table)
{
    table->queue_create = create_owned;
    table->queue_destroy = destroy_counted;
    table->queue_fail_next = fail_and_note;
    table->memory_allocate = allocate_silently;
}

const mutant mutants_failures[] = {{.name = "refused_in_part", .table = refused_in_part},
                                   {.name = "unknown_ignored", .table = unknown_ignored},
                                   {.name = "refused_swallows", .table = refused_swallows},
                                   {.name = "fails_not", .table = fails_not},
                                   {.name = "reopen_internal", .table = reopen_internal},
                                   {.name = "takes_memory", .table = takes_memory},
                                   {.name = "failed_leaks", .table = failed_leaks},
                                   TABLE(reserve_silent),
                                   TABLE(time_silent),
                                   TABLE(lost_allocates_silently),
                                   {.name = NULL}};
