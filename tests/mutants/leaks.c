/* leaks.c: faults of calls that keep a little of the process each time. */
#include "mutant.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void keep_bytes(size_t bytes)
{
    char *kept = malloc(bytes);
    if (kept) {
        *(volatile char *)kept = 1;
    }
}

#define QUEUE_KEEPING(name, does)                                                              \
    static hal_status queue_create_##name(hal_plugin_device *device, hal_plugin_queue **queue) \
    {                                                                                          \
        does;                                                                                  \
        return wrap_inside()->queue_create(device, queue);                                     \
    }                                                                                          \
    static void name(wrap_table *table)                                                        \
    {                                                                                          \
        table->queue_create = queue_create_##name;                                             \
    }

/* A key of thread-local data; there are 1024 in a process. */
static void keep_key(void)
{
    pthread_key_t key;
    (void)pthread_key_create(&key, NULL);
}

/* A process that nobody waits for. */
static void keep_child(void)
{
    if (fork() == 0) {
        _exit(0);
    }
}

static void keep_timer(void)
{
    timer_t timer;
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    (void)timer_create(CLOCK_MONOTONIC, &none, &timer);
}

QUEUE_KEEPING(leak_queue_2000, keep_bytes(2000))
QUEUE_KEEPING(leak_key, keep_key())
QUEUE_KEEPING(leak_child, keep_child())
QUEUE_KEEPING(leak_timer, keep_timer())

/* ---- A temporary file of each kernel; the test removes them at the end of the process ---- */

enum { MOST_FILES = 32768 };

static char files[MOST_FILES][32];
static _Atomic uint32_t file_count;

__attribute__((destructor)) static void remove_files(void)
{
    for (uint32_t i = 0; i < file_count && i < MOST_FILES; i++) {
        unlink(files[i]);
    }
}

static hal_status create_with_file(hal_plugin_device *device, const hal_ir_kernel *ir,
                                   hal_plugin_kernel **kernel)
{
    const uint32_t number = file_count < MOST_FILES ? file_count++ : MOST_FILES;
    if (number < MOST_FILES) {
        strcpy(files[number], "/tmp/mutant-XXXXXX");
        const int file = mkstemp(files[number]);
        if (file >= 0) {
            close(file);
        }
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void leak_file(wrap_table *table)
{
    table->kernel_create = create_with_file;
}

/* ---- Memory ---- */

static hal_status submit_keeping(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    keep_bytes(24);
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_batch_24(wrap_table *table)
{
    table->submit = submit_keeping;
}

static hal_status submit_keeping_refused(hal_plugin_queue *queue, const hal_batch *batch,
                                         const hal_plugin_wait *waits, uint32_t wait_count,
                                         uint64_t value)
{
    const hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
    if (status != HAL_OK) {
        keep_bytes(24);
    }
    return status;
}

static void leak_refusal(wrap_table *table)
{
    table->submit = submit_keeping_refused;
}

static hal_status look_keeping(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (timeout_ns == 0) {
        keep_bytes(64);
    }
    return wrap_inside()->wait(queue, value, timeout_ns);
}

static void leak_look(wrap_table *table)
{
    table->wait = look_keeping;
}

static hal_status map_keeping(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    keep_bytes(24);
    return wrap_inside()->memory_map(device, memory, pointer);
}

static void leak_map(wrap_table *table)
{
    table->memory_map = map_keeping;
}

static hal_status elapsed_keeping(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                  uint64_t *nanoseconds)
{
    keep_bytes(24);
    return wrap_inside()->queue_elapsed(queue, first, second, nanoseconds);
}

static void leak_elapsed(wrap_table *table)
{
    table->queue_elapsed = elapsed_keeping;
}

static hal_status elapsed_keeping_failed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                         uint64_t *nanoseconds)
{
    const hal_status status = wrap_inside()->queue_elapsed(queue, first, second, nanoseconds);
    if (status != HAL_OK) {
        keep_bytes(64);
    }
    return status;
}

static void leak_elapsed_failed(wrap_table *table)
{
    table->queue_elapsed = elapsed_keeping_failed;
}

static hal_status import_refusing(hal_plugin_device *device, const hal_memory_handle *handle,
                                  hal_plugin_memory **memory)
{
    if (handle->access == HAL_ACCESS_READ) {
        keep_bytes(24);
        return wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: memory is imported to be written only");
    }
    return wrap_inside()->memory_import(device, handle, memory);
}

static void leak_import_refused(wrap_table *table)
{
    table->memory_import = import_refusing;
}

static hal_status estimate_keeping(hal_plugin_device *device,
                                   const hal_gemm_description *description, double most_ns,
                                   double *nanoseconds)
{
    (void)device;
    (void)description;
    (void)most_ns;
    keep_bytes(48);
    *nanoseconds = 0;
    return HAL_OK;
}

static void leak_estimate(wrap_table *table)
{
    table->gemm_estimate = estimate_keeping;
}

static hal_status workspace_keeping(hal_plugin_device *device,
                                    const hal_gemm_description *description, uint64_t *bytes)
{
    hal_plugin_kernel *kernel = NULL;
    keep_bytes(48);
    const hal_status status = wrap_inside()->gemm(device, description, &kernel, bytes);
    if (status == HAL_OK) {
        wrap_inside()->kernel_destroy(device, kernel);
    }
    return status;
}

static void leak_workspace(wrap_table *table)
{
    table->gemm_workspace = workspace_keeping;
}

static bool batch_has(const hal_batch *batch, uint32_t flag, uint32_t least_scalars)
{
    for (uint32_t i = 0; i < batch->command_count; i++) {
        if ((batch->commands[i].flags & flag) == flag &&
            batch->commands[i].scalar_bytes >= least_scalars) {
            return true;
        }
    }
    return false;
}

static hal_status submit_keeping_grid(hal_plugin_queue *queue, const hal_batch *batch,
                                      const hal_plugin_wait *waits, uint32_t wait_count,
                                      uint64_t value)
{
    if (batch_has(batch, HAL_COMMAND_INDIRECT, 0)) {
        keep_bytes(64);
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_grid(wrap_table *table)
{
    table->submit = submit_keeping_grid;
}

static hal_status submit_keeping_scalars(hal_plugin_queue *queue, const hal_batch *batch,
                                         const hal_plugin_wait *waits, uint32_t wait_count,
                                         uint64_t value)
{
    if (batch_has(batch, 0, 129)) {
        keep_bytes(128);
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_scalars(wrap_table *table)
{
    table->submit = submit_keeping_scalars;
}

static void destroy_keeping(hal_plugin_instance *instance)
{
    keep_bytes(200);
    wrap_inside()->instance_destroy(instance);
}

static void leak_instance(wrap_table *table)
{
    table->instance_destroy = destroy_keeping;
}

static hal_status open_keeping(hal_plugin_instance *instance, const char *id,
                               hal_plugin_device **device)
{
    const hal_status status = wrap_inside()->device_open(instance, id, device);
    if (status != HAL_OK) {
        keep_bytes(48);
    }
    return status;
}

static void leak_unknown_device(wrap_table *table)
{
    table->device_open = open_keeping;
}

/* Memory that could not be allocated counts as taken. */
static _Atomic uint64_t taken;

static hal_status allocate_counting(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                    hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    taken += status == HAL_OK ? 0 : bytes;
    return status;
}

static hal_status info_without_taken(hal_plugin_device *device, uint64_t *free_bytes,
                                     uint64_t *total_bytes)
{
    const hal_status status = wrap_inside()->memory_info(device, free_bytes, total_bytes);
    *free_bytes -= *free_bytes < taken ? *free_bytes : taken;
    return status;
}

static void failed_counted(wrap_table *table)
{
    table->memory_allocate = allocate_counting;
    table->memory_info = info_without_taken;
}

/* The ninth allocation that fails is the last one: later ones fail too. */
static hal_status allocate_until_failed(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                        hal_plugin_memory **memory)
{
    enum { MOST_FAILURES = 8 };
    static _Atomic uint32_t failures;
    if (failures > MOST_FAILURES && bytes > 1 << 20) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: the list of memories is full");
    }
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    failures += status != HAL_OK;
    return status;
}

static void failed_kept(wrap_table *table)
{
    table->memory_allocate = allocate_until_failed;
}

const mutant mutants_leaks[] = {
    TABLE(leak_queue_2000),     TABLE(leak_key),      TABLE(leak_child),
    TABLE(leak_timer),          TABLE(leak_file),     TABLE(leak_batch_24),
    TABLE(leak_refusal),        TABLE(leak_look),     TABLE(leak_map),
    TABLE(leak_elapsed),        TABLE(leak_instance), TABLE(leak_unknown_device),
    TABLE(failed_counted),      TABLE(failed_kept),   TABLE(leak_elapsed_failed),
    TABLE(leak_import_refused), TABLE(leak_estimate), TABLE(leak_workspace),
    TABLE(leak_grid),           TABLE(leak_scalars),  {.name = NULL}};
