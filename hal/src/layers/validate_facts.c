/* Sorted ranges of bytes, and the clocks of submitted batches, for the other files of the validate
 * layer. */
#include "validate_state.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends after `at`. */
static uint32_t range_after(const hal_ranges *ranges, uint64_t at)
{
    uint32_t low = 0, high = ranges->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (ranges->items[middle].end > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void hal_ranges_add(hal_ranges *ranges, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return;
    }
    /* The ranges from `first` up to `last` touch the new one and are merged into it. */
    uint32_t first = begin > 0 ? range_after(ranges, begin - 1) : 0, last = first;
    while (last < ranges->count && ranges->items[last].begin <= end) {
        begin = ranges->items[last].begin < begin ? ranges->items[last].begin : begin;
        end = ranges->items[last].end > end ? ranges->items[last].end : end;
        last++;
    }
    if (last == first) {
        if (!HAL_ARRAY_RESERVE(ranges->items, ranges->capacity, (uint64_t)ranges->count + 1)) {
            if (ranges->count > 0) { /* all counts as written: no false finding */
                ranges->items[0].begin = 0;
                ranges->items[0].end = UINT64_MAX;
                ranges->count = 1;
            }
            return;
        }
        memmove(&ranges->items[first + 1], &ranges->items[first],
                (ranges->count - first) * sizeof *ranges->items);
        ranges->count++;
    } else {
        memmove(&ranges->items[first + 1], &ranges->items[last],
                (ranges->count - last) * sizeof *ranges->items);
        ranges->count -= last - first - 1;
    }
    ranges->items[first].begin = begin;
    ranges->items[first].end = end;
}

bool hal_ranges_meet(const hal_ranges *ranges, uint64_t begin, uint64_t end)
{
    const uint32_t at = range_after(ranges, begin);
    return at < ranges->count && ranges->items[at].begin < end;
}

bool hal_ranges_have(const hal_ranges *ranges, uint64_t begin, uint64_t end, uint64_t *missing)
{
    const uint32_t at = range_after(ranges, begin);
    *missing = begin;
    if (at < ranges->count && ranges->items[at].begin <= begin) {
        *missing = ranges->items[at].end;
    }
    return *missing >= end;
}

void hal_ranges_free(hal_ranges *ranges)
{
    free(ranges->items);
    *ranges = (hal_ranges){0};
}

void hal_validate_drop_passed(hal_queue_facts *queue, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(queue->passed[i].clock.items);
    }
    if (count > 0) {
        memmove(queue->passed, queue->passed + count,
                (queue->passed_count - count) * sizeof *queue->passed);
        queue->passed_count -= count;
    }
}

void hal_validate_free_queue(hal_queue_facts *facts)
{
    hal_validate_drop_passed(facts, facts->passed_count);
    free(facts->passed);
    free(facts->clock.items);
}
