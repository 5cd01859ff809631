/* Cycles of waits, see wait_cycle.h. */
#include "wait_cycle.h"

#include "hooks.h"
#include "queue.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Waits that are younger are not examined. */
#define CYCLE_NS UINT64_C(100000000)
#define LOOK_NS UINT64_C(10000000) /* between two looks at other processes */

enum { TEXT_BYTES = 1800 };

/* Queues of which each waits for the next one. */
typedef struct wait_path {
    const hal_queue *queues[HAL_MAX_CYCLE];
    uint32_t count;
} wait_path;

/* What a thread is submitting is not known, unless it waits in a function of the program. */
static bool queue_is_known(const hal_queue *queue)
{
    return !queue->deferred.is_advancing || queue->deferred.call_wait.timeline;
}

static bool use_is_held_by(hal_last_use use, const hal_queue *queue)
{
    return use.timeline == &queue->timeline && !hal_timeline_has_submitted(use.timeline, use.value);
}

/* Whether the queue has a batch, after its first one, whose fence `fence` waits for. */
static bool queue_holds_back(const hal_queue *queue, const hal_host_fence *fence)
{
    for (const hal_recording *r = queue->deferred.first->next; r; r = r->next) {
        if (r->fence && r->fence->group == fence->group && r->fence->step <= fence->step &&
            !r->fence->has_published) {
            return true;
        }
    }
    return false;
}

/* Whether the first batch of a queue waits for deferred batches of another, or of its own. */
static bool queue_waits_for(const hal_queue *queue, const hal_queue *other)
{
    const hal_deferred_batches *held = &queue->deferred;
    if (!queue_is_known(queue) || !queue_is_known(other)) {
        return false;
    }
    if (held->call_wait.timeline) {
        return use_is_held_by(held->call_wait, other) &&
               hal_clock_ns() - held->call_wait_ns > CYCLE_NS;
    }
    for (uint32_t i = 0; i < held->first->wait_count; i++) {
        if (use_is_held_by(held->first->waits[i], other)) {
            return true;
        }
    }
    const hal_host_fence *fence = held->first->fence;
    return fence && (fence->is_raised_by ? fence->is_raised_by(fence, other)
                                         : fence->group && queue_holds_back(other, fence));
}

static bool path_has(const wait_path *path, const hal_queue *queue)
{
    bool has = false;
    for (uint32_t i = 0; i < path->count; i++) {
        has |= path->queues[i] == queue;
    }
    return has;
}

/* Extends the path by queues that are not in it, until its last one waits for `end`. */
static bool path_reach(wait_path *path, const hal_queue *queues, const hal_queue *end)
{
    const hal_queue *last = path->queues[path->count - 1];
    if (queue_waits_for(last, end)) {
        return true;
    }
    for (const hal_queue *next = queues; next; next = next->deferred.next) {
        if (path->count < HAL_MAX_CYCLE && !path_has(path, next) && queue_waits_for(last, next)) {
            path->queues[path->count++] = next;
            if (path_reach(path, queues, end)) {
                return true;
            }
            path->count--;
        }
    }
    return false;
}

/* Whether the first batch of `queue` is that of `end`, or waits for it. */
static bool queue_reaches(const hal_queue *queue, const hal_queue *queues, const hal_queue *end)
{
    wait_path path = {.queues = {queue}, .count = 1};
    return queue == end || path_reach(&path, queues, end);
}

static void text_add(char text[TEXT_BYTES], const char *words)
{
    const size_t length = strlen(text);
    snprintf(text + length, TEXT_BYTES - length, "%s%s", length ? " waits for " : "", words);
}

/* Begins with the same queue whichever thread finds the cycle. */
static void path_report(const wait_path *path)
{
    char text[TEXT_BYTES] = "", words[HAL_WAIT_WORDS];
    uint32_t first = 0;
    bool is_certain = true; /* others may raise a counter */
    for (uint32_t i = 0; i < path->count; i++) {
        const hal_deferred_batches *held = &path->queues[i]->deferred;
        is_certain &=
            held->call_wait.timeline || !held->first->fence || !held->first->fence->is_raised_by;
        first = path->queues[i] < path->queues[first] ? i : first;
    }
    for (uint32_t i = 0; i <= path->count; i++) {
        words[0] = 0;
        hal_hooks_table()->queue_describe(path->queues[(first + i) % path->count], words,
                                          sizeof words);
        text_add(text, words);
    }
    hal_hooks_table()->cycle_found(text, is_certain);
}

/* ---- Between processes ---- */

/* Too large for a stack; under the lock of deferred.c. */
static hal_wait_chain chain, told;

/* The fence of a step with other processes that keeps the queue's first batch, or null. */
static const hal_host_fence *queue_peer_fence(const hal_queue *queue)
{
    const hal_host_fence *fence =
        queue->deferred.is_advancing ? NULL : queue->deferred.first->fence;
    return fence && fence->peers ? fence : NULL;
}

/* Whether what a note of another process waits for is a step of this one that `end` holds back. */
static bool note_waits_for(const hal_wait_note *note, const hal_queue *queues, const hal_queue *end)
{
    uint64_t group[4];
    for (const hal_queue *queue = queues; queue; queue = queue->deferred.next) {
        for (const hal_recording *r = queue->deferred.first->next; r; r = r->next) {
            if (!r->fence || !r->fence->peers || r->fence->has_published ||
                r->fence->rank != note->missing || r->fence->step > note->step) {
                continue;
            }
            r->fence->peers->get_group(r->fence, group);
            if (memcmp(group, note->group, sizeof group) == 0 &&
                queue_reaches(queue, queues, end)) {
                return true;
            }
        }
    }
    return false;
}

/* Tells other processes of `told`, which begins with the wait of `end`. */
static void told_write(const hal_queue *queues, const hal_queue *end)
{
    for (const hal_queue *queue = queues; queue; queue = queue->deferred.next) {
        if (!queue_is_known(queue) || !queue_reaches(queue, queues, end)) {
            continue;
        }
        const hal_recording *first = queue->deferred.first;
        for (const hal_recording *r = queue == end ? first : first->next; r; r = r->next) {
            if (r->fence && r->fence->peers && (r != first || r->fence->has_published)) {
                r->fence->peers->write(r->fence, &told);
            }
        }
    }
}

static hal_wait_note note_make(const hal_queue *queue, const hal_host_fence *fence, uint64_t now)
{
    hal_wait_note note = {
        .process = (uint64_t)getpid(), .step = fence->step, .rank = fence->rank, .seen_ns = now};
    fence->peers->get_group(fence, note.group);
    const int length =
        snprintf(note.words, sizeof note.words, "process %llu: ", (unsigned long long)note.process);
    hal_hooks_table()->queue_describe(queue, note.words + length, sizeof note.words - length);
    return note;
}

static bool note_is_same(const hal_wait_note *one, const hal_wait_note *other)
{
    return one->process == other->process && one->step == other->step && one->rank == other->rank &&
           memcmp(one->group, other->group, sizeof one->group) == 0;
}

/* Puts a note before the chain that was read, which ends where it returns to that note. */
static void chain_begin_with(const hal_wait_note *note)
{
    uint32_t count = 0;
    while (count < chain.count && count < HAL_MAX_CYCLE - 1 &&
           !note_is_same(&chain.notes[count], note)) {
        count++;
    }
    memmove(chain.notes + 1, chain.notes, count * sizeof *note);
    chain.notes[0] = *note;
    chain.count = count + 1;
}

static uint64_t hash_add(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(1099511628211);
}

/* A cycle is reported when all of its waits were seen again after it was found: then all of them
 * were there at that moment, since a wait that ended does not begin again. */
static void chain_report(hal_wait_watch *watch, uint32_t count, uint64_t now, bool is_certain)
{
    char text[TEXT_BYTES] = "";
    uint64_t hash = 1;
    bool is_later = true;
    for (uint32_t i = 0; i < count; i++) {
        const hal_wait_note *note = &chain.notes[i];
        hash = hash_add(hash_add(hash, note->process), note->step);
        hash = hash_add(hash_add(hash, note->rank), note->missing);
        hash = hash_add(hash_add(hash, note->group[0]), note->group[1]);
        is_later &= note->seen_ns > watch->candidate_ns;
    }
    if (hash != watch->candidate) {
        watch->candidate = hash;
        watch->candidate_ns = now;
    } else if (is_later) {
        for (uint32_t i = 0; i <= count; i++) {
            text_add(text, chain.notes[i % count].words);
        }
        watch->has_reported = true;
        hal_hooks_table()->cycle_found(text, is_certain);
    }
}

/* Looks for a cycle in a chain, after its first wait, which is that of `queue`. `waits`: this
 * thread waits for the queue. */
static void chain_close(hal_wait_watch *watch, const hal_queue *queues, const hal_queue *queue,
                        bool waits, uint64_t now)
{
    const hal_fence_peers *peers = queue_peer_fence(queue)->peers;
    bool is_certain = true;
    for (uint32_t i = 1; i < chain.count && !watch->has_reported; i++) {
        const hal_wait_note *note = &chain.notes[i];
        is_certain &= !note->is_left;
        const bool is_held = note_waits_for(note, queues, queue);
        if (is_held || (waits && peers->has_left(note->group, note->missing, note->step))) {
            chain_report(watch, i + 1, now, is_certain && is_held);
            return;
        }
    }
}

/* Reads what the ranks wait for that a queue waits for. Others are told of the first one that
 * waits, else of the first one. */
static void queue_exchange(hal_wait_watch *watch, const hal_queue *queues, const hal_queue *queue,
                           bool waits, uint64_t now)
{
    const hal_host_fence *fence = queue_peer_fence(queue);
    hal_wait_note note = note_make(queue, fence, now);
    told.count = 0;
    for (uint32_t rank = 0; fence->peers->read(fence, &rank, &chain); rank++) {
        note.missing = rank;
        chain_begin_with(&note);
        chain_close(watch, queues, queue, waits, now);
        if (told.count < 2 && chain.count > told.count) {
            told = chain;
        }
    }
    if (told.count > 0) {
        told_write(queues, queue);
        if (waits) {
            told.notes[0].is_left = true;
            fence->peers->write_left(&told);
        }
    }
}

/* `waited`: the queue that this thread waits for. */
static void processes_exchange(hal_wait_watch *watch, const hal_queue *queues,
                               const hal_queue *waited, uint64_t now)
{
    for (const hal_queue *queue = queues; queue; queue = queue->deferred.next) {
        if (queue_peer_fence(queue)) {
            queue_exchange(watch, queues, queue, queue_reaches(waited, queues, queue), now);
        }
    }
}

void hal_wait_cycle_find(hal_wait_watch *watch, hal_queue *queues, const hal_queue *queue)
{
    const uint64_t now = hal_clock_ns();
    wait_path path = {.queues = {queue}, .count = 1};
    watch->begin_ns = watch->begin_ns ? watch->begin_ns : now;
    if (now - watch->begin_ns <= CYCLE_NS) {
        return;
    }
    if (!watch->has_reported && path_reach(&path, queues, queue)) {
        watch->has_reported = true;
        path_report(&path);
    }
    if (now >= watch->next_ns) {
        watch->next_ns = now + LOOK_NS;
        processes_exchange(watch, queues, queue, now);
    }
}
