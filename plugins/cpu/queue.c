/* Queues: a batch runs inside submit, or on a thread of the queue where it takes long and
 * HAL_CPU_BACKGROUND asks for that. Large commands are shared over the device's pool, small ones
 * run on the calling thread. */
#include "queue.h"

#include "device.h"
#include "memory.h"
#include "status.h"
#include "threads/parts.h"
#include "threads/process.h"
#include "threads/share.h"

#include <errno.h>
#include <kit/clock.h>
#include <kit/copy_rows.h>
#include <kit/fill.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Pieces of copies and fills, how many of its part a thread takes at a time at least, into how many
 * chunks a part is cut, and the size from which they are shared. */
enum { PIECE = 4 << 10, LEAST_PIECES = 16, PART_CHUNKS = 4, SHARE_BYTES = 512 << 10 };
/* Bytes per nanosecond that one thread is expected to copy or fill. */
enum { MOVE_RATE = 8 };
/* Bytes of a command's bindings from which it takes long. */
#define LONG_BYTES (UINT64_C(8) << 20)
typedef void pool_run(cpu_thread_pool *pool, uint32_t threads, cpu_thread_function *function,
                      void *context);

/* A copy or fill. */
typedef struct move {
    uint8_t *target;
    const uint8_t *source; /* null: a fill */
    uint64_t bytes;
    kit_fill fill;
    uint64_t chunk; /* pieces that a thread takes at a time */
    cpu_parts *parts;
} move;

/* Moves bytes `first` to first + count - 1; `first` is a multiple of the pattern's size. */
static void piece_move(const move *bytes, uint64_t first, uint64_t count)
{
    uint8_t *target = bytes->target + first;
    const kit_fill fill = bytes->fill; /* the target may alias *bytes for the compiler */
    if (bytes->source) {
        memmove(target, bytes->source + first, count);
    } else if (kit_fill_is_word(&fill) && (fill.words[0] & 0xff) * 0x01010101u == fill.words[0]) {
        memset(target, (int)(fill.words[0] & 0xff), count);
    } else {
        const size_t whole = count / sizeof fill.words * sizeof fill.words;
        for (size_t i = 0; i < whole; i += sizeof fill.words) {
            memcpy(target + i, fill.words, sizeof fill.words);
        }
        memcpy(target + whole, fill.words, count - whole);
    }
}

/* One thread's part of a shared copy or fill, which its caches may have from the call before. */
static void pieces_move(void *context, uint32_t thread)
{
    move *bytes = context;
    const uint64_t pieces = (bytes->bytes + PIECE - 1) / PIECE;
    uint64_t first = 0, count = 0;
    while (cpu_parts_take(bytes->parts, thread, 0, pieces, bytes->chunk, &first, &count)) {
        const uint64_t start = first * PIECE, rest = bytes->bytes - start;
        piece_move(bytes, start, rest < count * PIECE ? rest : count * PIECE);
    }
}

/* `run`: cpu_thread_pool_run or cpu_thread_pool_run_now. */
static void bytes_move(hal_plugin_device *device, move *bytes, pool_run *run)
{
    const uint8_t *target = bytes->target;
    const bool disjoint = !bytes->source || bytes->source + bytes->bytes <= target ||
                          target + bytes->bytes <= bytes->source;
    if (!device->pool || bytes->bytes < SHARE_BYTES || !disjoint) {
        piece_move(bytes, 0, bytes->bytes);
        return;
    }
    const uint64_t kind = bytes->source ? CPU_SHARE_COPY : CPU_SHARE_FILL;
    const uint64_t key = cpu_share_key(0, kind, bytes->bytes);
    const cpu_share_turn turn =
        cpu_share_begin(device->share, key, (double)bytes->bytes, (double)bytes->bytes / MOVE_RATE);
    const uint64_t share = bytes->bytes / PIECE / (turn.threads * (uint64_t)PART_CHUNKS);
    bytes->chunk = share > LEAST_PIECES ? share : LEAST_PIECES;
    cpu_parts parts;
    cpu_parts_init(&parts, turn.threads);
    bytes->parts = &parts;
    run(device->pool, turn.threads, pieces_move, bytes);
    cpu_share_end(device->share, &turn);
}

/* A child process has no threads of the pool. Does not wait for work on other queues. */
void cpu_host_copy(hal_plugin_device *device, void *target, const void *source, uint64_t count)
{
    move bytes = {.target = target, .source = source, .bytes = count};
    if (device->generation == cpu_process_generation()) {
        bytes_move(device, &bytes, cpu_thread_pool_run_now);
    } else {
        piece_move(&bytes, 0, count);
    }
}

static void rows_move(hal_plugin_queue *queue, const hal_batch *batch, const hal_command *command)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    const hal_plugin_copy_rows rows = kit_copy_rows_read(batch, command);
    const uint8_t *source = bindings[0].memory->address + bindings[0].offset;
    uint8_t *target = bindings[1].memory->address + bindings[1].offset;
    for (uint64_t i = 0; i < kit_copy_rows_count(&rows); i++) {
        move bytes = {.source = source + kit_copy_rows_source(&rows, i),
                      .target = target + kit_copy_rows_target(&rows, i),
                      .bytes = rows.row_bytes};
        bytes_move(queue->device, &bytes, cpu_thread_pool_run);
    }
}

/* A dispatch whose grid is in memory, as one with that grid, which its largest one limits. */
static hal_status indirect_run(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_command *command)
{
    hal_command direct = *command;
    hal_batch one = *batch;
    direct.flags &= (uint16_t)~HAL_COMMAND_INDIRECT;
    direct.binding_count--;
    const hal_binding *grid = batch->bindings + command->binding_first + direct.binding_count;
    memcpy(direct.grid, grid->memory->address + grid->offset, sizeof direct.grid);
    for (uint32_t i = 0; i < 3; i++) {
        if (direct.grid[i] == 0) {
            return HAL_OK;
        }
        direct.grid[i] = direct.grid[i] < command->grid[i] ? direct.grid[i] : command->grid[i];
    }
    one.commands = &direct;
    one.command_count = 1;
    if (cpu_dispatch_count_shared(queue->device, &one, 0) == 0) {
        return cpu_dispatch_run(queue->device, &queue->dispatches, &one, &direct);
    }
    cpu_dispatch_run_shared(queue->device, &queue->dispatches, &one, 0, 1);
    return HAL_OK;
}

static hal_status command_run(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    move bytes = {0};
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH:
        return command->flags & HAL_COMMAND_INDIRECT
                   ? indirect_run(queue, batch, command)
                   : cpu_dispatch_run(queue->device, &queue->dispatches, batch, command);
    case HAL_COMMAND_COPY_ROWS:
        rows_move(queue, batch, command);
        return HAL_OK;
    case HAL_COMMAND_COPY:
        bytes.bytes = bindings[0].length;
        if (bytes.bytes > 0) {
            bytes.source = bindings[0].memory->address + bindings[0].offset;
            bytes.target = bindings[1].memory->address + bindings[1].offset;
            bytes_move(queue->device, &bytes, cpu_thread_pool_run);
        }
        return HAL_OK;
    case HAL_COMMAND_FILL:
        bytes.bytes = bindings[0].length;
        if (bytes.bytes > 0) {
            bytes.fill = kit_fill_read(batch, command);
            bytes.target = bindings[0].memory->address + bindings[0].offset;
            bytes_move(queue->device, &bytes, cpu_thread_pool_run);
        }
        return HAL_OK;
    default:
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "cpu queue: command of unknown kind %u",
                        (unsigned)command->kind);
    }
}

/* Allocates room for all kernels of the device in the workers. */
static hal_status workers_prepare(hal_plugin_queue *queue)
{
    hal_plugin_device *device = queue->device;
    const size_t arena = atomic_load_explicit(&device->arena_bytes, memory_order_relaxed);
    const uint32_t slots = atomic_load_explicit(&device->slot_count, memory_order_relaxed);
    const uint32_t memory = atomic_load_explicit(&device->memory_count, memory_order_relaxed);
    if (queue->arena_bytes >= arena && queue->slot_count >= slots &&
        queue->memory_count >= memory) {
        return HAL_OK;
    }
    for (uint32_t i = 0; i < device->threads; i++) {
        if (!cpu_worker_reserve(&queue->dispatches.workers[i], arena, slots, memory)) {
            return cpu_fail(HAL_ERROR_OUT_OF_MEMORY,
                            "cpu queue: no host memory for %u workers of %zu bytes",
                            device->threads, arena);
        }
    }
    queue->arena_bytes = arena;
    queue->slot_count = slots;
    queue->memory_count = memory;
    return HAL_OK;
}

static void value_reach(hal_plugin_queue *queue, uint64_t value)
{
    queue->times[value % CPU_TIMES] = kit_clock_ns();
    atomic_store(&queue->reached, value);
    if (atomic_load(&queue->waiters) > 0) {
        pthread_mutex_lock(&queue->lock);
        pthread_cond_broadcast(&queue->moved);
        pthread_mutex_unlock(&queue->lock);
    }
}

hal_status cpu_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    pthread_condattr_t clock;
    hal_plugin_queue *made = calloc(1, sizeof(*made));
    *queue = NULL;
    if (made) {
        made->dispatches.workers = calloc(device->threads, sizeof(cpu_worker));
        made->dispatches.memory = cpu_dispatch_memory_create();
        made->times = calloc(CPU_TIMES, sizeof(uint64_t));
    }
    if (!made || !made->dispatches.workers || !made->dispatches.memory || !made->times) {
        if (made) {
            free(made->dispatches.workers);
            free(made->dispatches.memory);
            free(made->times);
        }
        free(made);
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "cpu queue: no host memory");
    }
    made->device = device;
    cpu_background_init(&made->background);
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->moved, &clock);
    pthread_condattr_destroy(&clock);
    *queue = made;
    return HAL_OK;
}

void cpu_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!queue) {
        return;
    }
    cpu_background_deinit(&queue->background);
    for (uint32_t i = 0; i < device->threads; i++) {
        cpu_worker_release(&queue->dispatches.workers[i]);
    }
    pthread_cond_destroy(&queue->moved);
    pthread_mutex_destroy(&queue->lock);
    free(queue->dispatches.workers);
    free(queue->dispatches.memory);
    free(queue->times);
    free(queue);
}

static hal_status value_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (atomic_load(&queue->reached) >= value) {
        return HAL_OK;
    }
    if (timeout_ns == 0) {
        return HAL_ERROR_TIMEOUT;
    }
    struct timespec until;
    const uint64_t start = kit_clock_ns();
    const bool forever = timeout_ns > INT64_MAX - start;
    const uint64_t end = forever ? 0 : start + timeout_ns;
    until.tv_sec = (time_t)(end / 1000000000);
    until.tv_nsec = (long)(end % 1000000000);
    int result = 0, cancel_state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&queue->lock);
    atomic_fetch_add(&queue->waiters, 1);
    while (atomic_load(&queue->reached) < value && result != ETIMEDOUT) {
        result = forever ? pthread_cond_wait(&queue->moved, &queue->lock)
                         : pthread_cond_timedwait(&queue->moved, &queue->lock, &until);
    }
    atomic_fetch_sub(&queue->waiters, 1);
    pthread_mutex_unlock(&queue->lock);
    pthread_setcancelstate(cancel_state, &cancel_state);
    return atomic_load(&queue->reached) >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
}

/* The values of batches that the thread of a queue has lost count as reached. */
hal_status cpu_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    const hal_status status = value_wait(queue, value, timeout_ns);
    return status == HAL_OK && queue->device->background_ns > 0 &&
                   atomic_load_explicit(&queue->device->lost, memory_order_relaxed)
               ? HAL_ERROR_DEVICE_LOST
               : status;
}

hal_status cpu_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                             uint64_t *nanoseconds)
{
    const uint64_t reached = atomic_load(&queue->reached);
    *nanoseconds = 0;
    if (first > reached || second > reached || first > second || first + CPU_TIMES <= reached) {
        return cpu_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "cpu queue: the time from point %llu to %llu is not known; it has reached "
                        "%llu and remembers the last %d points",
                        (unsigned long long)first, (unsigned long long)second,
                        (unsigned long long)reached, (int)CPU_TIMES);
    }
    *nanoseconds = queue->times[second % CPU_TIMES] - queue->times[first % CPU_TIMES];
    return HAL_OK;
}

/* The device's clock is the host's. */
hal_status cpu_clocks_read(hal_plugin_device *device, hal_clocks *clocks)
{
    (void)device;
    clocks->host_ns = clocks->device_ns = kit_clock_ns();
    return HAL_OK;
}

hal_status cpu_queue_time(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns)
{
    uint64_t none = 0;
    *device_ns = 0;
    HAL_TRY(cpu_queue_elapsed(queue, value, value, &none));
    *device_ns = queue->times[value % CPU_TIMES];
    return HAL_OK;
}

static hal_status waits_finish(const hal_plugin_wait *waits, uint32_t wait_count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        status = cpu_queue_wait(waits[i].queue, waits[i].value, UINT64_MAX);
    }
    return status;
}

void cpu_queue_fail_next(hal_plugin_queue *queue)
{
    queue->fails_next = true;
}

/* Of a batch that fails after commands of it have run. The host has the message. */
static hal_status fail_in_part(hal_plugin_device *device)
{
    atomic_store(&device->lost, true);
    return HAL_ERROR_DEVICE_LOST;
}

static hal_status check_lost(hal_plugin_queue *queue)
{
    if (queue->fails_next) {
        queue->fails_next = false;
        cpu_fail(HAL_ERROR_DEVICE_LOST, "cpu queue: the batch fails, as hal.faults asks");
        return fail_in_part(queue->device);
    }
    return !atomic_load_explicit(&queue->device->lost, memory_order_relaxed)
               ? HAL_OK
               : cpu_fail(HAL_ERROR_DEVICE_LOST,
                          "cpu: the device was lost by a batch that failed; open it again");
}

/* Runs the commands from `*next` on, or as many of them as one step takes. */
static hal_status step_run(hal_plugin_queue *queue, const hal_batch *batch, uint32_t *next)
{
    const uint32_t count = cpu_dispatch_count_shared(queue->device, batch, *next);
    if (count == 0) {
        return command_run(queue, batch, &batch->commands[(*next)++]);
    }
    cpu_dispatch_run_shared(queue->device, &queue->dispatches, batch, *next, count);
    *next += count;
    return HAL_OK;
}

/* On the queue's thread. After a failure of one batch no other one runs. */
static void late_run(hal_plugin_queue *queue, const hal_batch *batch, uint32_t first,
                     const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    if (!atomic_load(&device->lost)) {
        hal_status status = workers_prepare(queue);
        status = status == HAL_OK ? waits_finish(waits, wait_count) : status;
        for (uint32_t i = first; i < batch->command_count && status == HAL_OK;) {
            status = step_run(queue, batch, &i);
        }
        if (status != HAL_OK) {
            queue->host->queue_failed(queue->host, queue,
                                      "cpu queue: a batch failed on the thread of its queue: no "
                                      "memory for workers, or a command of an unknown kind");
            atomic_store(&device->lost, true);
        }
    }
    value_reach(queue, value);
}

static bool command_is_long(const hal_batch *batch, uint32_t number)
{
    const hal_command *command = &batch->commands[number];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < command->binding_count; i++) {
        bytes += batch->bindings[command->binding_first + i].length;
    }
    return bytes >= LONG_BYTES;
}

/* Whether the rest of a batch that began at `start` was passed to the queue's thread. */
static bool rest_is_taken(hal_plugin_queue *queue, const hal_batch *batch, uint32_t first,
                          uint64_t start, uint64_t value)
{
    const bool is_late = kit_clock_ns() - start > queue->device->background_ns;
    return (is_late || command_is_long(batch, first)) &&
           cpu_background_take(&queue->background, queue, late_run, false, batch, first, NULL, 0,
                               value);
}

hal_status cpu_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                            const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    if (queue->device->generation != cpu_process_generation()) {
        return cpu_fail(HAL_ERROR_INVALID_STATE,
                        "cpu: the device was opened before fork; a child process has to open its "
                        "own");
    }
    HAL_TRY(check_lost(queue));
    const bool may_be_late = queue->device->background_ns > 0;
    if (may_be_late && cpu_background_take(&queue->background, queue, late_run, true, batch, 0,
                                           waits, wait_count, value)) {
        return HAL_OK;
    }
    if (may_be_late) { /* the thread may have a batch and no memory for another one */
        HAL_TRY(cpu_queue_wait(queue, value - 1, UINT64_MAX));
    }
    hal_status status = workers_prepare(queue);
    if (status == HAL_OK) {
        status = waits_finish(waits, wait_count);
    }
    const uint64_t start = may_be_late ? kit_clock_ns() : 0;
    uint32_t i = 0;
    while (i < batch->command_count && status == HAL_OK) {
        if (may_be_late && rest_is_taken(queue, batch, i, start, value)) {
            return HAL_OK;
        }
        status = step_run(queue, batch, &i);
    }
    if (status == HAL_OK) {
        value_reach(queue, value);
    }
    return status != HAL_OK && i > 1 ? fail_in_part(queue->device) : status;
}
