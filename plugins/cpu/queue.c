/* Queues: a batch runs inside submit. Large commands are shared over the device's pool, small ones
 * run on the calling thread. Entries of the plugin's table. */
#include "cpu.h"
#include "handover.h"
#include "share.h"

#include <errno.h>
#include <kit/clock.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* From this many nanoseconds on a dispatch's time is taken, to know better next time. */
enum { MEASURE_FROM = 2000 };
/* Pieces of copies and fills, and from what size they are shared. */
enum { PIECE = 256 << 10, SHARE_BYTES = 1 << 20 };

/* A copy or fill. */
typedef struct move {
    uint8_t *target;
    const uint8_t *source; /* null: a fill with `pattern` */
    uint64_t bytes;
    uint32_t pattern;
} move;

static hal_status prepare(hal_plugin_queue *queue);
static hal_status wait_for_others(const hal_plugin_wait *waits, uint32_t wait_count);
static hal_status run_command(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command);
static hal_status dispatch(hal_plugin_queue *queue, const hal_batch *batch,
                           const hal_command *command);
static uint32_t find_bindings(const hal_batch *batch, const hal_command *command,
                              void *bindings[HAL_IR_MAX_BINDINGS],
                              uint64_t sizes[HAL_IR_MAX_BINDINGS]);
static hal_status run_native(hal_plugin_device *device, const hal_batch *batch,
                             const hal_command *command);
static void move_bytes(hal_plugin_queue *queue, move *bytes);
static void reach(hal_plugin_queue *queue, uint64_t value);

hal_status cpu_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    pthread_condattr_t clock;
    hal_plugin_queue *made = calloc(1, sizeof(*made));
    *queue = NULL;
    if (made != NULL) {
        made->workers = calloc(device->threads, sizeof(cpu_worker));
        made->times = calloc(CPU_TIMES, sizeof(uint64_t));
    }
    if (made == NULL || made->workers == NULL || made->times == NULL) {
        if (made != NULL) {
            free(made->workers);
            free(made->times);
        }
        free(made);
        return cpu_fail(HAL_ERROR_OUT_OF_MEMORY, "cpu queue: no host memory");
    }
    made->device = device;
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
    if (queue == NULL) {
        return;
    }
    for (uint32_t i = 0; i < device->threads; i++) {
        cpu_worker_release(&queue->workers[i]);
    }
    pthread_cond_destroy(&queue->moved);
    pthread_mutex_destroy(&queue->lock);
    free(queue->workers);
    free(queue->times);
    free(queue);
}

hal_status cpu_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                            const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    if (queue->device->owner != getpid()) {
        return cpu_fail(HAL_ERROR_INVALID_STATE,
                        "cpu: the device was opened before fork; a child process has to open its "
                        "own");
    }
    hal_status status = prepare(queue);
    if (status == HAL_OK) {
        status = wait_for_others(waits, wait_count);
    }
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK;) {
        uint64_t work;
        uint32_t count = cpu_share_count(queue->device, batch, i, &work);
        if (count > 0 && cpu_share_is_worth(queue->device, work)) {
            cpu_share_run(queue, batch, i, count);
            i += count;
            continue;
        }
        for (count += count == 0; count > 0 && status == HAL_OK; count--) {
            status = run_command(queue, batch, &batch->commands[i++]);
        }
    }
    if (status == HAL_OK) {
        reach(queue, value);
    }
    return status;
}

hal_status cpu_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
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
    int result = 0;
    pthread_mutex_lock(&queue->lock);
    atomic_fetch_add(&queue->waiters, 1);
    while (atomic_load(&queue->reached) < value && result != ETIMEDOUT) {
        result = forever ? pthread_cond_wait(&queue->moved, &queue->lock)
                         : pthread_cond_timedwait(&queue->moved, &queue->lock, &until);
    }
    atomic_fetch_sub(&queue->waiters, 1);
    pthread_mutex_unlock(&queue->lock);
    return atomic_load(&queue->reached) >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
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

/* Workers with room for every kernel that the device has. */
static hal_status prepare(hal_plugin_queue *queue)
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
        if (!cpu_worker_reserve(&queue->workers[i], arena, slots, memory)) {
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

static hal_status wait_for_others(const hal_plugin_wait *waits, uint32_t wait_count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        status = cpu_queue_wait(waits[i].queue, waits[i].value, UINT64_MAX);
    }
    return status;
}

static hal_status run_command(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    move bytes = {.pattern = command->pattern};
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH:
        return dispatch(queue, batch, command);
    case HAL_COMMAND_COPY:
        bytes.bytes = bindings[0].length;
        if (bytes.bytes > 0) {
            bytes.source = bindings[0].memory->address + bindings[0].offset;
            bytes.target = bindings[1].memory->address + bindings[1].offset;
            move_bytes(queue, &bytes);
        }
        return HAL_OK;
    case HAL_COMMAND_FILL:
        bytes.bytes = bindings[0].length;
        if (bytes.bytes > 0) {
            bytes.target = bindings[0].memory->address + bindings[0].offset;
            move_bytes(queue, &bytes);
        }
        return HAL_OK;
    default:
        return cpu_fail(HAL_ERROR_UNSUPPORTED, "cpu queue: command of unknown kind %u",
                        (unsigned)command->kind);
    }
}

/* A kernel of another kind is told whether to use the pool. When it took longer than it would have
 * alone, that was waiting. */
static hal_status run_native(hal_plugin_device *device, const hal_batch *batch,
                             const hal_command *command)
{
    void *bindings[HAL_IR_MAX_BINDINGS];
    uint64_t sizes[HAL_IR_MAX_BINDINGS];
    cpu_kernel *kernel = command->kernel;
    const uint64_t work = atomic_load_explicit(&kernel->work, memory_order_relaxed);
    const bool shared = cpu_share_is_worth(device, work);
    const cpu_native_call call = {.device = device,
                                  .pool = shared ? device->pool : NULL,
                                  .memory = bindings,
                                  .memory_count = find_bindings(batch, command, bindings, sizes),
                                  .scalars = batch->scalars + command->scalar_first};
    const uint64_t start = shared ? kit_clock_ns() : 0;
    const hal_status status = kernel->native(kernel, &call);
    if (shared) {
        const uint64_t took = kit_clock_ns() - start;
        cpu_share_note(device, took > work ? took - work : 0);
    }
    return status;
}

static hal_status dispatch(hal_plugin_queue *queue, const hal_batch *batch,
                           const hal_command *command)
{
    cpu_kernel *kernel = command->kernel;
    if (kernel->native != NULL) {
        return run_native(queue->device, batch, command);
    }
    const uint64_t groups = cpu_dispatch_groups(command);
    const bool measured = cpu_dispatch_work(command) >= MEASURE_FROM;
    const uint64_t start = measured ? kit_clock_ns() : 0;
    cpu_dispatch_begin(&queue->workers[0], batch, command);
    cpu_worker_groups(&queue->workers[0], kernel, 0, groups);
    if (measured) {
        atomic_store_explicit(&kernel->work, (kit_clock_ns() - start) / groups + 1,
                              memory_order_relaxed);
    }
    return HAL_OK;
}

uint64_t cpu_dispatch_groups(const hal_command *command)
{
    return (uint64_t)command->grid[0] * command->grid[1] * command->grid[2];
}

uint64_t cpu_dispatch_work(const hal_command *command)
{
    const uint64_t groups = cpu_dispatch_groups(command);
    const uint64_t work = atomic_load_explicit(&command->kernel->work, memory_order_relaxed);
    return work > UINT64_MAX / groups ? UINT64_MAX : work * groups;
}

void cpu_dispatch_begin(cpu_worker *worker, const hal_batch *batch, const hal_command *command)
{
    void *bindings[HAL_IR_MAX_BINDINGS] = {NULL};
    uint64_t sizes[HAL_IR_MAX_BINDINGS] = {0};
    find_bindings(batch, command, bindings, sizes);
    cpu_worker_begin(worker, command->kernel, bindings, sizes,
                     batch->scalars + command->scalar_first, command->grid);
}

static uint32_t find_bindings(const hal_batch *batch, const hal_command *command,
                              void *bindings[HAL_IR_MAX_BINDINGS],
                              uint64_t sizes[HAL_IR_MAX_BINDINGS])
{
    uint32_t i = 0;
    for (; i < command->binding_count && i < HAL_IR_MAX_BINDINGS; i++) {
        const hal_binding *binding = &batch->bindings[command->binding_first + i];
        bindings[i] = binding->length > 0 ? binding->memory->address + binding->offset : NULL;
        sizes[i] = binding->length;
    }
    return i;
}

/* A piece of a copy or fill; pieces begin at multiples of the pattern. */
static void move_piece(void *context, size_t first, size_t count)
{
    move *bytes = context;
    TAKE_OVER(bytes);
    uint8_t *target = bytes->target + first;
    if (bytes->source != NULL) {
        memmove(target, bytes->source + first, count);
    } else if ((bytes->pattern & 0xff) * 0x01010101u == bytes->pattern) {
        memset(target, (int)(bytes->pattern & 0xff), count);
    } else {
        const size_t whole = count / sizeof(bytes->pattern) * sizeof(bytes->pattern);
        for (size_t i = 0; i < whole; i += sizeof(bytes->pattern)) {
            memcpy(target + i, &bytes->pattern, sizeof(bytes->pattern));
        }
        memcpy(target + whole, &bytes->pattern, count - whole);
    }
    HAND_OVER(bytes);
}

static void move_bytes(hal_plugin_queue *queue, move *bytes)
{
    const uint8_t *target = bytes->target;
    const bool apart = bytes->source == NULL || bytes->source + bytes->bytes <= target ||
                       target + bytes->bytes <= bytes->source;
    if (queue->device->pool == NULL || bytes->bytes < SHARE_BYTES || !apart) {
        move_piece(bytes, 0, bytes->bytes);
        return;
    }
    cpu_placement_keep_clear(&queue->device->placement);
    HAND_OVER(bytes);
    pthreadpool_parallelize_1d_tile_1d(queue->device->pool, move_piece, bytes, bytes->bytes, PIECE,
                                       0);
    TAKE_OVER(bytes);
}

static void reach(hal_plugin_queue *queue, uint64_t value)
{
    queue->times[value % CPU_TIMES] = kit_clock_ns();
    atomic_store(&queue->reached, value);
    if (atomic_load(&queue->waiters) > 0) {
        pthread_mutex_lock(&queue->lock);
        pthread_cond_broadcast(&queue->moved);
        pthread_mutex_unlock(&queue->lock);
    }
}
