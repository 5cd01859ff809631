/* Steps of collectives, see step.h. A step waits without holding the device or a lock: its batch is
 * submitted when all of its data is there. docs/communicators.md has the argument why steps do not
 * deadlock. */
#include "direct.h"
#include "comm.h"
#include "step.h"

#include "core/buffer.h"
#include "core/flush.h"
#include "core/deferred.h"
#include "core/hooks.h"
#include "core/wait_cycle.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

#include <hal/ir_build.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEAD_CHECK_NS UINT64_C(5000000) /* between two looks whether a rank's process lives */

typedef struct group_step {
    hal_host_fence fence; /* must be first */
    hal_comm *comm;
    hal_timeline *timeline;
    uint64_t value; /* of the batch that produces `out` */
    uint64_t number;
    hal_step_description is;
    uint32_t next; /* source to be read next */
    bool is_published;
    bool is_large;      /* ranks may offer memory of their processes (direct.h) */
    bool is_offered;    /* targets read `out` itself, which stays as it is until they have */
    bool is_received;   /* all data of the sources is here */
    bool has_transfers; /* the transport may use `out` and `in` */
    bool is_open;
    bool is_repeated;     /* the poll follows another one at once: no need to read the clock */
    uint64_t deadline_ns; /* for what the step waits for; 0: not waiting */
    uint64_t dead_check_ns;
    uint64_t published_ns; /* for the trace; 0 without layers */
} group_step;

static const char *const kind_names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                         "reduce",     "all_to_all", "exchange"};
static const char *const reduction_names[] = {"sum", "mean", "min", "max"};

void hal_step_describe(const hal_mailbox_call *call, char text[128])
{
    const bool reduces = call->kind == HAL_COLLECTIVE_ALL_REDUCE ||
                         call->kind == HAL_COLLECTIVE_REDUCE_SCATTER ||
                         call->kind == HAL_COLLECTIVE_REDUCE;
    const char *type = hal_type_name((hal_type)call->type);
    char root[24] = "";
    if (call->kind == HAL_COLLECTIVE_BROADCAST || call->kind == HAL_COLLECTIVE_REDUCE ||
        call->kind == HAL_COLLECTIVE_EXCHANGE) {
        snprintf(root, sizeof root, ", root %u", call->root);
    }
    snprintf(text, 128, "%s of %llu %s%s%s%s%s",
             call->kind <= HAL_COLLECTIVE_EXCHANGE ? kind_names[call->kind] : "?",
             (unsigned long long)call->count, type ? type : "?", reduces ? ", " : "",
             reduces && call->reduction < 4 ? reduction_names[call->reduction] : "", root,
             call->any_order ? ", any order" : "");
}

const char *hal_step_kind_name(const hal_mailbox_call *call)
{
    return kind_names[call->kind];
}

static hal_status step_fail(group_step *step, uint32_t rank, hal_status status, const char *message)
{
    hal_mailbox_fail(step->comm->mailbox, rank, status, message);
    return hal_mailbox_check(step->comm->mailbox, "hal_queue_collective");
}

/* The status of a call that the step makes; a failure ends the communicator. */
static hal_status step_own_status(group_step *step, hal_status status)
{
    char message[256];
    if (status == HAL_OK) {
        return HAL_OK;
    }
    snprintf(message, sizeof message, "%s", hal_status_message());
    return step_fail(step, step->comm->rank, status, message);
}

/* Whether the step continues without `rank`, whose process may have ended. */
static bool step_needs_no_more_of(const group_step *step, uint32_t rank)
{
    const hal_mailbox *mailbox = step->comm->mailbox;
    const hal_mailbox_rank *other = hal_mailbox_rank_at(mailbox, rank);
    if (!hal_mailbox_has_published(mailbox, rank, step->number)) {
        return false;
    }
    return step->is_received
               ? atomic_load(&other->read) >= step->number
               : !step->is_large || !hal_direct_is_offered(mailbox, rank, step->number);
}

/* The step cannot go on before `rank` has done something. Errors: TIMEOUT, INVALID_STATE. */
static hal_status step_wait_for(group_step *step, uint32_t rank, const char *what)
{
    const hal_comm *comm = step->comm;
    char message[256], call[128];
    if (step->is_repeated) {
        return HAL_OK;
    }
    const uint64_t now = hal_clock_ns();
    if (step->deadline_ns == 0) {
        step->deadline_ns = now + comm->time_limit_ns;
        step->dead_check_ns = now + DEAD_CHECK_NS;
    }
    if (now >= step->dead_check_ns) {
        step->dead_check_ns = now + DEAD_CHECK_NS;
        /* The order matters: a rank publishes before it ends. */
        const bool is_dead = hal_mailbox_is_rank_dead(comm->mailbox, rank);
        const hal_mailbox_rank *other = hal_mailbox_rank_at(comm->mailbox, rank);
        const bool has_left = atomic_load(&other->left) != 0;
        if ((is_dead || has_left) && !step_needs_no_more_of(step, rank)) {
            return step_fail(step, rank, HAL_ERROR_INVALID_STATE,
                             is_dead
                                 ? "its process ended without leaving the communicator"
                                 : "it left the communicator before a collective of other ranks");
        }
    }
    if (now < step->deadline_ns) {
        return HAL_OK;
    }
    hal_step_describe(&step->is.call, call);
    snprintf(message, sizeof message,
             "it did not %s step %llu (%s) within the time limit of %s s, which rank %u waited",
             what, (unsigned long long)step->number, call,
             HAL_NUMBER((double)comm->time_limit_ns / 1e9, 3), comm->rank);
    return step_fail(step, rank, HAL_ERROR_TIMEOUT, message);
}

/* Whether what the rank publishes is complete. Errors: those of its device and queue. */
static hal_status step_poll_own(group_step *step, bool *done)
{
    hal_timeline *timeline = step->timeline;
    *done = hal_timeline_has_reached(timeline, step->value, true);
    if (atomic_load(&timeline->device->lost)) {
        return step_fail(step, step->comm->rank, HAL_ERROR_DEVICE_LOST, "its device is lost");
    }
    if (*done && atomic_load(&timeline->rejected) >= step->is.since) {
        char reason[256], message[320];
        hal_deferred_copy_message(hal_timeline_queue(timeline), reason, sizeof reason);
        snprintf(message, sizeof message, "a batch of its queue failed%s%s", *reason ? ": " : "",
                 reason);
        return step_fail(step, step->comm->rank, HAL_ERROR_INVALID_STATE, message);
    }
    return HAL_OK;
}

/* Makes what the device wrote visible to the host. */
static hal_status step_invalidate_out(const group_step *step)
{
    const hal_segments *out = &step->is.out;
    hal_status status = HAL_OK;
    for (uint32_t q = 0; status == HAL_OK && q < out->count; q++) {
        if (!out->skip_own || q != step->comm->rank) {
            status =
                hal_memory_invalidate(step->timeline->device, out->memory,
                                      out->offset + q * out->stride, hal_segment_bytes(out, q));
        }
    }
    return status;
}

/* Whether the messages of the ranks have room for what they publish; equally on all ranks. */
static bool step_is_short(const group_step *step)
{
    const hal_mailbox_call *call = &step->is.call;
    return !step->comm->mailbox->transport && call->kind != HAL_COLLECTIVE_REDUCE_SCATTER &&
           call->kind != HAL_COLLECTIVE_ALL_TO_ALL &&
           call->count <= HAL_MAILBOX_SHORT_BYTES / hal_type_size((hal_type)call->type);
}

/* Where a rank's data of the step is on the mailbox. */
static uint8_t *step_slot(const group_step *step, uint32_t rank)
{
    const hal_mailbox *mailbox = step->comm->mailbox;
    return step_is_short(step) ? hal_mailbox_rank_at(mailbox, rank)->messages[step->number % 2].data
                               : hal_mailbox_slot(mailbox, rank, step->number);
}

static void step_copy_out(const group_step *step)
{
    const hal_segments *out = &step->is.out;
    uint8_t *slot = step_slot(step, step->comm->rank);
    for (uint32_t q = 0; q < out->count; q++) {
        if (!out->skip_own || q != step->comm->rank) {
            memcpy(slot + out->slot_offset + q * out->slot_stride, out->host + q * out->stride,
                   hal_segment_bytes(out, q));
        }
    }
}

/* Copies what the rank publishes to its own segment of what it receives. */
static hal_status step_keep_own(const group_step *step)
{
    const hal_segments *in = &step->is.in, *out = &step->is.out;
    const uint64_t begin = step->comm->rank * in->stride;
    memcpy(in->host + begin, out->host, out->bytes);
    return hal_memory_flush(step->timeline->device, in->memory, in->offset + begin, out->bytes);
}

/* Publishes the rank's data once all ranks have consumed what the slot held. */
static hal_status step_publish(group_step *step)
{
    const hal_mailbox *mailbox = step->comm->mailbox;
    const uint64_t window = mailbox->transport ? HAL_TRANSPORT_WINDOW : 2;
    hal_mailbox_rank *own = hal_mailbox_rank_at(mailbox, step->comm->rank);
    hal_mailbox_message *message = &own->messages[step->number % 2];
    bool done = false;
    if (atomic_load_explicit(&own->consumed, memory_order_relaxed) + 1 != step->number) {
        return HAL_OK; /* an earlier step, recorded on another queue, comes first */
    }
    hal_status status = step_poll_own(step, &done);
    if (status != HAL_OK || !done) {
        return status;
    }
    for (uint32_t q = 0; q < mailbox->count; q++) {
        const hal_mailbox_rank *rank = hal_mailbox_rank_at(mailbox, q);
        if (mailbox->transport && q != step->comm->rank) {
            HAL_TRY(step_own_status(step, hal_transport_look(mailbox->transport, q, step->number)));
        }
        /* A rank that has published step s - 1 has consumed s - 2: a line that is known already. */
        if (!hal_mailbox_has_published(mailbox, q, step->number - 1) &&
            atomic_load_explicit(&rank->consumed, memory_order_acquire) + window < step->number) {
            return step_wait_for(step, q, "complete what precedes");
        }
    }
    status = step_invalidate_out(step);
    if (status == HAL_OK && step->is.keeps_own) {
        status = step_keep_own(step);
    }
    if (status != HAL_OK) {
        return step_own_status(step, status);
    }
    if (mailbox->transport) {
        step->has_transfers = true;
        HAL_TRY(step_own_status(step, hal_transport_publish(mailbox->transport, step->number,
                                                            &step->is.call, step->is.targets,
                                                            &step->is.out)));
    } else if (step->is_large && hal_direct_is_worth(mailbox, step->comm->rank, &step->is.out)) {
        step->is_offered = true;
        hal_direct_offer(mailbox, step->comm->rank, step->number, &step->is.out);
    } else {
        step_copy_out(step);
        if (step->is_large) {
            hal_direct_offer_slot(mailbox, step->comm->rank, step->number);
        }
    }
    message->call = step->is.call;
    atomic_store_explicit(&message->step, step->number, memory_order_release);
    step->is_published = step->fence.has_published = true;
    step->deadline_ns = 0;
    step->published_ns = hal_hooks_on(HAL_HOOK_EVENTS) ? hal_clock_ns() : 0;
    return HAL_OK;
}

/* Compares the call of a rank with the own one, before its data is read. */
static hal_status step_compare(group_step *step, uint32_t q)
{
    const hal_mailbox_call *own = &step->is.call;
    const hal_mailbox_call *other =
        &hal_mailbox_rank_at(step->comm->mailbox, q)->messages[step->number % 2].call;
    const bool same_root = own->kind == HAL_COLLECTIVE_EXCHANGE ? other->root == step->comm->rank
                                                                : other->root == own->root;
    if (own->kind == other->kind && own->reduction == other->reduction &&
        own->type == other->type && own->count == other->count &&
        own->any_order == other->any_order && same_root) {
        return HAL_OK;
    }
    char ours[128], theirs[128], message[384];
    hal_step_describe(own, ours);
    hal_step_describe(other, theirs);
    snprintf(message, sizeof message,
             "step %llu: expected the same collective on all ranks, got %s on rank %u and %s on "
             "rank %u",
             (unsigned long long)step->number, ours, step->comm->rank, theirs, q);
    return step_fail(step, step->comm->rank, HAL_ERROR_INVALID_ARGUMENT, message);
}

/* Reads what rank q has published, if it has. */
static hal_status step_receive(group_step *step, uint32_t q, bool *received)
{
    const hal_mailbox *mailbox = step->comm->mailbox;
    const hal_segments *in = &step->is.in;
    const uint32_t segment = step->is.sources == HAL_STEP_ALL ? q : 0;
    const uint64_t bytes = in->count > 0 ? hal_segment_bytes(in, segment) : 0;
    uint8_t *target = in->count > 0 ? in->host + segment * in->stride : NULL;
    hal_status status = HAL_OK;
    if (mailbox->transport) {
        status = step_own_status(step, hal_transport_look(mailbox->transport, q, step->number));
    }
    *received = hal_mailbox_has_published(mailbox, q, step->number);
    if (status != HAL_OK || !*received) {
        return status;
    }
    status = step_compare(step, q);
    if (status == HAL_OK && mailbox->transport) {
        status = step_own_status(
            step, hal_transport_take(mailbox->transport, q, step->number, target, bytes, received));
    } else if (status == HAL_OK && bytes > 0 && step->is_large &&
               hal_direct_is_offered(mailbox, q, step->number)) {
        *received = hal_direct_read(mailbox, step->comm->rank, q, step->number, target, bytes);
    } else if (status == HAL_OK && bytes > 0) {
        memcpy(target, step_slot(step, q) + in->slot_offset, bytes);
    }
    if (status == HAL_OK && *received && bytes > 0) {
        status = step_own_status(step, hal_memory_flush(step->timeline->device, in->memory,
                                                        in->offset + segment * in->stride, bytes));
    }
    return status;
}

/* Receives from all sources that have published, in their order if the data is copied here. */
static hal_status step_receive_all(group_step *step, bool *done)
{
    const hal_comm *comm = step->comm;
    hal_transport *transport = comm->mailbox->transport;
    uint32_t missing = comm->count;
    *done = false;
    for (uint32_t q = step->next; q < comm->count && (transport || missing == comm->count); q++) {
        bool received = true;
        if (q != comm->rank && hal_step_has(step->is.sources, q)) {
            HAL_TRY(step_receive(step, q, &received));
        }
        missing = !received && q < missing ? q : missing;
    }
    step->deadline_ns = missing > step->next ? 0 : step->deadline_ns;
    step->next = missing;
    *done = missing == comm->count;
    if (*done && transport) {
        HAL_TRY(step_own_status(step, hal_transport_is_sent(transport, &missing, done)));
    }
    return *done ? HAL_OK : step_wait_for(step, missing, "reach");
}

/* Puts what the step offers in the slot as well, once a rank cannot read it. Ranks that refuse each
 * other do so before they receive. */
static void step_help_refused(const group_step *step)
{
    const hal_mailbox *mailbox = step->comm->mailbox;
    const uint32_t rank = step->comm->rank;
    if (step->is_offered && hal_direct_is_offered(mailbox, rank, step->number) &&
        hal_direct_is_refused(mailbox)) {
        step_copy_out(step);
        hal_direct_offer_slot(mailbox, rank, step->number);
    }
}

/* Waits until all targets have copied what the step offers them. */
static hal_status step_await_readers(group_step *step, bool *done)
{
    const hal_comm *comm = step->comm;
    *done = false;
    for (uint32_t q = 0; step->is_offered && q < comm->count; q++) {
        const hal_mailbox_rank *target = hal_mailbox_rank_at(comm->mailbox, q);
        if (q == comm->rank || !hal_step_has(step->is.targets, q) ||
            atomic_load_explicit(&target->read, memory_order_acquire) >= step->number) {
            continue;
        }
        return step_wait_for(step, q, "read the data of");
    }
    *done = true;
    return HAL_OK;
}

/* Tells the layers what the rank has received. */
static void step_tell(const group_step *step)
{
    const hal_event event = {.kind = HAL_EVENT_RECEIVE,
                             .device = step->timeline->device,
                             .queue = hal_timeline_queue(step->timeline),
                             .value = step->number,
                             .begin_ns = step->published_ns,
                             .name = kind_names[step->is.call.kind],
                             .backend = hal_mailbox_backend(step->comm->mailbox)};
    hal_event_end(&event, HAL_OK);
}

static hal_status step_advance(hal_host_fence *fence, bool repeats, bool *signaled)
{
    group_step *step = (group_step *)fence;
    const hal_comm *comm = step->comm;
    step->is_repeated = repeats;
    *signaled = step->is_open;
    hal_status status = hal_mailbox_check(comm->mailbox, "hal_queue_collective");
    if (status == HAL_OK && !step->is_published) {
        status = step_publish(step);
    }
    if (status != HAL_OK || !step->is_published || step->is_open) {
        return status;
    }
    step_help_refused(step);
    bool done = step->is_received;
    if (!done) {
        status = step_receive_all(step, &done);
        if (status != HAL_OK || !done) {
            return status;
        }
        step->is_received = true;
        step->deadline_ns = 0;
        if (step->is_large) {
            atomic_store_explicit(&hal_mailbox_rank_at(comm->mailbox, comm->rank)->read,
                                  step->number, memory_order_release);
        }
    }
    status = step_await_readers(step, &done);
    if (status != HAL_OK || !done) {
        return status;
    }
    step->is_open = *signaled = true;
    if (hal_hooks_on(HAL_HOOK_EVENTS)) {
        step_tell(step);
    }
    atomic_store_explicit(&hal_mailbox_rank_at(comm->mailbox, comm->rank)->consumed, step->number,
                          memory_order_release);
    return HAL_OK;
}

/* MPI may write and read memory of a step that failed at any time: it is never reused. */
static void step_keep_memory(const group_step *step, const hal_segments *segments)
{
    if (segments->count > 0) {
        hal_log(HAL_LOG_WARN,
                "communicator: rank %u of %u: MPI has not ended a message of the failed step %llu: "
                "%llu bytes of memory stay allocated",
                step->comm->rank, step->comm->count, (unsigned long long)step->number,
                (unsigned long long)segments->memory->bytes);
        hal_pool_keep(step->timeline->device->pool, segments->memory);
    }
}

/* Of a step that waits for rank q: a rank that is held back from this step on, or earlier, keeps it
 * waiting. 0: the step does not wait for q. */
static uint64_t step_missing_from(const group_step *step, uint32_t q)
{
    const hal_mailbox *mailbox = step->comm->mailbox;
    const hal_mailbox_rank *other = hal_mailbox_rank_at(mailbox, q);
    const uint64_t number = step->number;
    bool is_awaited = false;
    if (q == step->comm->rank) {
        return 0;
    }
    if (!step->is_published) {
        is_awaited = !hal_mailbox_has_published(mailbox, q, number - 1) &&
                     atomic_load(&other->consumed) + 2 < number;
        return is_awaited ? number - 1 : 0;
    }
    if (!step->is_received) {
        is_awaited =
            hal_step_has(step->is.sources, q) && !hal_mailbox_has_published(mailbox, q, number);
        return is_awaited ? number : 0;
    }
    is_awaited =
        step->is_offered && hal_step_has(step->is.targets, q) && atomic_load(&other->read) < number;
    return is_awaited ? number + 1 : 0; /* it may have published this one */
}

static void step_get_group(const hal_host_fence *fence, uint64_t group[4])
{
    const group_step *step = (const group_step *)fence;
    memcpy(group, step->comm->mailbox->id.bytes, sizeof step->comm->mailbox->id.bytes);
}

static bool step_read_held(const hal_host_fence *fence, uint32_t *rank, hal_wait_chain *chain)
{
    const group_step *step = (const group_step *)fence;
    const hal_mailbox *mailbox = step->comm->mailbox;
    for (; *rank < mailbox->count; ++*rank) {
        const uint64_t missing = step_missing_from(step, *rank);
        if (missing > 0) {
            hal_mailbox_read_held(hal_mailbox_rank_at(mailbox, *rank), missing, chain);
            return true;
        }
    }
    return false;
}

/* Steps are published in their order: the next one that is not is told of. */
static void step_write_held(const hal_host_fence *fence, const hal_wait_chain *chain)
{
    const group_step *step = (const group_step *)fence;
    hal_mailbox_rank *own = hal_mailbox_rank_at(step->comm->mailbox, step->comm->rank);
    if (step->number == atomic_load(&own->consumed) + 1) {
        hal_mailbox_write_held(own, step->number + step->is_published, chain);
    }
}

static const hal_fence_peers step_peers = {.get_group = step_get_group,
                                           .read = step_read_held,
                                           .write = step_write_held,
                                           .has_left = hal_comm_has_left,
                                           .write_left = hal_comm_write_left};

static void step_destroy(hal_host_fence *fence)
{
    group_step *step = (group_step *)fence;
    if (!step->is_open) {
        hal_mailbox_fail(step->comm->mailbox, step->comm->rank, HAL_ERROR_INVALID_STATE,
                         "its queue dropped a collective");
        if (step->has_transfers && hal_transport_drop(step->comm->mailbox->transport)) {
            step_keep_memory(step, &step->is.in);
            step_keep_memory(step, &step->is.out);
        }
    }
    hal_buffer_unref(step->is.in.buffer);
    hal_buffer_unref(step->is.out.buffer);
    hal_comm_unref(step->comm);
    free(step);
}

hal_status hal_step_record(hal_comm *comm, hal_queue *queue,
                           const hal_step_description *description)
{
    hal_point point = {0};
    group_step *step = calloc(1, sizeof *step);
    if (!step) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_collective: no host memory");
    }
    const hal_status status = hal_flush_waits(queue, &point);
    if (status != HAL_OK) {
        free(step);
        return status;
    }
    hal_comm_ref(comm);
    hal_comm_set_thread(comm);
    step->fence = (hal_host_fence){.advance = step_advance,
                                   .destroy = step_destroy,
                                   .policy = comm->policy,
                                   .group = comm->mailbox,
                                   .what = kind_names[description->call.kind],
                                   .step = comm->last_step + 1,
                                   .rank = comm->rank,
                                   .peers = comm->mailbox->file >= 0 ? &step_peers : NULL};
    step->comm = comm;
    step->timeline = &queue->timeline;
    step->value = point.value;
    step->number = ++comm->last_step;
    step->is = *description;
    /* Held until the step is destroyed: the pool joins released blocks, and reuses what described
     * them. */
    hal_buffer_ref(step->is.in.buffer);
    hal_buffer_ref(step->is.out.buffer);
    step->is_large = hal_direct_is_possible(comm->mailbox, &step->is.call);
    queue->recorder.recording->fence = &step->fence;
    /* The data is on its way while the commands that follow are recorded. */
    hal_saved_message before; /* the fence repeats an error */
    hal_message_save(&before);
    if (hal_mailbox_check(comm->mailbox, "hal_queue_collective") == HAL_OK) {
        step_publish(step);
    }
    hal_message_restore(&before);
    return HAL_OK;
}
