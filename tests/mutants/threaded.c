/* threaded.c: a thread for each queue, which runs its batches in parallel with the host, and faults
 * that only such a plugin can have: in the limits of waits, and in what two threads share. */
#include "mutant.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS UINT64_C(1000000000)
#define LONG 4u        /* commands of a batch that waits until somebody looks for it */
#define MOST_HELD 200u /* such batches of a process */

/* A batch that has not run yet. */
typedef struct job {
    struct job *next;
    wrap_batch batch;
    hal_plugin_wait *waits;
    uint32_t wait_count, looks; /* of its queue when it was submitted */
    uint64_t value;
} job;

/* The mutant's data of a device. */
typedef struct home {
    bool is_lost;
    const struct worker *loser; /* whose batch failed */
} home;

/* The mutant's data of a queue. */
typedef struct worker {
    pthread_t thread;
    hal_plugin_queue *queue;
    struct home *home;
    pthread_t submitter;
    job *first, **end;
    uint32_t count; /* of batches since there were none */
    uint64_t reached;
    uint32_t looks; /* waits of the host and of other queues */
    bool is_told;   /* that the device is lost */
    bool ends, is_awaited, is_held;
} worker;

static struct {
    bool limits_ignored; /* a wait with a limit waits without one */
    bool zero_blocks;    /* a wait with the limit 0 waits without one */
    bool limit_is_micro; /* the limit is taken in microseconds */
    bool ends_soon;      /* a wait without limit has one of a millisecond */
    bool own_thread;     /* a wait on another thread than that of the last submit does nothing */
    bool batch_is_kept;  /* the arrays of a batch are read after submit */
    bool loses_silently; /* a batch that fails has no message */
    bool loses_once;     /* a lost device is told once for a queue */
    bool loses_queue;    /* a batch that fails loses its queue only */
    bool lost_is_told;   /* of a lost device's values, as if they were reached */
    bool late_speaks;    /* a wait that ends by its limit has a message */
    uint32_t most_jobs;  /* batches of a queue in flight, from which on the last is lost; 0: any */
} faults;

/* Guards all workers; signalled whenever a batch ends, is submitted, or a worker has to end. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void job_free(job *old)
{
    wrap_batch_free(&old->batch);
    free(old->waits);
    free(old);
}

static bool waits_are_over(const job *next)
{
    for (uint32_t i = 0; i < next->wait_count; i++) {
        worker *other = wrap_find(next->waits[i].queue);
        if (other && other->reached < next->waits[i].value) {
            if (other->is_held) {
                other->looks++;
                pthread_cond_broadcast(&changed);
            }
            return false;
        }
    }
    return true;
}

static struct timespec end_of(uint64_t timeout_ns)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(timeout_ns / NANOSECONDS);
    end.tv_nsec += (long)(timeout_ns % NANOSECONDS);
    end.tv_sec += end.tv_nsec / (long)NANOSECONDS;
    end.tv_nsec %= (long)NANOSECONDS;
    return end;
}

/* Until hal has used the arrays of the first batch for the next one, or somebody waits for the
 * queue. Other queues may wait for it, so two seconds at most. */
static void wait_for_next_batch(const worker *self)
{
    const struct timespec end = end_of(2 * NANOSECONDS);
    bool is_late = false;
    while (!is_late && !self->first->next && !self->is_awaited && !self->ends) {
        is_late = pthread_cond_timedwait(&changed, &lock, &end) != 0;
    }
}

/* Long work begins when somebody looks for it, so that none is over before, however busy the
 * machine is; after two seconds at the latest. */
static void wait_for_look(worker *self, const job *next)
{
    static uint32_t count;
    const struct timespec end = end_of(2 * NANOSECONDS);
    bool is_late = next->batch.batch.command_count < LONG || count++ >= MOST_HELD;
    self->is_held = true;
    pthread_cond_broadcast(&changed); /* a queue may wait for this one already */
    while (!is_late && self->looks == next->looks && !self->ends) {
        is_late = pthread_cond_timedwait(&changed, &lock, &end) != 0;
    }
    self->is_held = false;
}

/* The caller has the lock. Of a batch of a lost device nothing runs. */
static void job_run(worker *self, const job *next)
{
    const bool runs = !self->home->is_lost;
    pthread_mutex_unlock(&lock);
    hal_status status = HAL_OK;
    if (runs) {
        status = wrap_inside()->submit(self->queue, &next->batch.batch, NULL, 0, next->value);
    }
    if (status != HAL_OK && !faults.loses_silently) {
        wrap_host()->queue_failed(wrap_host(), self->queue, "mutant: a batch failed");
    }
    if (status != HAL_OK && faults.lost_is_told) {
        wrap_host()->queue_reached(wrap_host(), self->queue, next->value);
    }
    pthread_mutex_lock(&lock);
    if (status != HAL_OK) {
        self->home->is_lost = true;
        self->home->loser = self;
    }
}

/* The caller has the lock. */
static hal_status check_lost(worker *line)
{
    if (!line->home->is_lost || (faults.loses_once && line->is_told) ||
        (faults.loses_queue && line->home->loser != line)) {
        return HAL_OK;
    }
    line->is_told = true;
    return faults.loses_silently
               ? HAL_ERROR_DEVICE_LOST
               : wrap_fail(HAL_ERROR_DEVICE_LOST, "mutant: the device was lost by a batch");
}

static void *work(void *argument)
{
    worker *self = argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&lock);
    for (;;) {
        job *next = self->first;
        if (!next && self->ends) {
            break;
        }
        if (!next || !waits_are_over(next)) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        if (faults.batch_is_kept) {
            wait_for_next_batch(self);
        } else {
            wait_for_look(self, next);
        }
        self->first = next->next;
        job_run(self, next);
        self->reached = next->value;
        pthread_cond_broadcast(&changed);
        job_free(next);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static hal_status threaded_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                  const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    job *made = calloc(1, sizeof(*made));
    hal_plugin_wait *others = malloc(wait_count * sizeof(*waits) + 1);
    const bool copied = made && !faults.batch_is_kept && wrap_batch_copy(&made->batch, batch);
    if (!made || !others || !(copied || faults.batch_is_kept)) {
        free(others);
        free(made);
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    if (wait_count > 0) {
        memcpy(others, waits, wait_count * sizeof(*waits));
    }
    if (!copied) {
        made->batch.batch = *batch;
    }
    made->waits = others;
    made->wait_count = wait_count;
    made->value = value;
    worker *line = wrap_find(queue);
    pthread_mutex_lock(&lock);
    const hal_status lost = check_lost(line);
    if (lost != HAL_OK) {
        pthread_mutex_unlock(&lock);
        job_free(made);
        return lost;
    }
    line->submitter = pthread_self();
    made->looks = line->looks;
    job **end = line->first ? line->end : &line->first;
    line->count = line->first ? line->count + 1 : 1;
    if (faults.most_jobs > 0 && line->count > faults.most_jobs && copied) {
        made->batch.batch.command_count = 0;
    }
    *end = made;
    line->end = &made->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return HAL_OK;
}

static hal_status threaded_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (faults.ends_soon && timeout_ns > UINT64_MAX / 2) {
        timeout_ns = NANOSECONDS / 1000;
    }
    const bool is_limited = timeout_ns < UINT64_MAX / 2 &&
                            !(timeout_ns == 0 ? faults.zero_blocks : faults.limits_ignored);
    const struct timespec end =
        end_of(timeout_ns / (faults.limit_is_micro ? 1000 : 1) % (UINT64_MAX / 2));
    pthread_mutex_lock(&lock);
    worker *line = wrap_find(queue);
    line->is_awaited |= timeout_ns > 0;
    bool is_late = false;
    if (faults.own_thread && !pthread_equal(line->submitter, pthread_self())) {
        pthread_mutex_unlock(&lock);
        return HAL_OK;
    }
    line->looks++;
    pthread_cond_broadcast(&changed);
    while (line->reached < value && !is_late) {
        is_late =
            is_limited && (timeout_ns == 0 || pthread_cond_timedwait(&changed, &lock, &end) != 0);
        if (!is_limited) {
            pthread_cond_wait(&changed, &lock);
        }
    }
    hal_status status = line->reached >= value ? check_lost(line) : HAL_ERROR_TIMEOUT;
    pthread_mutex_unlock(&lock);
    return status == HAL_ERROR_TIMEOUT && faults.late_speaks
               ? wrap_fail(status, "mutant: the time is over")
               : status;
}

static hal_status threaded_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    const hal_status status = wrap_inside()->queue_create(device, queue);
    worker *made = status == HAL_OK ? wrap_keep(*queue, sizeof(*made)) : NULL;
    if (made) {
        made->queue = *queue;
        made->home = wrap_keep(device, sizeof(*made->home));
    }
    if (status == HAL_OK &&
        (!made || !made->home || pthread_create(&made->thread, NULL, work, made) != 0)) {
        wrap_drop(*queue);
        wrap_inside()->queue_destroy(device, *queue);
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no thread for a queue");
    }
    return status;
}

static void threaded_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    worker *old = wrap_find(queue);
    pthread_mutex_lock(&lock);
    old->ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(old->thread, NULL);
    wrap_drop(queue);
    wrap_inside()->queue_destroy(device, queue);
}

static void threaded_close(hal_plugin_device *device)
{
    wrap_drop(device);
    wrap_inside()->device_close(device);
}

/* No fault by itself. */
static void threaded(wrap_table *table)
{
    pthread_once(&once, make_condition);
    table->queue_create = threaded_create;
    table->queue_destroy = threaded_destroy;
    table->device_close = threaded_close;
    table->submit = threaded_submit;
    table->wait = threaded_wait;
}

static void wait_zero(wrap_table *table)
{
    faults.zero_blocks = true;
    threaded(table);
}

static void wait_endless(wrap_table *table)
{
    faults.limits_ignored = true;
    threaded(table);
}

static void wait_micro(wrap_table *table)
{
    faults.limit_is_micro = true;
    threaded(table);
}

static void wait_forever(wrap_table *table)
{
    faults.ends_soon = true;
    threaded(table);
}

static void wait_thread(wrap_table *table)
{
    faults.own_thread = true;
    threaded(table);
}

static void batch_kept(wrap_table *table)
{
    faults.batch_is_kept = true;
    threaded(table);
}

static void lost_silently(wrap_table *table)
{
    faults.loses_silently = true;
    threaded(table);
}

static void lost_once(wrap_table *table)
{
    faults.loses_once = true;
    threaded(table);
}

static void lost_queue(wrap_table *table)
{
    faults.loses_queue = true;
    threaded(table);
}

static void lost_reached(wrap_table *table)
{
    faults.lost_is_told = true;
    threaded(table);
}

static void late_speaks(wrap_table *table)
{
    faults.late_speaks = true;
    threaded(table);
}

static void in_flight_4096(wrap_table *table)
{
    faults.most_jobs = 4096;
    threaded(table);
}

/* Limits are kept in 32 bits. */
static hal_status wait_short(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    return threaded_wait(queue, value,
                         timeout_ns == UINT64_MAX ? timeout_ns : (uint32_t)timeout_ns);
}

static void limit_32_bits(wrap_table *table)
{
    threaded(table);
    table->wait = wait_short;
}

/* Limits above 4.3 s, and no limit, are 4.3 s. */
static hal_status wait_at_most_4_s(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    return threaded_wait(queue, value, timeout_ns < UINT32_MAX ? timeout_ns : UINT32_MAX);
}

static void limit_4_s(wrap_table *table)
{
    threaded(table);
    table->wait = wait_at_most_4_s;
}

/* Limits are milliseconds in an int, as poll takes them. */
static hal_status wait_as_poll(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    const int32_t ms = (int32_t)(timeout_ns / 1000000);
    return threaded_wait(queue, value,
                         timeout_ns == UINT64_MAX || timeout_ns < 1000000 ? timeout_ns
                         : ms < 0                                         ? 0
                                  : (uint64_t)ms * UINT64_C(1000000));
}

static void limit_of_poll(wrap_table *table)
{
    threaded(table);
    table->wait = wait_as_poll;
}

/* The end of a wait is counted from the beginning of the clock, in signed nanoseconds. */
static hal_status wait_until(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    const uint64_t now = 1000 * NANOSECONDS;
    const bool is_past = timeout_ns != UINT64_MAX && (int64_t)(now + timeout_ns) < (int64_t)now;
    return threaded_wait(queue, value, is_past ? 0 : timeout_ns);
}

static void limit_overflows(wrap_table *table)
{
    threaded(table);
    table->wait = wait_until;
}

/* Limits above 100 ms are 100 ms. */
static hal_status wait_at_most_100_ms(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    const uint64_t most = NANOSECONDS / 10;
    const bool is_limit = timeout_ns != UINT64_MAX && timeout_ns > most;
    return threaded_wait(queue, value, is_limit ? most : timeout_ns);
}

static void wait_100_ms(wrap_table *table)
{
    threaded(table);
    table->wait = wait_at_most_100_ms;
}

/* ---- Shared memory is the device's, not a queue's ---- */

static _Atomic uint64_t sharing; /* batches in flight with a kernel that has shared memory */

static hal_status create_noting_shared(hal_plugin_device *device, const hal_ir_kernel *ir,
                                       hal_plugin_kernel **kernel)
{
    const hal_status status = wrap_inside()->kernel_create(device, ir, kernel);
    if (status == HAL_OK && ir->memory_count > ir->binding_count) {
        wrap_keep(*kernel, 1);
    }
    return status;
}

static void destroy_noted(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    wrap_drop(kernel);
    wrap_inside()->kernel_destroy(device, kernel);
}

/* What a kernel computes goes wrong if one with shared memory runs at the same time: here its last
 * group is lost. */
static hal_status submit_sharing(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    uint32_t shares = 0;
    wrap_batch copy;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        shares |= batch->commands[i].kind == HAL_COMMAND_DISPATCH &&
                  wrap_find(batch->commands[i].kernel) != NULL;
    }
    const bool is_disturbed = shares > 0 && atomic_fetch_add(&sharing, 1) > 0;
    if (shares > 0) {
        mutant_await_change(&sharing, 1);
    }
    if (!wrap_batch_copy(&copy, batch)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    for (uint32_t i = 0; i < batch->command_count && is_disturbed; i++) {
        copy.commands[i].grid[0] -= copy.commands[i].grid[0] > 1;
    }
    const hal_status status = wrap_inside()->submit(queue, &copy.batch, waits, wait_count, value);
    wrap_batch_free(&copy);
    atomic_fetch_sub(&sharing, shares);
    return status;
}

static void shared_once(wrap_table *table)
{
    table->kernel_create = create_noting_shared;
    table->kernel_destroy = destroy_noted;
    table->submit = submit_sharing;
}

/* ---- One place for the kernel that is being compiled ---- */

static _Atomic uint64_t compiled; /* address of its IR */
static _Atomic uint32_t compiling;

/* Of two threads that create kernels at once both get the later one's. */
static hal_status create_latest(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    pthread_mutex_lock(&lock);
    compiled = (uintptr_t)ir;
    compiling++;
    pthread_mutex_unlock(&lock);
    mutant_await_change(&compiled, (uintptr_t)ir);
    pthread_mutex_lock(&lock);
    const hal_ir_kernel *latest = (const hal_ir_kernel *)(uintptr_t)compiled;
    const hal_status status = wrap_inside()->kernel_create(device, latest, kernel);
    compiling--;
    pthread_mutex_unlock(&lock);
    while (compiling > 0) { /* the other thread may read this one's IR */
        usleep(20);
    }
    return status;
}

static void kernel_latest(wrap_table *table)
{
    table->kernel_create = create_latest;
}

const mutant mutants_threaded[] = {
    TABLE(threaded),      TABLE(wait_zero),     TABLE(wait_endless),  TABLE(wait_micro),
    TABLE(shared_once),   TABLE(kernel_latest), TABLE(wait_forever),  TABLE(wait_thread),
    TABLE(batch_kept),    TABLE(wait_100_ms),   TABLE(lost_silently), TABLE(lost_once),
    TABLE(lost_queue),    TABLE(lost_reached),  TABLE(late_speaks),   TABLE(in_flight_4096),
    TABLE(limit_32_bits), TABLE(limit_4_s),     TABLE(limit_of_poll), TABLE(limit_overflows),
    {.name = NULL}};
