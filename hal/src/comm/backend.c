/* Collectives of engines, see engine.h. A collective is a batch with one command. Two gates may be
 * with it: the batch itself waits for its turn, since engines of one device run their collectives
 * in the order of recording, and the next batch waits until the plugin has begun, which may need
 * other ranks of this process. No gate waits for the end: a watch does, which ends the group if
 * another rank is lost. Called by collective.c. */
#include "engine.h"

#include "core/flush.h"
#include "core/held.h"
#include "core/hooks.h"
#include "core/record.h"
#include "core/watch.h"
#include "step.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK_NS UINT64_C(5000000) /* between two looks at the other ranks */
#define PAUSE_NS 2000
#define MAX_IN_FLIGHT 8                /* collectives of a rank, where other processes have ranks */
#define ABORT_NS UINT64_C(20000000000) /* for the end of work that was aborted */

typedef struct engine_call {
    hal_watch watch;           /* must be first */
    struct engine_call *next;  /* of the rank, recorded after this one */
    struct engine_call *later; /* in the process, among those that have not begun */
    hal_group *group;
    hal_timeline *timeline;
    hal_board_call is;
    uint64_t number;        /* of the rank's calls of its engine, from 1 on */
    uint64_t before, value; /* of the batch before the collective, and of its own */
    uint64_t since;         /* first value of the queue whose rejection fails the group */
    uint64_t begin_ns, check_ns;
    uint64_t deadline_ns; /* for the end, or that of the abort; 0: the device has not reached the
                           * collective */
    _Atomic uint32_t references;
    int is_waiting;  /* is in the list of those that have not begun */
    int is_reported; /* a failure, to the queue */
} engine_call;

typedef struct engine_gate {
    hal_gate gate; /* must be first */
    engine_call *call;
    int is_open;
} engine_gate;

static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static engine_call *waiting_calls; /* of all engines, in the order of recording */

static int call_reduces(const hal_board_call *call)
{
    return call->kind == HAL_ALL_REDUCE || call->kind == HAL_REDUCE_SCATTER ||
           call->kind == HAL_REDUCE;
}

/* Whether all ranks are in this process. */
static int group_is_local(const hal_group *group)
{
    return group->board->file < 0 && !group->board->link;
}

/* Whether the engine adds in the order of the ranks. */
static int engine_has_order(const hal_group *group, const hal_board_call *call)
{
    const hal_plugin_group_engine *is = &group->engine->is;
    return group_is_local(group) && group->count <= is->ordered_ranks &&
           call->kind == HAL_ALL_REDUCE &&
           (call->reduction == HAL_REDUCE_SUM || call->reduction == HAL_REDUCE_MEAN) &&
           (is->ordered_types & HAL_TYPE_BIT(call->type)) != 0 &&
           call->count * hal_type_size((hal_type)call->type) <= is->ordered_bytes;
}

int hal_engine_varies(const hal_group *group, const hal_board_call *call)
{
    return !engine_has_order(group, call) && call_reduces(call) &&
           hal_type_is_float((hal_type)call->type) &&
           (call->reduction == HAL_REDUCE_SUM || call->reduction == HAL_REDUCE_MEAN);
}

int hal_engine_takes(const hal_group *group, const hal_board_call *call)
{
    if (!group->engine || call->count == 0) {
        return 0;
    }
    const hal_plugin_group_engine *is = &group->engine->is;
    const int power_of_two = (group->count & (group->count - 1)) == 0;
    const int has_order = hal_engine_varies(group, call) && !call->any_order;
    uint32_t types = is->min_max_types;
    if (!call_reduces(call) || engine_has_order(group, call)) {
        return 1;
    }
    if (call->reduction == HAL_REDUCE_SUM) {
        types = is->sum_types;
    } else if (call->reduction == HAL_REDUCE_MEAN) {
        types = power_of_two && hal_type_is_float((hal_type)call->type) ? is->mean_types : 0;
    }
    return (types & HAL_TYPE_BIT(call->type)) != 0 && !has_order;
}

/* ---- Calls ---- */

static void call_unref(engine_call *call)
{
    if (atomic_fetch_sub(&call->references, 1) == 1) {
        hal_group_unref(call->group);
        free(call);
    }
}

/* The plugin has begun, or never will. The caller holds the lock. */
static void call_stop_waiting(engine_call *call)
{
    engine_call **at = &waiting_calls;
    if (!call->is_waiting) {
        return;
    }
    while (*at != call) {
        at = &(*at)->later;
    }
    *at = call->later;
    call->is_waiting = 0;
}

/* Whether all earlier collectives on the device have begun. */
static int call_has_turn(const engine_call *call)
{
    int has_turn = 1;
    pthread_mutex_lock(&engine_lock);
    for (const engine_call *earlier = waiting_calls; earlier && earlier != call;
         earlier = earlier->later) {
        has_turn &= earlier->group->device != call->group->device;
    }
    pthread_mutex_unlock(&engine_lock);
    return has_turn;
}

static void engine_abort(hal_group *group)
{
    group->device->plugin->group_abort(group->engine->handle);
}

/* Asks the plugin whether the collective has begun. The plugin answers for those that it has: one
 * that waits for its turn has not begun. An error ends the group. */
static hal_status call_poll_begin(engine_call *call, int *has_begun)
{
    hal_group *group = call->group;
    const int is_submitted = hal_timeline_has_submitted(call->timeline, call->value);
    hal_host_clear_error();
    hal_status status = group->device->plugin->group_poll(group->engine->handle);
    *has_begun = status == HAL_OK && is_submitted;
    if (*has_begun) {
        pthread_mutex_lock(&engine_lock);
        call_stop_waiting(call);
        pthread_mutex_unlock(&engine_lock);
    } else if (status == HAL_OK || status == HAL_ERROR_TIMEOUT) {
        hal_host_clear_error();
        status = HAL_OK;
    } else {
        char message[256];
        hal_device_failed(group->device, status, "a collective");
        snprintf(message, sizeof message, "%s", hal_status_message());
        hal_board_fail(group->board, group->rank, status, message);
        status = hal_board_check(group->board, "hal_queue_collective");
    }
    return status;
}

/* ---- Gates ---- */

/* The status of the group; a failure ends what the engine runs. */
static hal_status call_check(const engine_call *call)
{
    const hal_status status = hal_board_check(call->group->board, "hal_queue_collective");
    if (status != HAL_OK) {
        engine_abort(call->group);
        return hal_board_check(call->group->board, "hal_queue_collective");
    }
    return HAL_OK;
}

static hal_status turn_advance(hal_gate *gate, int *open)
{
    engine_gate *turn = (engine_gate *)gate;
    const hal_status status = call_check(turn->call);
    turn->is_open |= status == HAL_OK && call_has_turn(turn->call);
    *open = turn->is_open;
    return status;
}

/* Of the batch after the collective. */
static hal_status begin_advance(hal_gate *gate, int *open)
{
    engine_gate *begin = (engine_gate *)gate;
    engine_call *call = begin->call;
    hal_status status = call_check(call);
    if (status == HAL_OK && atomic_load(&call->timeline->rejected) >= call->since) {
        hal_board_fail(call->group->board, call->group->rank, HAL_ERROR_INVALID_STATE,
                       "a batch of its queue failed");
        status = call_check(call);
    }
    if (status == HAL_OK && !begin->is_open) {
        status = call_poll_begin(call, &begin->is_open);
    }
    *open = begin->is_open;
    return status;
}

static void engine_gate_destroy(hal_gate *gate)
{
    engine_gate *own = (engine_gate *)gate;
    if (!own->is_open) {
        hal_board_fail(own->call->group->board, own->call->group->rank, HAL_ERROR_INVALID_STATE,
                       "its queue dropped a collective");
        engine_abort(own->call->group);
    }
    call_unref(own->call);
    free(own);
}

/* Puts a gate before the batch in recording. */
static hal_status gate_add(hal_queue *queue, engine_call *call,
                           hal_status (*advance)(hal_gate *gate, int *open))
{
    engine_gate *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_collective: no host memory");
    }
    made->gate = (hal_gate){
        .advance = advance, .destroy = engine_gate_destroy, .is_crowded = call->group->is_crowded};
    made->call = call;
    atomic_fetch_add(&call->references, 1);
    queue->recorder.recording->gate = &made->gate;
    return HAL_OK;
}

/* ---- The watch of the first collective in flight ---- */

/* Finds out whether the end can still come. Errors end the group. */
static hal_status call_look_at_ranks(engine_call *call, uint64_t now)
{
    hal_group *group = call->group;
    hal_board *board = group->board;
    uint32_t behind = group->count;
    int has_begun = 0;
    for (uint32_t q = 0; q < group->count; q++) {
        const hal_board_rank *rank = hal_board_rank_at(board, q);
        const int is_dead = hal_board_is_rank_dead(board, q);
        const int is_behind = !board->link && atomic_load(&rank->engine_calls) < call->number;
        behind = is_behind && q < behind ? q : behind;
        if (is_dead || (is_behind && atomic_load(&rank->left))) {
            hal_board_fail(board, q, HAL_ERROR_INVALID_STATE,
                           is_dead ? "its process ended without leaving the group"
                                   : "it left the group before a collective of other ranks");
        }
    }
    if (now > call->deadline_ns) {
        char message[320], text[128];
        hal_step_describe(&call->is, text);
        snprintf(message, sizeof message,
                 "it did not %s collective %llu of %s (%s) within the time limit of %.3f s, which "
                 "rank %u waited",
                 behind < group->count ? "reach" : "end", (unsigned long long)call->number,
                 hal_engine_name(group), text, (double)group->time_limit_ns / 1e9, group->rank);
        hal_board_fail(board, behind < group->count ? behind : group->rank, HAL_ERROR_TIMEOUT,
                       message);
    }
    return call_poll_begin(call, &has_begun);
}

static hal_status call_look(engine_call *call)
{
    const uint64_t now = hal_clock_ns();
    hal_status status = hal_board_check(call->group->board, "hal_queue_collective");
    if (status != HAL_OK || now < call->check_ns) {
        return status;
    }
    call->check_ns = now + CHECK_NS;
    if (call->deadline_ns == 0) {
        const int is_there = hal_timeline_has_reached(call->timeline, call->before, 1);
        call->deadline_ns = is_there ? now + call->group->time_limit_ns : 0;
        return HAL_OK;
    }
    status = call_look_at_ranks(call, now);
    return status == HAL_OK ? hal_board_check(call->group->board, "hal_queue_collective") : status;
}

/* The queue's next call reports the failure, unless a gate does. */
static void call_report(engine_call *call, hal_status status)
{
    if (call->is_reported) {
        return;
    }
    call->is_reported = 1;
    pthread_mutex_lock(&engine_lock);
    const int is_waiting = call->is_waiting;
    pthread_mutex_unlock(&engine_lock);
    hal_timeline_pin(call->timeline);
    if (!is_waiting && !atomic_load(&call->timeline->closing)) {
        hal_held_set_deferred_error(hal_timeline_queue(call->timeline), status);
    }
    hal_timeline_unpin(call->timeline);
}

/* Work that goes on after the abort: the device is of no use any more. The time counts from when
 * the device has reached the collective, which earlier work may delay. */
static void call_give_up(engine_call *call)
{
    const uint64_t now = hal_clock_ns();
    if (call->deadline_ns == 0) {
        const int is_there = hal_timeline_has_reached(call->timeline, call->before, 1);
        call->deadline_ns = is_there ? now + ABORT_NS : 0;
    } else if (now > call->deadline_ns) {
        hal_device_failed(call->group->device, HAL_ERROR_DEVICE_LOST,
                          "a collective did not end when it was aborted");
    }
}

static int call_watch(hal_watch *watch)
{
    engine_call *call = (engine_call *)watch;
    hal_engine *engine = call->group->engine;
    hal_status status = HAL_OK;
    if (hal_device_is_after_fork(call->group->device)) {
        return 0; /* it is the parent's */
    }
    if (hal_timeline_has_reached(call->timeline, call->value, 1)) {
        status = hal_board_check(call->group->board, "hal_queue_collective");
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
                                 .engine = engine->is.name};
        hal_event_end(&event, HAL_OK);
        return 1;
    }
    if (engine->is_aborted) {
        call_give_up(call);
        return 0;
    }
    status = call_look(call);
    if (status != HAL_OK) {
        engine->is_aborted = 1;
        call->deadline_ns = 0;
        call_report(call, status);
        engine_abort(call->group);
    }
    return 0;
}

static void call_watch_end(hal_watch *watch)
{
    engine_call *call = (engine_call *)watch;
    hal_engine *engine = call->group->engine;
    pthread_mutex_lock(&engine_lock);
    call_stop_waiting(call);
    engine->first = call->next;
    engine->last = engine->first ? engine->last : NULL;
    engine_call *next = engine->first;
    pthread_mutex_unlock(&engine_lock);
    atomic_fetch_add(&engine->completed, 1);
    if (next) {
        hal_watch_add(&next->watch);
    }
    call_unref(call);
}

/* ---- Recording ---- */

static engine_call *call_create(hal_group *group, hal_queue *queue, const hal_board_call *is)
{
    engine_call *call = calloc(1, sizeof *call);
    if (call) {
        call->watch = (hal_watch){.poll = call_watch, .end = call_watch_end};
        call->group = group;
        call->timeline = &queue->timeline;
        call->is = *is;
        call->begin_ns = hal_clock_ns();
        call->is_waiting = 1;
        atomic_store(&call->references, 1);
        hal_group_ref(group);
        pthread_mutex_lock(&engine_lock);
        engine_call **at = &waiting_calls;
        while (*at) {
            at = &(*at)->later;
        }
        *at = call;
        pthread_mutex_unlock(&engine_lock);
    }
    return call;
}

/* Of a call that was not submitted. */
static void call_drop(engine_call *call)
{
    pthread_mutex_lock(&engine_lock);
    call_stop_waiting(call);
    pthread_mutex_unlock(&engine_lock);
    call_unref(call);
}

/* The collective is with the queue from now on. */
static void call_enter_flight(engine_call *call)
{
    hal_engine *engine = call->group->engine;
    call->number = ++engine->recorded;
    atomic_store(&hal_board_rank_at(call->group->board, call->group->rank)->engine_calls,
                 call->number);
    pthread_mutex_lock(&engine_lock);
    const int is_first = !engine->first;
    if (is_first) {
        engine->first = call;
    } else {
        engine->last->next = call;
    }
    engine->last = call;
    pthread_mutex_unlock(&engine_lock);
    if (is_first) {
        hal_watch_add(&call->watch);
    }
}

static hal_status command_record(const engine_call *call, hal_queue *queue, hal_range send,
                                 hal_range recv)
{
    static const uint8_t access[2] = {HAL_ACCESS_READ, HAL_ACCESS_WRITE};
    const hal_range ranges[2] = {send, recv};
    const hal_plugin_collective what = {.group = call->group->engine->handle,
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
static hal_status call_submit(engine_call *call, hal_queue *queue, hal_range send, hal_range recv)
{
    hal_point point = {0};
    hal_status status = hal_flush_if_full(queue);
    if (status == HAL_OK && !call_has_turn(call)) {
        status = gate_add(queue, call, turn_advance);
    }
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
static hal_step_description compare_step(const hal_group *group, const hal_board_call *is,
                                         uint64_t since)
{
    uint32_t others = HAL_STEP_ALL;
    if (is->kind == HAL_EXCHANGE) {
        others = is->root == group->rank ? HAL_STEP_NONE : is->root;
    }
    return (hal_step_description){
        .call = *is, .since = since, .sources = others, .targets = others};
}

hal_status hal_engine_compare(hal_group *group, hal_queue *queue, const hal_board_call *is,
                              uint64_t since)
{
    const hal_step_description compare = compare_step(group, is, since);
    return group->engine->compares ? hal_step_record(group, queue, &compare) : HAL_OK;
}

/* Waits until few collectives are in flight. A driver that has too much work waits for its device,
 * for ever if a collective in front needs a process that has ended: this thread has to come back to
 * its watch before. Ranks of one process begin together or not at all. */
static hal_status engine_await_room(hal_group *group)
{
    const hal_engine *engine = group->engine;
    hal_status status = HAL_OK;
    while (!group_is_local(group) && status == HAL_OK &&
           engine->recorded - atomic_load(&engine->completed) >= MAX_IN_FLIGHT) {
        hal_held_advance();
        hal_watch_poll_all(1);
        status = hal_board_check(group->board, "hal_queue_collective");
        hal_pause_ns(PAUSE_NS);
    }
    return status;
}

hal_status hal_engine_record(hal_group *group, hal_queue *queue, const hal_board_call *is,
                             hal_range send, hal_range recv, uint64_t since)
{
    hal_point point = {0};
    hal_status status = hal_flush_waits(queue, &point);
    if (status == HAL_OK) {
        status = engine_await_room(group);
    }
    engine_call *call = status == HAL_OK ? call_create(group, queue, is) : NULL;
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
    int has_begun = 0;
    if (hal_timeline_has_submitted(&queue->timeline, call->value)) {
        status = call_poll_begin(call, &has_begun);
    }
    if (status == HAL_OK && !has_begun) {
        status = gate_add(queue, call, begin_advance);
    }
    const int is_gated = status == HAL_OK && !has_begun;
    call_enter_flight(call);
    if (is_gated) {
        status = memory_hold(queue, send);
        status = status == HAL_OK ? memory_hold(queue, recv) : status;
        status = status == HAL_OK ? hal_flush_waits(queue, NULL) : status;
    }
    call_unref(call);
    return status;
}
