/* Data races between queues, and reads of uninitialised memory, in the validate layer. Each queue
 * counts its batches. The vector clock of a queue has, for each other queue, the batch up to which
 * it has waited; the host has one, too. Of two uses of a buffer on different queues, one a write,
 * the later one's clock has to contain the earlier one. Called when commands are recorded,
 * submitted and waited for.
 *
 * The host's threads count as one: their order is unknown. */
#include "validate_state.h"

#include "base/log.h"
#include "base/array.h"
#include "core/queue.h"
#include "core/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ACCESSES = 64 };    /* kept of a buffer */
enum { MAX_SUBMITTED = 1024 }; /* batches kept of a queue */
enum { PLACE_BYTES = 3 * HAL_OBJECT_TEXT };

static hal_vector_clock host; /* of the host. Under the lock, as the count of mapped buffers */
static uint32_t mapped_count;

static void access_text(const hal_access *access, char *text, size_t bytes)
{
    char words[HAL_OBJECT_TEXT];
    hal_validate_words(access->queue, words);
    if (access->command == 0) {
        snprintf(text, bytes, "the host, after batch %llu of %s,",
                 (unsigned long long)access->batch, words);
    } else {
        snprintf(text, bytes, "command %u (%s) of batch %llu of %s", access->command, access->what,
                 (unsigned long long)access->batch, words);
    }
}

/* Of an access whose range has gaps between the rows. */
#define ROWS "copy of rows"

/* `exact`: the whole range is read, by a copy or the host. Kernels may read parts of it. */
static void check_contents(hal_object *buffer, const hal_access *now, const char *place, bool exact)
{
    hal_ranges *written = &buffer->known.buffer->written;
    uint64_t missing = now->begin;
    if (now->access != HAL_ACCESS_READ ||
        (exact ? hal_ranges_have(written, now->begin, now->end, &missing)
               : hal_ranges_meet(written, now->begin, now->end))) {
        return;
    }
    char where[PLACE_BYTES];
    access_text(now, where, sizeof where);
    const unsigned long long begin = now->begin, end = now->end;
    if (exact) {
        hal_validate_found(HAL_OK, place,
                           "%s reads bytes %llu to %llu, and byte %llu was never written", where,
                           begin, end, (unsigned long long)missing);
    } else {
        hal_validate_found(HAL_OK, place, "%s reads bytes %llu to %llu, and none was ever written",
                           where, begin, end);
    }
    hal_ranges_add(written, now->begin, now->end);
}

static uint64_t clock_epoch(const hal_vector_clock *clock, const hal_object *queue)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        if (clock->items[i].queue == queue) {
            return clock->items[i].epoch;
        }
    }
    return 0;
}

static bool is_ordered(const hal_object *queue, const hal_access *earlier)
{
    return earlier->queue == queue || clock_epoch(&host, earlier->queue) >= earlier->epoch ||
           clock_epoch(&queue->known.queue->clock, earlier->queue) >= earlier->epoch;
}

static void check_order(const hal_object *queue, const hal_object *buffer, const hal_access *now,
                        const char *place)
{
    const hal_buffer_facts *facts = buffer->known.buffer;
    for (uint32_t i = 0; i < facts->access_count; i++) {
        const hal_access *earlier = &facts->accesses[i];
        if (earlier->begin < now->end && now->begin < earlier->end &&
            ((earlier->access | now->access) & HAL_ACCESS_WRITE) && !is_ordered(queue, earlier)) {
            char here[PLACE_BYTES], there[PLACE_BYTES];
            access_text(now, here, sizeof here);
            access_text(earlier, there, sizeof there);
            hal_validate_found(HAL_OK, place,
                               "%s %s bytes that %s %s, without order between them; let the queue "
                               "wait for the other's point (hal_queue_wait_point)",
                               here, now->access & HAL_ACCESS_WRITE ? "writes" : "reads", there,
                               earlier->access & HAL_ACCESS_WRITE ? "writes" : "reads");
            return;
        }
    }
}

/* Drops uses that the new one of the same queue covers, and those that the host waited for. */
static void access_add(hal_object *buffer, const hal_access *now)
{
    hal_buffer_facts *facts = buffer->known.buffer;
    uint32_t left = 0;
    for (uint32_t i = 0; i < facts->access_count; i++) {
        const hal_access *earlier = &facts->accesses[i];
        const bool covered = earlier->queue == now->queue && earlier->begin >= now->begin &&
                             earlier->end <= now->end && earlier->epoch <= now->epoch &&
                             (earlier->access & ~now->access) == 0;
        if (!covered && clock_epoch(&host, earlier->queue) < earlier->epoch) {
            facts->accesses[left++] = *earlier;
        }
    }
    facts->access_count = left;
    if (clock_epoch(&host, now->queue) >= now->epoch) {
        return;
    }
    if (left == MAX_ACCESSES) { /* the oldest one is dropped */
        memmove(facts->accesses, facts->accesses + 1, (left - 1) * sizeof *facts->accesses);
        left--;
    }
    if (HAL_ARRAY_RESERVE(facts->accesses, facts->access_capacity, (uint64_t)left + 1)) {
        facts->accesses[left++] = *now;
    }
    facts->access_count = left;
}

/* Checks and adds a use of a range. */
static void use_range(hal_object *queue, const hal_range *range, const hal_access *now,
                      const char *binding)
{
    hal_object *buffer = hal_validate_find(HAL_OBJECT_BUFFER, range->buffer);
    if (!buffer || !buffer->known.buffer || range->length == 0) {
        return;
    }
    hal_access use = *now;
    use.begin = range->offset;
    use.end = range->offset + range->length;
    char words[HAL_OBJECT_TEXT], place[PLACE_BYTES];
    snprintf(place, sizeof place, "%s: %s%s%s", queue->call ? queue->call : "hal", use.what,
             binding, hal_validate_words(buffer, words));
    const bool has_gaps = strncmp(use.what, "kernel ", 7) == 0 || strcmp(use.what, ROWS) == 0;
    check_contents(buffer, &use, place, !has_gaps);
    check_order(queue, buffer, &use, place);
    if (use.access & HAL_ACCESS_WRITE) {
        hal_ranges_add(&buffer->known.buffer->written, use.begin, use.end);
    }
    access_add(buffer, &use);
}

/* If memory is out, the entry is missing: fewer uses are ordered. */
static void clock_raise(hal_vector_clock *clock, const hal_object *queue, uint64_t epoch)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        if (clock->items[i].queue == queue) {
            clock->items[i].epoch = clock->items[i].epoch < epoch ? epoch : clock->items[i].epoch;
            return;
        }
    }
    if (HAL_ARRAY_RESERVE(clock->items, clock->capacity, (uint64_t)clock->count + 1)) {
        clock->items[clock->count].queue = queue;
        clock->items[clock->count++].epoch = epoch;
    }
}

static void clock_join(hal_vector_clock *clock, const hal_vector_clock *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        clock_raise(clock, other->items[i].queue, other->items[i].epoch);
    }
}

static void submitted_add(hal_queue_facts *queue, uint64_t value, uint64_t epoch)
{
    if (queue->passed_count == MAX_SUBMITTED) {
        queue->forgotten = queue->passed[MAX_SUBMITTED / 2 - 1].value;
        hal_validate_drop_passed(queue, MAX_SUBMITTED / 2);
    }
    if (!queue->passed) {
        queue->passed = malloc(MAX_SUBMITTED * sizeof *queue->passed);
    }
    if (queue->passed) {
        hal_passed *now = &queue->passed[queue->passed_count++];
        *now = (hal_passed){.value = value, .epoch = epoch};
        clock_join(&now->clock, &queue->clock);
    }
}

/* The host has accessed memory in the queue's order: the queue's waits since its last batch were
 * reached before. A read also waited for the queue; a write belongs to the queue's last point,
 * which then includes those waits. */
static void host_access_join(const hal_queue *queue, hal_queue_facts *facts, uint32_t access)
{
    if (access == HAL_ACCESS_READ) {
        clock_join(&host, &facts->clock);
        return;
    }
    if (queue->recorder.recording->wait_count > 0) {
        return; /* the host wrote what a command of the next batch copies */
    }
    if (facts->passed_count == 0) {
        submitted_add(facts, hal_timeline_next_value(&queue->timeline) - 1, facts->epoch - 1);
    } else {
        clock_join(&facts->passed[facts->passed_count - 1].clock, &facts->clock);
    }
}

/* At submission: no buffer of the batch may be mapped. */
static void check_mapped(const hal_object *queue)
{
    for (hal_object *object = mapped_count ? hal_validate_first() : NULL; object;
         object = object->next) {
        const hal_buffer_facts *facts =
            object->kind == HAL_OBJECT_BUFFER ? object->known.buffer : NULL;
        for (uint32_t i = 0; facts && facts->mapped && i < facts->access_count; i++) {
            const hal_access *use = &facts->accesses[i];
            if (use->queue == queue && use->epoch == queue->known.queue->epoch) {
                char words[HAL_OBJECT_TEXT], where[PLACE_BYTES], place[PLACE_BYTES];
                access_text(use, where, sizeof where);
                snprintf(place, sizeof place, "%s: %s", queue->call ? queue->call : "hal",
                         hal_validate_words(object, words));
                hal_validate_found(HAL_OK, place,
                                   "%s uses it and is submitted while it is mapped; call "
                                   "hal_buffer_map_end first",
                                   where);
                break;
            }
        }
    }
}

/* The batch of a value; null if the host has waited for it. */
static const hal_passed *submitted_find(const hal_queue_facts *queue, uint64_t value)
{
    const uint64_t first = queue->passed_count ? queue->passed[0].value : UINT64_MAX;
    if (value < first) {
        return queue->passed_count && value <= queue->forgotten ? queue->passed : NULL;
    }
    const uint64_t at = value - first;
    return &queue->passed[at < queue->passed_count ? at : queue->passed_count - 1];
}

static void clock_forget(hal_vector_clock *clock, const hal_object *queue)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < clock->count; i++) {
        if (clock->items[i].queue != queue) {
            clock->items[left++] = clock->items[i];
        }
    }
    clock->count = left;
}

void hal_validate_command_recorded(const hal_queue *queue, const hal_action *action)
{
    static const char *const copy_names[] = {"source", "target"};
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(HAL_OBJECT_QUEUE, queue);
    if (object && object->known.queue && !object->retired) {
        hal_access now = {.queue = object,
                          .epoch = object->known.queue->epoch,
                          .batch = hal_timeline_next_value(&queue->timeline),
                          .command = queue->recorder.recording->command_count};
        if (action->kind == HAL_COMMAND_DISPATCH) {
            snprintf(now.what, sizeof now.what, "kernel %s", action->kernel->names);
        } else {
            snprintf(now.what, sizeof now.what, "%s",
                     action->kind == HAL_COMMAND_COPY        ? "copy"
                     : action->kind == HAL_COMMAND_COPY_ROWS ? ROWS
                     : action->kind == HAL_COMMAND_FILL      ? "fill"
                                                             : "collective");
        }
        /* Reads first: they precede writes of the same command. */
        for (uint32_t pass = 0; pass < 2; pass++) {
            for (uint32_t i = 0; i < action->range_count; i++) {
                char binding[96] = ", target, ";
                const bool writes = (action->access[i] & HAL_ACCESS_WRITE) != 0;
                if (writes != (int)pass || !action->ranges[i].buffer) {
                    continue;
                }
                if (action->kind == HAL_COMMAND_DISPATCH && i == action->kernel->binding_count) {
                    snprintf(binding, sizeof binding, ", the grid, ");
                } else if (action->kind == HAL_COMMAND_DISPATCH) {
                    snprintf(binding, sizeof binding, ", binding %u (\"%.40s\"), ", i,
                             hal_kernel_binding_name(action->kernel, i));
                } else if (action->kind == HAL_COMMAND_COPY ||
                           action->kind == HAL_COMMAND_COPY_ROWS) {
                    snprintf(binding, sizeof binding, ", %s, ", copy_names[i]);
                }
                now.access = action->access[i];
                use_range(object, &action->ranges[i], &now, binding);
            }
        }
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

/* Host accesses happen at once: they belong to the last batch. */
void hal_validate_host_access(const hal_queue *queue, const hal_range *range, uint32_t access)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(HAL_OBJECT_QUEUE, queue);
    if (object && object->known.queue && !object->retired) {
        hal_access now = {.queue = object,
                          .epoch = object->known.queue->epoch - 1,
                          .batch = hal_timeline_next_value(&queue->timeline) - 1,
                          .access = access,
                          .what = ""};
        use_range(object, range, &now, "");
        host_access_join(queue, object->known.queue, access);
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

void hal_validate_batch_flushed(const hal_queue *queue, uint64_t value, hal_status status)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(HAL_OBJECT_QUEUE, queue);
    if (object && object->known.queue && !object->retired) {
        hal_queue_facts *facts = object->known.queue;
        if (status == HAL_OK) {
            check_mapped(object);
        } else { /* a dropped batch never runs */
            clock_raise(&host, object, facts->epoch);
        }
        if (status == HAL_OK || hal_timeline_has_submitted(&queue->timeline, value)) {
            submitted_add(facts, value, facts->epoch);
        }
        facts->epoch++;
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

void hal_validate_point_waited(const hal_queue *queue, hal_point point)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *target = hal_validate_find(HAL_OBJECT_QUEUE, queue);
    const hal_object *source = hal_validate_find(HAL_OBJECT_QUEUE, point.queue);
    if (source && source->known.queue && source != target && !source->retired) {
        hal_queue_facts *facts = source->known.queue;
        const hal_passed *passed = submitted_find(facts, point.value);
        if (passed && queue && target && target->known.queue) {
            clock_raise(&target->known.queue->clock, source, passed->epoch);
            clock_join(&target->known.queue->clock, &passed->clock);
        } else if (passed && !queue) {
            clock_raise(&host, source, passed->epoch);
            clock_join(&host, &passed->clock);
            hal_validate_drop_passed(facts, (uint32_t)(passed - facts->passed) + 1);
            facts->forgotten = 0;
        }
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

void hal_validate_buffer_mapped(const hal_buffer *buffer)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(HAL_OBJECT_BUFFER, buffer);
    hal_buffer_facts *facts = object ? object->known.buffer : NULL;
    for (uint32_t i = 0; facts && i < facts->access_count; i++) {
        const hal_access *use = &facts->accesses[i];
        if (clock_epoch(&host, use->queue) < use->epoch) {
            char words[HAL_OBJECT_TEXT], where[PLACE_BYTES], place[PLACE_BYTES];
            access_text(use, where, sizeof where);
            snprintf(place, sizeof place, "hal_buffer_map_begin: %s",
                     hal_validate_words(object, words));
            hal_validate_found(HAL_OK, place,
                               "is mapped while %s, which uses it, may not have run; wait for its "
                               "queue or its point first",
                               where);
            break;
        }
    }
    if (facts && !facts->mapped) {
        facts->mapped = true;
        mapped_count++;
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

/* The host may have written anything. */
void hal_validate_buffer_unmapped(const hal_buffer *buffer)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(HAL_OBJECT_BUFFER, buffer);
    if (object && object->known.buffer) {
        mapped_count -= object->known.buffer->mapped && mapped_count > 0;
        object->known.buffer->mapped = false;
        hal_ranges_add(&object->known.buffer->written, 0, object->bytes);
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

void hal_validate_forget_queue(hal_object *queue)
{
    for (hal_object *object = hal_validate_first(); object; object = object->next) {
        if (object->kind == HAL_OBJECT_QUEUE && object->known.queue) {
            clock_forget(&object->known.queue->clock, queue);
            for (uint32_t i = 0; i < object->known.queue->passed_count; i++) {
                clock_forget(&object->known.queue->passed[i].clock, queue);
            }
        }
        hal_buffer_facts *facts = object->kind == HAL_OBJECT_BUFFER ? object->known.buffer : NULL;
        uint32_t left = 0;
        for (uint32_t i = 0; facts && i < facts->access_count; i++) {
            if (facts->accesses[i].queue != queue) {
                facts->accesses[left++] = facts->accesses[i];
            }
        }
        if (facts) {
            facts->access_count = left;
        }
    }
    clock_forget(&host, queue);
    if (queue->known.queue) {
        hal_validate_free_queue(queue->known.queue);
        *queue->known.queue = (hal_queue_facts){0};
    }
}

void hal_validate_queue_describe(const hal_queue *queue, char *text, size_t bytes)
{
    char words[HAL_OBJECT_TEXT] = "a queue";
    const hal_recording *first = queue->deferred.first;
    const hal_timeline *waited = queue->deferred.call_wait.timeline;
    const unsigned long long batch = first->value - queue->timeline.base;
    pthread_mutex_lock(&hal_validate_lock);
    const hal_object *object = hal_validate_find(HAL_OBJECT_QUEUE, queue);
    if (object) {
        hal_validate_words(object, words);
    }
    pthread_mutex_unlock(&hal_validate_lock);
    if (waited) {
        snprintf(text, bytes, "%s (batch %llu, in a host call, which waits for batch %llu of %s)",
                 words, batch, (unsigned long long)(queue->deferred.call_wait.value - waited->base),
                 waited == &queue->timeline ? "the same queue" : "the next queue");
    } else if (first->fence && first->fence->group) {
        snprintf(text, bytes, "%s (batch %llu, in %s, step %llu of rank %u)", words, batch,
                 first->fence->what, (unsigned long long)first->fence->step, first->fence->rank);
    } else if (first->fence && first->fence->is_raised_by) {
        snprintf(text, bytes, "%s (batch %llu, at a fence)", words, batch);
    } else {
        snprintf(text, bytes, "%s (batch %llu, at a point)", words, batch);
    }
}

/* What is not certain is told, and is no finding. */
void hal_validate_cycle_found(const char *text, bool is_certain)
{
    if (!is_certain) {
        hal_log(
            HAL_LOG_ERROR,
            "validate: %s: a cycle of waits, unless another thread takes the step that a thread "
            "of these has not recorded because it waits, or raises the fence; let all ranks take "
            "the steps of their groups in one order, and signal fences before others are waited "
            "for",
            text);
        return;
    }
    pthread_mutex_lock(&hal_validate_lock);
    hal_validate_found(HAL_OK, text,
                       "a cycle of waits, which only a time limit ends; let all ranks take the "
                       "steps of their groups in one order, and functions of host calls wait for "
                       "nothing");
    pthread_mutex_unlock(&hal_validate_lock);
}
