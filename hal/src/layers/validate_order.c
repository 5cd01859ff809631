/* Who comes after whom in the validate layer, and what is read before it was written. Each queue
 * counts its batches; a clock says up to which batch of each other queue a queue has waited, and
 * one of them up to which the host has. Two uses of a buffer on different queues, one of them a
 * write, need the one to be in the other's clock. Called where commands are recorded, handed over
 * and waited for.
 *
 * The host's threads count as one: how they order themselves cannot be seen. */
#include "validate_state.h"

#include "base/array.h"
#include "core/queue.h"
#include "core/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCESSES = 64, PASSED = 1024 }; /* that are kept of a buffer, of a queue */

enum { PLACE_BYTES = 3 * HAL_OBJECT_TEXT };

/* What the host has waited for, and how many buffers it sees. Under the lock. */
static hal_vector_clock host;
static uint32_t mapped_count;

static void say_where(const hal_access *access, char *text, size_t bytes)
{
    char words[HAL_OBJECT_TEXT];
    hal_validate_words(access->queue, words);
    if (access->command == 0) {
        snprintf(text, bytes, "the host, behind batch %llu of %s,",
                 (unsigned long long)access->batch, words);
    } else {
        snprintf(text, bytes, "command %u (%s) of batch %llu of %s", access->command, access->what,
                 (unsigned long long)access->batch, words);
    }
}

/* A kernel may leave part of what is bound alone; a copy and the host do not. */
static void check_contents(hal_object *buffer, const hal_access *now, const char *place, int exact)
{
    hal_ranges *written = &buffer->known.buffer->written;
    uint64_t missing = now->begin;
    if (now->access != HAL_ACCESS_READ ||
        (exact ? hal_ranges_have(written, now->begin, now->end, &missing)
               : hal_ranges_meet(written, now->begin, now->end))) {
        return;
    }
    char where[PLACE_BYTES];
    say_where(now, where, sizeof where);
    const unsigned long long begin = now->begin, end = now->end;
    if (exact) {
        hal_validate_found(HAL_OK, place, "%s reads bytes %llu to %llu, and nobody wrote byte %llu",
                           where, begin, end, (unsigned long long)missing);
    } else {
        hal_validate_found(HAL_OK, place,
                           "%s reads bytes %llu to %llu, and nobody wrote any of them", where,
                           begin, end);
    }
    hal_ranges_add(written, now->begin, now->end);
}

static uint64_t epoch_in(const hal_vector_clock *clock, const hal_object *queue)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        if (clock->items[i].queue == queue) {
            return clock->items[i].epoch;
        }
    }
    return 0;
}

static int comes_after(const hal_object *queue, const hal_access *earlier)
{
    return earlier->queue == queue || epoch_in(&host, earlier->queue) >= earlier->epoch ||
           epoch_in(&queue->known.queue->clock, earlier->queue) >= earlier->epoch;
}

static void check_order(const hal_object *queue, const hal_object *buffer, const hal_access *now,
                        const char *place)
{
    const hal_buffer_facts *facts = buffer->known.buffer;
    for (uint32_t i = 0; i < facts->access_count; i++) {
        const hal_access *earlier = &facts->accesses[i];
        if (earlier->begin < now->end && now->begin < earlier->end &&
            ((earlier->access | now->access) & HAL_ACCESS_WRITE) && !comes_after(queue, earlier)) {
            char here[PLACE_BYTES], there[PLACE_BYTES];
            say_where(now, here, sizeof here);
            say_where(earlier, there, sizeof there);
            hal_validate_found(HAL_OK, place,
                               "%s %s bytes that %s %s, and nothing makes it come after; let the "
                               "queue wait for the other's point (hal_queue_wait_point)",
                               here, now->access & HAL_ACCESS_WRITE ? "writes" : "reads", there,
                               earlier->access & HAL_ACCESS_WRITE ? "writes" : "reads");
            return;
        }
    }
}

/* Uses that a later one of the same queue covers are dropped, and those that are over. */
static void note_access(hal_object *buffer, const hal_access *now)
{
    hal_buffer_facts *facts = buffer->known.buffer;
    uint32_t left = 0;
    for (uint32_t i = 0; i < facts->access_count; i++) {
        const hal_access *earlier = &facts->accesses[i];
        const int covered = earlier->queue == now->queue && earlier->begin >= now->begin &&
                            earlier->end <= now->end && earlier->epoch <= now->epoch &&
                            (earlier->access & ~now->access) == 0;
        if (!covered && epoch_in(&host, earlier->queue) < earlier->epoch) {
            facts->accesses[left++] = *earlier;
        }
    }
    facts->access_count = left;
    if (epoch_in(&host, now->queue) >= now->epoch) {
        return;
    }
    if (left == ACCESSES) { /* the oldest one goes */
        memmove(facts->accesses, facts->accesses + 1, (left - 1) * sizeof *facts->accesses);
        left--;
    }
    if (HAL_ARRAY_RESERVE(facts->accesses, facts->access_capacity, (uint64_t)left + 1)) {
        facts->accesses[left++] = *now;
    }
    facts->access_count = left;
}

/* Checks a use of a range that is about to become one, and notes it. */
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
    check_contents(buffer, &use, place, strncmp(use.what, "kernel ", 7) != 0);
    check_order(queue, buffer, &use, place);
    if (use.access & HAL_ACCESS_WRITE) {
        hal_ranges_add(&buffer->known.buffer->written, use.begin, use.end);
    }
    note_access(buffer, &use);
}

/* Where memory is out everything counts as waited for, as far as can be. */
static void raise_to(hal_vector_clock *clock, const hal_object *queue, uint64_t epoch)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        if (clock->items[i].queue == queue) {
            clock->items[i].epoch =
                clock->items[i].epoch < epoch ? epoch : clock->items[i].epoch;
            return;
        }
    }
    if (HAL_ARRAY_RESERVE(clock->items, clock->capacity, (uint64_t)clock->count + 1)) {
        clock->items[clock->count].queue = queue;
        clock->items[clock->count++].epoch = epoch;
    }
}

static void join(hal_vector_clock *clock, const hal_vector_clock *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        raise_to(clock, other->items[i].queue, other->items[i].epoch);
    }
}

static void note_passed(hal_queue_facts *queue, uint64_t value, uint64_t epoch)
{
    if (queue->passed_count == PASSED) {
        queue->forgotten = queue->passed[PASSED / 2 - 1].value;
        hal_validate_drop_passed(queue, PASSED / 2);
    }
    if (!queue->passed) {
        queue->passed = malloc(PASSED * sizeof *queue->passed);
    }
    if (queue->passed) {
        hal_passed *now = &queue->passed[queue->passed_count++];
        *now = (hal_passed){.value = value, .epoch = epoch};
        join(&now->clock, &queue->clock);
    }
}

/* The host has acted in the queue's order, and what the queue waited for since its last batch was
 * reached before. To read it has waited for the queue; what it wrote is told by the queue's last
 * point, which then stands for those waits too. */
static void settle_waits(const hal_queue *queue, hal_queue_facts *facts, uint32_t access)
{
    if (access == HAL_ACCESS_READ) {
        join(&host, &facts->clock);
        return;
    }
    if (queue->recorder.recording->wait_count > 0) {
        return; /* the host wrote what a command of the next batch copies */
    }
    if (facts->passed_count == 0) {
        note_passed(facts, hal_timeline_next_value(&queue->timeline) - 1, facts->epoch - 1);
    } else {
        join(&facts->passed[facts->passed_count - 1].clock, &facts->clock);
    }
}

/* A batch is handed over: no buffer that it uses may be mapped. */
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
                say_where(use, where, sizeof where);
                snprintf(place, sizeof place, "%s: %s", queue->call ? queue->call : "hal",
                         hal_validate_words(object, words));
                hal_validate_found(HAL_OK, place,
                                   "%s uses it and is handed over while it is mapped; call "
                                   "hal_buffer_map_end first",
                                   where);
                break;
            }
        }
    }
}

/* Null when nothing was handed over up to there that the host has not waited for. */
static const hal_passed *find_passed(const hal_queue_facts *queue, uint64_t value)
{
    const uint64_t first = queue->passed_count ? queue->passed[0].value : UINT64_MAX;
    if (value < first) {
        return queue->passed_count && value <= queue->forgotten ? queue->passed : NULL;
    }
    const uint64_t at = value - first;
    return &queue->passed[at < queue->passed_count ? at : queue->passed_count - 1];
}

static void forget(hal_vector_clock *clock, const hal_object *queue)
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
                     action->kind == HAL_COMMAND_COPY ? "copy" : "fill");
        }
        /* What is read was there before the command, also where it writes the same buffer. */
        for (uint32_t pass = 0; pass < 2; pass++) {
            for (uint32_t i = 0; i < action->range_count; i++) {
                char binding[96] = ", target, ";
                const int writes = (action->access[i] & HAL_ACCESS_WRITE) != 0;
                if (writes != (int)pass || !action->ranges[i].buffer) {
                    continue;
                }
                if (action->kind == HAL_COMMAND_DISPATCH) {
                    snprintf(binding, sizeof binding, ", binding %u (\"%.40s\"), ", i,
                             hal_kernel_binding_name(action->kernel, i));
                } else if (action->kind == HAL_COMMAND_COPY) {
                    snprintf(binding, sizeof binding, ", %s, ", copy_names[i]);
                }
                now.access = action->access[i];
                use_range(object, &action->ranges[i], &now, binding);
            }
        }
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

/* Done at once: it counts as the end of the last batch. */
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
        settle_waits(queue, object->known.queue, access);
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
        } else { /* what was dropped needs no waiting for */
            raise_to(&host, object, facts->epoch);
        }
        if (status == HAL_OK || hal_timeline_has_submitted(&queue->timeline, value)) {
            note_passed(facts, value, facts->epoch);
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
        const hal_passed *passed = find_passed(facts, point.value);
        if (passed && queue && target && target->known.queue) {
            raise_to(&target->known.queue->clock, source, passed->epoch);
            join(&target->known.queue->clock, &passed->clock);
        } else if (passed && !queue) {
            raise_to(&host, source, passed->epoch);
            join(&host, &passed->clock);
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
        if (epoch_in(&host, use->queue) < use->epoch) {
            char words[HAL_OBJECT_TEXT], where[PLACE_BYTES], place[PLACE_BYTES];
            say_where(use, where, sizeof where);
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
        facts->mapped = 1;
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
        object->known.buffer->mapped = 0;
        hal_ranges_add(&object->known.buffer->written, 0, object->bytes);
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

void hal_validate_forget_queue(hal_object *queue)
{
    for (hal_object *object = hal_validate_first(); object; object = object->next) {
        if (object->kind == HAL_OBJECT_QUEUE && object->known.queue) {
            forget(&object->known.queue->clock, queue);
            for (uint32_t i = 0; i < object->known.queue->passed_count; i++) {
                forget(&object->known.queue->passed[i].clock, queue);
            }
        }
        hal_buffer_facts *facts =
            object->kind == HAL_OBJECT_BUFFER ? object->known.buffer : NULL;
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
    forget(&host, queue);
    if (queue->known.queue) {
        hal_validate_free_queue(queue->known.queue);
        *queue->known.queue = (hal_queue_facts){0};
    }
}
