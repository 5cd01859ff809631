/* redzone.c: buffers with canaries. */
#include "case/redzone.h"

#include <inttypes.h>
#include <string.h>

/* The pattern's phase follows from the place in the buffer, which is even at its start. */
static void canaries_check(case_run *run, const red_zone *zone, const uint8_t *memory,
                           const char *what)
{
    const uint64_t before = canary_first_broken(memory, zone->offset);
    case_check(run, before == zone->offset,
               "%s: %" PRIu64 " bytes before the range were written to", what,
               zone->offset - before);
    const uint64_t end = zone->offset + zone->bytes;
    for (uint64_t i = end; i < zone->total; i++) {
        case_check(run, memory[i] == canary_at(i),
                   "%s: byte %" PRIu64 " after the range of %" PRIu64 " was written to", what,
                   i - end, zone->bytes);
    }
}

red_zone zone_create(case_run *run, uint64_t bytes, const void *data)
{
    return zone_create_at(run, 0, bytes, data);
}

red_zone zone_create_at(case_run *run, uint64_t lead, uint64_t bytes, const void *data)
{
    const uint64_t alignment =
        run->info->binding_alignment > REDZONE_BYTES ? run->info->binding_alignment : REDZONE_BYTES;
    red_zone made = {.offset = alignment + lead, .bytes = bytes};
    made.total = (made.offset + bytes + REDZONE_BYTES + 3) / 4 * 4;
    made.buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, made.total);
    const size_t objects = run->object_count;
    uint8_t *memory = case_allocate(run, made.total, 1);
    canary_fill(memory, made.total);
    if (data && bytes > 0) {
        memcpy(memory + made.offset, data, bytes);
    }
    case_ok(run, hal_queue_write(run->queue, made.buffer, 0, memory, made.total),
            "hal_queue_write");
    case_release(run, objects);
    return made;
}

hal_range zone_range(const red_zone *zone)
{
    return (hal_range){zone->buffer, zone->offset, zone->bytes};
}

void zone_read(case_run *run, const red_zone *zone, void *data, const char *what)
{
    const size_t objects = run->object_count;
    uint8_t *memory = case_allocate(run, zone->total, 1);
    case_ok(run, hal_queue_read(run->queue, zone->buffer, 0, zone->total, memory),
            "hal_queue_read");
    if (data && zone->bytes > 0) {
        memcpy(data, memory + zone->offset, zone->bytes);
    }
    canaries_check(run, zone, memory, what);
    case_release(run, objects);
}

void case_report(case_run *run, const comparison *found, const char *what)
{
    char text[512];
    comparison_text(found, text, sizeof text);
    case_fail(run, "%s: %s", what, text);
}
