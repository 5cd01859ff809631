/* Collectives of backends, see backend.h. A collective is a batch with one command. Two fences may
 * be with it: the batch itself waits for its turn, since backends of one device run their
 * collectives in the order of recording, and the next batch waits until the plugin has begun, which
 * may need other ranks of this process. No fence waits for the end: a watch does, which ends the
 * communicator if another rank is lost. */
#include "backend.h"

#include "core/flush.h"
#include "core/deferred.h"
#include "core/hooks.h"
#include "core/loss.h"
#include "core/record.h"
#include "core/progress.h"
#include "comm.h"
#include "step.h"

#include "base/fork.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK_NS UINT64_C(5000000) /* between two looks at the other ranks */
#define PAUSE_NS 2000
#define MAX_IN_FLIGHT 8                /* collectives of a rank, where other processes have ranks */
#define ABORT_NS UINT64_C(20000000000) /* for the end of work that was aborted */

typedef struct backend_call {
    hal_progress progress;      /* must be first */
    struct backend_call *next;  /* of the rank, recorded after this one */
    struct backend_call *later; /* in the process, among those that have not begun */
    hal_comm *comm;
    hal_timeline *timeline;
    hal_mailbox_call is;
    uint64_t number;        /* of the rank's calls of its backend, from 1 on */
    uint64_t before, value; /* of the batch before the collective, and of its own */
    uint64_t serial;        /* of the batch with its command, as its queue's recorder */
    uint64_t since;         /* first value of the queue whose rejection fails the communicator */
    uint64_t begin_ns, check_ns;
    uint64_t deadline_ns; /* for the end, or that of the abort; 0: the device has not reached the
                           * collective */
    _Atomic uint32_t references;
    bool is_waiting;  /* is in the list of those that have not begun */
    bool is_reported; /* a failure, to the queue */
} backend_call;

typedef struct backend_fence {
    hal_host_fence fence; /* must be first */
    backend_call *call;
    bool is_open;
} backend_fence;

static pthread_mutex_t backend_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(backend_lock, HAL_FORK_LAYER)
static backend_call *waiting_calls; /* of all backends, in the order of recording */

static bool call_reduces(const hal_mailbox_call *call)
{
    return call->kind == HAL_COLLECTIVE_ALL_REDUCE || call->kind == HAL_COLLECTIVE_REDUCE_SCATTER ||
           call->kind == HAL_COLLECTIVE_REDUCE;
}

/* Whether all ranks are in this process. */
static bool group_is_local(const hal_comm *comm)
{
    return comm->mailbox->file < 0 && !comm->mailbox->transport;
}

/* Whether the backend adds in the order of the ranks. */
static bool backend_has_order(const hal_comm *comm, const hal_mailbox_call *call)
{
    const hal_plugin_comm_backend *is = &comm->backend->is;
    return group_is_local(comm) && comm->count <= is->ordered_ranks &&
           call->kind == HAL_COLLECTIVE_ALL_REDUCE &&
           (call->reduction == HAL_REDUCE_SUM || call->reduction == HAL_REDUCE_MEAN) &&
           (is->ordered_types & HAL_TYPE_BIT(call->type)) != 0 &&
           call->count * hal_type_size((hal_type)call->type) <= is->ordered_bytes;
}

bool hal_backend_varies(const hal_comm *comm, const hal_mailbox_call *call)
{
    return !backend_has_order(comm, call) && call_reduces(call) &&
           hal_type_is_float((hal_type)call->type) &&
           (call->reduction == HAL_REDUCE_SUM || call->reduction == HAL_REDUCE_MEAN);
}

bool hal_backend_takes(const hal_comm *comm, const hal_mailbox_call *call)
{
    if (!comm->backend || call->count == 0) {
        return false;
    }
    const hal_plugin_comm_backend *is = &comm->backend->is;
    const bool power_of_two = (comm->count & (comm->count - 1)) == 0;
    const bool has_order = hal_backend_varies(comm, call) && !call->any_order;
    uint32_t types = is->min_max_types;
    if (!call_reduces(call) || backend_has_order(comm, call)) {
        return true;
    }
    if (call->reduction == HAL_REDUCE_SUM) {
        types = is->sum_types;
    } else if (call->reduction == HAL_REDUCE_MEAN) {
        types = power_of_two && hal_type_is_float((hal_type)call->type) ? is->mean_types : 0;
    }
    return (types & HAL_TYPE_BIT(call->type)) != 0 && !has_order;
}

/* ---- Calls ---- */

static void call_unref(backend_call *call)
{
    if (atomic_fetch_sub(&call->references, 1) == 1) {
        hal_comm_unref(call->comm);
        free(call);
    }
}

/* The plugin has begun, or never will. The caller holds the lock. */
static void call_stop_waiting(backend_call *call)
{
    backend_call **at = &waiting_calls;
    if (!call->is_waiting) {
        return;
    }
    while (*at != call) {
        at = &(*at)->later;
    }
    *at = call->later;
    call->is_waiting = false;
}

/* Whether all earlier collectives on the device have begun. */
static bool call_has_turn(const backend_call *call)
{
    bool has_turn = true;
    pthread_mutex_lock(&backend_lock);
    for (const backend_call *earlier = waiting_calls; earlier && earlier != call;
         earlier = earlier->later) {
        has_turn &= earlier->comm->device != call->comm->device;
    }
    pthread_mutex_unlock(&backend_lock);
    return has_turn;
}

static void backend_abort(hal_comm *comm)
{
    comm->device->plugin->comm_abort(comm->backend->handle);
}

/* Asks the plugin whether the collective has begun. The plugin answers for those that it has: one
 * that waits for its turn has not begun. An error ends the communicator. */
static hal_status call_poll_begin(backend_call *call, bool *has_begun)
{
    hal_comm *comm = call->comm;
    const bool is_submitted = hal_timeline_has_submitted(call->timeline, call->value);
    hal_host_clear_error();
    hal_status status = comm->device->plugin->comm_poll(comm->backend->handle);
    *has_begun = status == HAL_OK && is_submitted;
    if (*has_begun) {
        pthread_mutex_lock(&backend_lock);
        call_stop_waiting(call);
        pthread_mutex_unlock(&backend_lock);
    } else if (status == HAL_OK || status == HAL_ERROR_TIMEOUT) {
        hal_host_clear_error();
        status = HAL_OK;
    } else {
        char message[256];
        hal_device_failed(comm->device, status, "a collective");
        snprintf(message, sizeof message, "%s", hal_status_message());
        hal_mailbox_fail(comm->mailbox, comm->rank, status, message);
        status = hal_mailbox_check(comm->mailbox, "hal_queue_collective");
    }
    return status;
}

/* ---- Fences ---- */

/* The status of the communicator; a failure ends what the backend runs. */
static hal_status call_check(const backend_call *call)
{
    const hal_status status = hal_mailbox_check(call->comm->mailbox, "hal_queue_collective");
    if (status != HAL_OK) {
        backend_abort(call->comm);
        return hal_mailbox_check(call->comm->mailbox, "hal_queue_collective");
    }
    return HAL_OK;
}

static hal_status turn_advance(hal_host_fence *fence, bool repeats, bool *signaled)
{
    (void)repeats;
    backend_fence *turn = (backend_fence *)fence;
    const hal_status status = call_check(turn->call);
    turn->is_open |= status == HAL_OK && call_has_turn(turn->call);
    *signaled = turn->is_open;
    return status;
}

/* Of the batch after the collective. */
static hal_status begin_advance(hal_host_fence *fence, bool repeats, bool *signaled)
{
    (void)repeats;
    backend_fence *begin = (backend_fence *)fence;
    backend_call *call = begin->call;
    hal_status status = call_check(call);
    if (status == HAL_OK && atomic_load(&call->timeline->rejected) >= call->since) {
        hal_mailbox_fail(call->comm->mailbox, call->comm->rank, HAL_ERROR_INVALID_STATE,
                         "a batch of its queue failed");
        status = call_check(call);
    }
    if (status == HAL_OK && !begin->is_open) {
        status = call_poll_begin(call, &begin->is_open);
    }
    *signaled = begin->is_open;
    return status;
}

static void backend_fence_destroy(hal_host_fence *fence)
{
    backend_fence *own = (backend_fence *)fence;
    if (!own->is_open) {
        hal_mailbox_fail(own->call->comm->mailbox, own->call->comm->rank, HAL_ERROR_INVALID_STATE,
                         "its queue dropped a collective");
        backend_abort(own->call->comm);
    }
    call_unref(own->call);
    free(own);
}

/* Puts a fence before the batch in recording. */
static hal_status fence_add(hal_queue *queue, backend_call *call,
                            hal_status (*advance)(hal_host_fence *fence, bool repeats,
                                                  bool *signaled))
{
    backend_fence *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_collective: no host memory");
    }
    made->fence = (hal_host_fence){
        .advance = advance, .destroy = backend_fence_destroy, .policy = call->comm->policy};
    made->call = call;
    atomic_fetch_add(&call->references, 1);
    queue->recorder.recording->fence = &made->fence;
    return HAL_OK;
}

/* ---- The watch of the first collective in flight ---- */

/* Finds out whether the end can still come. Errors end the communicator. */
static hal_status call_look_at_ranks(backend_call *call, uint64_t now)
{
    hal_comm *comm = call->comm;
    hal_mailbox *mailbox = comm->mailbox;
    uint32_t behind = comm->count;
    bool has_begun = false;
    for (uint32_t q = 0; q < comm->count; q++) {
        const hal_mailbox_rank *rank = hal_mailbox_rank_at(mailbox, q);
        const bool is_dead = hal_mailbox_is_rank_dead(mailbox, q);
        const bool is_behind =
            !mailbox->transport && atomic_load(&rank->backend_calls) < call->number;
        behind = is_behind && q < behind ? q : behind;
        if (is_dead || (is_behind && atomic_load(&rank->left))) {
            hal_mailbox_fail(mailbox, q, HAL_ERROR_INVALID_STATE,
                             is_dead
                                 ? "its process ended without leaving the communicator"
                                 : "it left the communicator before a collective of other ranks");
        }
    }
    if (now > call->deadline_ns) {
        char message[320], text[128];
        hal_step_describe(&call->is, text);
        snprintf(message, sizeof message,
                 "it did not %s collective %llu of %s (%s) within the time limit of %s s, which "
                 "rank %u waited",
                 behind < comm->count ? "reach" : "end", (unsigned long long)call->number,
                 hal_backend_name(comm), text, HAL_NUMBER((double)comm->time_limit_ns / 1e9, 3),
                 comm->rank);
        hal_mailbox_fail(mailbox, behind < comm->count ? behind : comm->rank, HAL_ERROR_TIMEOUT,
                         message);
    }
    return call_poll_begin(call, &has_begun);
}

static hal_status call_look(backend_call *call)
{
    const uint64_t now = hal_clock_ns();
    hal_status status = hal_mailbox_check(call->comm->mailbox, "hal_queue_collective");
    if (status != HAL_OK || now < call->check_ns) {
        return status;
    }
    call->check_ns = now + CHECK_NS;
    if (call->deadline_ns == 0) {
        const bool is_there = hal_timeline_has_reached(call->timeline, call->before, true);
        call->deadline_ns = is_there ? now + call->comm->time_limit_ns : 0;
        return HAL_OK;
    }
    status = call_look_at_ranks(call, now);
    return status == HAL_OK ? hal_mailbox_check(call->comm->mailbox, "hal_queue_collective")
                            : status;
}

/* The queue's next call reports the failure, unless a fence does. */
static void call_report(backend_call *call, hal_status status)
{
    if (call->is_reported) {
        return;
    }
    call->is_reported = true;
    pthread_mutex_lock(&backend_lock);
    const bool is_waiting = call->is_waiting;
    pthread_mutex_unlock(&backend_lock);
    hal_timeline_pin(call->timeline);
    if (!is_waiting && !atomic_load(&call->timeline->closing)) {
        hal_queue *queue = hal_timeline_queue(call->timeline);
        hal_loss_add_work(queue, call->serial, call->value, status); /* before the error is told */
        hal_deferred_set_error(queue, status);
    }
    hal_timeline_unpin(call->timeline);
}

/* Work that continues after the abort: the device is of no use any more. The time counts from when
 * the device has reached the collective, which earlier work may delay. */
static void call_give_up(backend_call *call)
{
    const uint64_t now = hal_clock_ns();
    if (call->deadline_ns == 0) {
        const bool is_there = hal_timeline_has_reached(call->timeline, call->before, true);
        call->deadline_ns = is_there ? now + ABORT_NS : 0;
    } else if (now > call->deadline_ns) {
        hal_device_failed(call->comm->device, HAL_ERROR_DEVICE_LOST,
                          "a collective did not end when it was aborted");
    }
}

static bool call_progress(hal_progress *progress)
{
    backend_call *call = (backend_call *)progress;
    hal_backend *backend = call->comm->backend;
    hal_status status = HAL_OK;
    if (hal_device_is_after_fork(call->comm->device)) {
        return 0; /* it is the parent's */
    }
    if (hal_timeline_has_reached(call->timeline, call->value, true)) {
        status = hal_mailbox_check(call->comm->mailbox, "hal_queue_collective");
        if (status != HAL_OK) {
            call_report(call, status); /* its end may be that of an abort */
            return 1;
        }
        const hal_event event = {.kind = HAL_EVENT_RECEIVE,
                                 .device = call->timeline->device,
                                 .queue = hal_timeline_queue(call->timeline),
                                 .value = call->number,
                                 .begin_ns = call->begin_ns,
                                 .name = hal_step_kind_name(&call->is),
                                 .backend = backend->is.name};
        hal_event_end(&event, HAL_OK);
        return 1;
    }
    if (backend->is_aborted) {
        call_give_up(call);
        return 0;
    }
    status = call_look(call);
    if (status != HAL_OK) {
        backend->is_aborted = true;
        call->deadline_ns = 0;
        call_report(call, status);
        backend_abort(call->comm);
    }
    return 0;
}

static void call_end(hal_progress *progress)
{
    backend_call *call = (backend_call *)progress;
    hal_backend *backend = call->comm->backend;
    pthread_mutex_lock(&backend_lock);
    call_stop_waiting(call);
    backend->first = call->next;
    backend->last = backend->first ? backend->last : NULL;
    backend_call *next = backend->first;
    pthread_mutex_unlock(&backend_lock);
    atomic_fetch_add(&backend->completed, 1);
    if (next) {
        hal_progress_add(&next->progress);
    }
    call_unref(call);
}

/* ---- Recording ---- */

static backend_call *call_create(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *is)
{
    backend_call *call = calloc(1, sizeof *call);
    if (call) {
        call->progress = (hal_progress){.poll = call_progress, .end = call_end};
        call->comm = comm;
        call->timeline = &queue->timeline;
        call->is = *is;
        call->begin_ns = hal_clock_ns();
        call->is_waiting = true;
        atomic_store(&call->references, 1);
        hal_comm_ref(comm);
        pthread_mutex_lock(&backend_lock);
        backend_call **at = &waiting_calls;
        while (*at) {
            at = &(*at)->later;
        }
        *at = call;
        pthread_mutex_unlock(&backend_lock);
    }
    return call;
}

/* Of a call that was not submitted. */
static void call_drop(backend_call *call)
{
    pthread_mutex_lock(&backend_lock);
    call_stop_waiting(call);
    pthread_mutex_unlock(&backend_lock);
    call_unref(call);
}

/* The collective is with the queue from now on. */
static void call_enter_flight(backend_call *call)
{
    hal_backend *backend = call->comm->backend;
    call->number = ++backend->recorded;
    atomic_store(&hal_mailbox_rank_at(call->comm->mailbox, call->comm->rank)->backend_calls,
                 call->number);
    pthread_mutex_lock(&backend_lock);
    const bool is_first = !backend->first;
    if (is_first) {
        backend->first = call;
    } else {
        backend->last->next = call;
    }
    backend->last = call;
    pthread_mutex_unlock(&backend_lock);
    if (is_first) {
        hal_progress_add(&call->progress);
    }
}

static hal_status command_record(const backend_call *call, hal_queue *queue, hal_range send,
                                 hal_range recv)
{
    static const uint8_t access[2] = {HAL_ACCESS_READ, HAL_ACCESS_WRITE};
    const hal_range ranges[2] = {send, recv};
    const hal_plugin_collective what = {.comm = call->comm->backend->handle,
                                        .count = call->is.count,
                                        .kind = call->is.kind,
                                        .reduction = call->is.reduction,
                                        .root = call->is.root,
                                        .type = call->is.type};
    const hal_action action = {.kind = HAL_COMMAND_COLLECTIVE,
                               .range_count = 2,
                               .scalar_bytes = sizeof what,
                               .grid = {1, 1, 1},
                               .scalars = &what,
                               .ranges = ranges,
                               .access = access};
    return hal_record_action(&queue->recorder, &action);
}

/* The next batch uses the memory, too: the pool does not reuse it before the collective has begun,
 * when a queue can wait for its value. */
static hal_status memory_hold(hal_queue *queue, hal_range range)
{
    hal_memory *memory = NULL;
    return range.buffer ? hal_buffer_use(range.buffer, &queue->recorder, &memory) : HAL_OK;
}

/* Records the batch with the command; `*is_held` if it is not with the plugin yet. */
static hal_status call_submit(backend_call *call, hal_queue *queue, hal_range send, hal_range recv)
{
    hal_point point = {0};
    hal_status status = hal_flush_if_full(queue);
    if (status == HAL_OK && !call_has_turn(call)) {
        status = fence_add(queue, call, turn_advance);
    }
    call->serial = queue->recorder.serial;
    if (status == HAL_OK) {
        status = command_record(call, queue, send, recv);
    }
    if (status == HAL_OK) {
        status = hal_flush_waits(queue, &point);
    }
    call->value = point.value;
    return status;
}

/* A step without data, which compares the calls of the ranks that meet. */
static hal_step_description compare_step(const hal_comm *comm, const hal_mailbox_call *is,
                                         uint64_t since)
{
    uint32_t others = HAL_STEP_ALL;
    if (is->kind == HAL_COLLECTIVE_EXCHANGE) {
        others = is->root == comm->rank ? HAL_STEP_NONE : is->root;
    }
    return (hal_step_description){
        .call = *is, .since = since, .sources = others, .targets = others};
}

hal_status hal_backend_compare(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *is,
                               uint64_t since)
{
    const hal_step_description compare = compare_step(comm, is, since);
    return comm->backend->compares ? hal_step_record(comm, queue, &compare) : HAL_OK;
}

/* Waits until few collectives are in flight. A driver that has too much work waits for its device,
 * for ever if a collective in front needs a process that has ended: this thread has to come back to
 * its watch before. Ranks of one process begin together or not at all. */
static hal_status backend_await_room(hal_comm *comm)
{
    const hal_backend *backend = comm->backend;
    hal_status status = HAL_OK;
    while (!group_is_local(comm) && status == HAL_OK &&
           backend->recorded - atomic_load(&backend->completed) >= MAX_IN_FLIGHT) {
        hal_deferred_advance();
        hal_progress_poll_all(true);
        status = hal_mailbox_check(comm->mailbox, "hal_queue_collective");
        hal_pause_ns(PAUSE_NS);
    }
    return status;
}

hal_status hal_backend_record(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *is,
                              hal_range send, hal_range recv, uint64_t since)
{
    hal_point point = {0};
    hal_status status = hal_flush_waits(queue, &point);
    if (status == HAL_OK) {
        status = backend_await_room(comm);
    }
    backend_call *call = status == HAL_OK ? call_create(comm, queue, is) : NULL;
    if (!call) {
        return status == HAL_OK
                   ? hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_collective: no host memory")
                   : status;
    }
    call->before = point.value;
    call->since = since;
    status = call_submit(call, queue, send, recv);
    if (status != HAL_OK) {
        call_drop(call);
        return status;
    }
    atomic_fetch_add(&call->references, 1); /* the watch may end it meanwhile */
    bool has_begun = false;
    if (hal_timeline_has_submitted(&queue->timeline, call->value)) {
        status = call_poll_begin(call, &has_begun);
    }
    if (status == HAL_OK && !has_begun) {
        status = fence_add(queue, call, begin_advance);
    }
    const bool is_fenced = status == HAL_OK && !has_begun;
    call_enter_flight(call);
    if (is_fenced) {
        status = memory_hold(queue, send);
        status = status == HAL_OK ? memory_hold(queue, recv) : status;
        status = status == HAL_OK ? hal_flush_waits(queue, NULL) : status;
    }
    call_unref(call);
    return status;
}
