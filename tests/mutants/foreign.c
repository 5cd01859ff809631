/* foreign.c: queues that are those of a driver, with native handles, order with them and fences,
 * and faults of that. The driver is a thread for each queue. */
#include "mutant.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONG = 4, ORDERS = 16 }; /* commands of a batch that waits for a look; orders of a queue */

/* What a batch waits for: a queue, or else a fence. */
typedef struct order {
    struct line *line;
    struct timeline *fence;
    uint64_t value;
} order;

/* What fences of the same handle have in common. */
typedef struct timeline {
    uint64_t value;
    struct line *by; /* will raise it */
    uint32_t references;
} timeline;

struct hal_plugin_fence {
    timeline *of;
};

typedef struct job {
    struct job *next;
    struct line *owner;
    wrap_batch batch;
    bool has_batch;
    order *orders;
    uint32_t order_count, looks; /* of its line when it was submitted */
    uint64_t value;
    timeline *raises;
} job;

/* The mutant's data of a queue. */
typedef struct line {
    hal_plugin_queue *queue;
    struct line *host; /* the queue of the driver, itself or the one that was imported */
    pthread_t thread;
    job *first, **end;
    order orders[ORDERS]; /* of the next batch */
    uint32_t order_count, looks;
    uint64_t submitted, reached;
    uint64_t seen; /* the value at the last order to raise a fence */
    bool ends, is_held;
} line;

static struct {
    bool wait_dropped, block_dropped; /* order with native queues is lost */
    bool import_apart;                /* an imported queue has a thread of its own */
    bool handle_rises;                /* a handle is another one each time */
    bool fence_dropped;               /* batches do not wait for fences */
    bool raised_early;                /* a fence is raised before the batches have ended */
    bool any_value;                   /* of a fence ends a wait */
    bool starts_at_1;                 /* a new fence has a value already */
    bool leaks_fence, leaks_signal, leaks_fence_wait; /* of each call 24 bytes */
    bool leaks_handle, leaks_wait, leaks_block, leaks_quirk;
    bool is_silent;      /* refused handles have no message */
    bool short_values;   /* values of fences have 32 bits */
    bool raised_by_next; /* by a queue without work a fence is raised after its next batch */
} faults;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* 24 bytes that nobody frees. */
static void keep_if(bool leaks)
{
    char *kept = leaks ? malloc(24) : NULL;
    if (kept) {
        *(volatile char *)kept = 1;
    }
}

static struct timespec end_of(uint64_t timeout_ns)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)(timeout_ns / 1000000000u);
    end.tv_nsec += (long)(timeout_ns % 1000000000u);
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    return end;
}

static void look(line *at)
{
    if (at && at->host->is_held) {
        at->host->looks++;
        pthread_cond_broadcast(&changed);
    }
}

static bool orders_are_over(const job *next)
{
    for (uint32_t i = 0; i < next->order_count; i++) {
        const order *is = &next->orders[i];
        const uint64_t mask = faults.short_values && is->fence ? UINT32_MAX : UINT64_MAX;
        const uint64_t value = faults.any_value && is->fence ? 1 : is->value & mask;
        if ((is->line ? is->line->reached : is->fence->value) < value) {
            look(is->line ? is->line : is->fence->by);
            return false;
        }
    }
    return true;
}

/* Long work begins when somebody looks for it, after two seconds at the latest. */
static void wait_for_look(line *self, const job *next)
{
    const struct timespec end = end_of(2000000000u);
    bool is_late = !next->has_batch || next->batch.batch.command_count < LONG;
    self->is_held = true;
    pthread_cond_broadcast(&changed);
    while (!is_late && self->looks == next->looks && !self->ends) {
        is_late = pthread_cond_timedwait(&changed, &lock, &end) != 0;
    }
    self->is_held = false;
}

static void timeline_unref(timeline *of)
{
    if (of && --of->references == 0) {
        free(of);
    }
}

static void job_run(const job *next)
{
    if (next->has_batch) {
        pthread_mutex_unlock(&lock);
        wrap_inside()->submit(next->owner->queue, &next->batch.batch, NULL, 0, next->value);
        pthread_mutex_lock(&lock);
        next->owner->reached = next->value;
    } else if (next->raises->value < next->value) {
        next->raises->value = next->value;
    }
}

static void *work(void *argument)
{
    line *self = argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&lock);
    while (self->first || !self->ends) {
        job *next = self->first;
        const bool is_alone = next && !next->has_batch && !next->next && !self->ends &&
                              faults.raised_by_next && next->owner->submitted == next->owner->seen;
        if (!next || is_alone || !orders_are_over(next)) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        wait_for_look(self, next);
        self->first = next->next;
        job_run(next);
        pthread_cond_broadcast(&changed);
        timeline_unref(next->raises);
        if (next->has_batch) {
            wrap_batch_free(&next->batch);
        }
        free(next->orders);
        free(next);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The caller has the lock. */
static void job_add(line *owner, job *made)
{
    line *host = owner->host;
    job **end = host->first ? host->end : &host->first;
    made->owner = owner;
    made->looks = host->looks;
    *end = made;
    host->end = &made->next;
    pthread_cond_broadcast(&changed);
}

static void order_add(line *at, order added)
{
    if (at->order_count < ORDERS) {
        at->orders[at->order_count++] = added;
    }
}

static hal_status foreign_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    for (uint32_t i = 0; i < batch->command_count; i++) {
        if (batch->commands[i].kind > HAL_COMMAND_COPY_ROWS) {
            return wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: an unknown command");
        }
    }
    line *owner = wrap_find(queue);
    job *made = calloc(1, sizeof *made);
    order *orders = calloc(wait_count + ORDERS, sizeof *orders);
    if (!made || !orders || !wrap_batch_copy(&made->batch, batch)) {
        free(orders);
        free(made);
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    made->has_batch = true;
    made->orders = orders;
    made->value = value;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < wait_count; i++) {
        const bool is_fence = waits[i].kind == HAL_WAIT_FENCE;
        keep_if(faults.leaks_fence_wait && is_fence);
        if (!is_fence || !faults.fence_dropped) {
            made->orders[made->order_count++] =
                (order){is_fence ? NULL : wrap_find(waits[i].queue),
                        is_fence ? waits[i].fence->of : NULL, waits[i].value};
        }
    }
    memcpy(made->orders + made->order_count, owner->orders, sizeof owner->orders);
    made->order_count += owner->order_count;
    owner->order_count = 0;
    owner->submitted = value;
    job_add(owner, made);
    pthread_mutex_unlock(&lock);
    return HAL_OK;
}

static hal_status foreign_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    line *at = wrap_find(queue);
    const bool is_limited = timeout_ns < UINT64_MAX / 4;
    const struct timespec end = end_of(is_limited ? timeout_ns : 0);
    bool is_late = timeout_ns == 0;
    pthread_mutex_lock(&lock);
    at->host->looks++;
    pthread_cond_broadcast(&changed);
    while (at->reached < value && !is_late) {
        if (is_limited) {
            is_late = pthread_cond_timedwait(&changed, &lock, &end) != 0;
        } else {
            pthread_cond_wait(&changed, &lock);
        }
    }
    const hal_status status = at->reached >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
    pthread_mutex_unlock(&lock);
    return status;
}

static hal_status line_create(hal_plugin_device *device, line *host, hal_plugin_queue **queue)
{
    const hal_status status = wrap_inside()->queue_create(device, queue);
    line *made = status == HAL_OK ? wrap_keep(*queue, sizeof *made) : NULL;
    if (status == HAL_OK && !made) {
        wrap_inside()->queue_destroy(device, *queue);
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a queue");
    }
    if (made) {
        made->queue = *queue;
        made->host = host ? host : made;
        if (!host && pthread_create(&made->thread, NULL, work, made) != 0) {
            wrap_drop(*queue);
            wrap_inside()->queue_destroy(device, *queue);
            return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no thread for a queue");
        }
    }
    return status;
}

static hal_status foreign_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    return line_create(device, NULL, queue);
}

static void foreign_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    line *old = wrap_find(queue);
    pthread_mutex_lock(&lock);
    old->ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (old->host == old) {
        pthread_join(old->thread, NULL);
    }
    wrap_drop(queue);
    wrap_inside()->queue_destroy(device, queue);
}

/* ---- Handles ---- */

static hal_status type_check(const char *type, const char *wanted)
{
    keep_if(faults.leaks_handle);
    if (faults.is_silent && strcmp(type, wanted) != 0 && strcmp(wanted, "mutant_device") != 0) {
        return HAL_ERROR_UNSUPPORTED;
    }
    return strcmp(type, wanted) == 0
               ? HAL_OK
               : wrap_fail(HAL_ERROR_UNSUPPORTED,
                           strcmp(wanted, "mutant_device") == 0
                               ? "type: expected one of mutant_device, got no_such_type"
                           : strcmp(wanted, "mutant_queue") == 0
                               ? "type: expected one of mutant_queue, got no_such_type"
                               : "type: expected one of mutant_kernel, got no_such_type");
}

static uint64_t handle_of(const void *object)
{
    static _Atomic uint64_t calls;
    return (uint64_t)(uintptr_t)object + (faults.handle_rises ? calls++ : 0);
}

static hal_status foreign_device_handle(hal_plugin_device *device, const char *type,
                                        uint64_t *handle)
{
    *handle = handle_of(device);
    return type_check(type, "mutant_device");
}

static hal_status foreign_queue_handle(hal_plugin_queue *queue, const char *type, uint64_t *handle)
{
    *handle = handle_of(((line *)wrap_find(queue))->host);
    return type_check(type, "mutant_queue");
}

static hal_status foreign_kernel_handle(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                        const char *type, uint64_t *handle)
{
    *handle = handle_of(device && kernel ? kernel : NULL);
    return type_check(type, "mutant_kernel");
}

static hal_status foreign_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    (void)device;
    keep_if(faults.leaks_quirk);
    quirk->name = index == 0 ? "late" : NULL;
    quirk->reason = index == 0 ? "long work begins when somebody looks for it" : NULL;
    return HAL_OK;
}

/* ---- Native queues ---- */

static hal_status foreign_import(hal_plugin_device *device, const char *type, uint64_t handle,
                                 hal_plugin_queue **queue)
{
    const hal_status status = type_check(type, "mutant_queue");
    return status == HAL_OK
               ? line_create(device, faults.import_apart ? NULL : (line *)(uintptr_t)handle, queue)
               : status;
}

static hal_status foreign_wait_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    const hal_status status = type_check(type, "mutant_queue");
    line *other = (line *)(uintptr_t)handle;
    keep_if(faults.leaks_wait);
    if (status == HAL_OK && !faults.wait_dropped) {
        pthread_mutex_lock(&lock);
        order_add(wrap_find(queue), (order){.line = other, .value = other->submitted});
        pthread_mutex_unlock(&lock);
    }
    return status;
}

static hal_status foreign_block_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    const hal_status status = type_check(type, "mutant_queue");
    line *self = wrap_find(queue);
    keep_if(faults.leaks_block);
    if (status == HAL_OK && !faults.block_dropped) {
        pthread_mutex_lock(&lock);
        order_add((line *)(uintptr_t)handle, (order){.line = self, .value = self->submitted});
        pthread_mutex_unlock(&lock);
    }
    return status;
}

/* ---- Fences ---- */

static hal_status foreign_fence_info(hal_plugin_device *device, uint32_t *imports,
                                     uint32_t *exports)
{
    *imports = *exports = device ? HAL_HANDLE_BIT(HAL_HANDLE_NATIVE) : 0;
    return HAL_OK;
}

static hal_status fence_make(timeline *of, hal_plugin_fence **fence)
{
    *fence = of ? calloc(1, sizeof **fence) : NULL;
    if (!*fence) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a fence");
    }
    pthread_mutex_lock(&lock);
    of->references++;
    (*fence)->of = of;
    pthread_mutex_unlock(&lock);
    return HAL_OK;
}

static hal_status foreign_fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                                       hal_plugin_fence **fence)
{
    (void)device;
    (void)kind;
    return fence_make((timeline *)(uintptr_t)handle, fence);
}

static hal_status foreign_fence_create(hal_plugin_device *device, uint32_t kind,
                                       hal_plugin_fence **fence)
{
    (void)device;
    (void)kind;
    keep_if(faults.leaks_fence);
    timeline *of = calloc(1, sizeof *of);
    if (of) {
        of->value = faults.starts_at_1;
    }
    return fence_make(of, fence);
}

static hal_status foreign_fence_export(hal_plugin_device *device, hal_plugin_fence *fence,
                                       uint32_t kind, uint64_t *handle)
{
    (void)device;
    (void)kind;
    *handle = (uint64_t)(uintptr_t)fence->of;
    return HAL_OK;
}

static void foreign_fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence)
{
    (void)device;
    pthread_mutex_lock(&lock);
    timeline_unref(fence->of);
    pthread_mutex_unlock(&lock);
    free(fence);
}

static hal_status foreign_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                       uint64_t value)
{
    keep_if(faults.leaks_signal);
    job *made = calloc(1, sizeof *made);
    if (!made) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a fence");
    }
    made->value = value;
    made->raises = fence->of;
    pthread_mutex_lock(&lock);
    fence->of->references++;
    fence->of->by = wrap_find(queue);
    fence->of->by->seen = fence->of->by->reached;
    if (faults.raised_early) {
        fence->of->value = value;
    }
    job_add(fence->of->by, made);
    pthread_mutex_unlock(&lock);
    return HAL_OK;
}

/* No fault by itself. */
static void foreign(wrap_table *table)
{
    table->queue_fail_next = NULL;
    table->queue_create = foreign_create;
    table->queue_destroy = foreign_destroy;
    table->submit = foreign_submit;
    table->wait = foreign_wait;
    table->device_handle = foreign_device_handle;
    table->queue_handle = foreign_queue_handle;
    table->kernel_handle = foreign_kernel_handle;
    table->device_quirk = foreign_quirk;
    table->queue_import = foreign_import;
    table->queue_wait_native = foreign_wait_native;
    table->queue_block_native = foreign_block_native;
    table->fence_info = foreign_fence_info;
    table->fence_import = foreign_fence_import;
    table->fence_create = foreign_fence_create;
    table->fence_export = foreign_fence_export;
    table->fence_destroy = foreign_fence_destroy;
    table->queue_signal_fence = foreign_signal_fence;
}

#define FAULT(name, field)              \
    static void name(wrap_table *table) \
    {                                   \
        faults.field = true;            \
        foreign(table);                 \
    }
FAULT(native_wait, wait_dropped)
FAULT(native_block, block_dropped)
FAULT(native_import, import_apart)
FAULT(native_handle, handle_rises)
FAULT(fence_dropped, fence_dropped)
FAULT(fence_early, raised_early)
FAULT(fence_any_value, any_value)
FAULT(fence_starts, starts_at_1)
FAULT(leak_fence, leaks_fence)
FAULT(leak_signal, leaks_signal)
FAULT(leak_fence_wait, leaks_fence_wait)
FAULT(leak_handle, leaks_handle)
FAULT(leak_native_wait, leaks_wait)
FAULT(leak_native_block, leaks_block)
FAULT(leak_quirk, leaks_quirk)
FAULT(handle_silent, is_silent)
FAULT(fence_32_bits, short_values)
FAULT(fence_by_next, raised_by_next)

const mutant mutants_foreign[] = {
    TABLE(foreign),       TABLE(native_wait),      TABLE(native_block),      TABLE(native_import),
    TABLE(native_handle), TABLE(fence_dropped),    TABLE(fence_early),       TABLE(fence_any_value),
    TABLE(fence_starts),  TABLE(leak_fence),       TABLE(leak_signal),       TABLE(leak_fence_wait),
    TABLE(leak_handle),   TABLE(leak_native_wait), TABLE(leak_native_block), TABLE(leak_quirk),
    TABLE(handle_silent), TABLE(fence_32_bits),    TABLE(fence_by_next),     {.name = NULL}};
