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

const mutant mutants_failures[] = {{.name = "refused_in_part", .table = refused_in_part},
                                   {.name = "unknown_ignored", .table = unknown_ignored},
                                   {.name = "refused_swallows", .table = refused_swallows},
                                   {.name = "fails_not", .table = fails_not},
                                   {.name = "reopen_internal", .table = reopen_internal},
                                   {.name = "takes_memory", .table = takes_memory},
                                   {.name = "failed_leaks", .table = failed_leaks},
                                   {.name = NULL}};
