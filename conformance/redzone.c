/* redzone.c: buffers with canaries; redzone.h says who calls it. */
#include "redzone.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Little-endian halfword 0xfff5. */
static const uint8_t canary[2] = {0xf5, 0xff};

/* The pattern's phase follows from the place in the buffer, which is even at its start. */
static bool check_canaries(case_run *run, const red_zone *zone, const uint8_t *memory,
                           const char *what)
{
    const uint64_t before = canary_first_broken(memory, zone->offset);
    if (before < zone->offset) {
        return case_fail(run, "%s: %" PRIu64 " bytes before the range were written to", what,
                         zone->offset - before);
    }
    const uint64_t end = zone->offset + zone->bytes;
    for (uint64_t i = end; i < zone->total; i++) {
        if (memory[i] != canary[i % 2]) {
            return case_fail(run,
                             "%s: byte %" PRIu64 " behind the range of %" PRIu64 " was written to",
                             what, i - end, zone->bytes);
        }
    }
    return true;
}

bool zone_create(case_run *run, red_zone *made, uint64_t bytes, const void *data)
{
    return zone_create_at(run, made, 0, bytes, data);
}

bool zone_create_at(case_run *run, red_zone *made, uint64_t lead, uint64_t bytes, const void *data)
{
    const uint64_t alignment =
        run->info->binding_alignment > REDZONE_BYTES ? run->info->binding_alignment : REDZONE_BYTES;
    *made = (red_zone){.offset = alignment + lead, .bytes = bytes};
    made->total = (made->offset + bytes + REDZONE_BYTES + 3) / 4 * 4;
    uint8_t *memory = malloc(made->total);
    if (memory == NULL) {
        return case_fail(run, "the host has no %" PRIu64 " bytes", made->total);
    }
    canary_fill(memory, made->total);
    if (data != NULL && bytes > 0) {
        memcpy(memory + made->offset, data, bytes);
    }
    bool well =
        case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, made->total, &made->buffer),
                "hal_buffer_create") &&
        case_ok(run, hal_queue_write(run->queue, made->buffer, 0, memory, made->total),
                "hal_queue_write");
    free(memory);
    return well;
}

hal_range zone_range(const red_zone *zone)
{
    return (hal_range){zone->buffer, zone->offset, zone->bytes};
}

ops_tensor zone_tensor(const red_zone *zone, hal_type type, uint32_t rank, const int64_t *shape)
{
    ops_tensor tensor = {.buffer = zone->buffer, .type = type, .rank = rank};
    tensor.offset = (int64_t)(zone->offset / hal_type_size(type));
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        tensor.shape[i] = shape[i];
        tensor.stride[i] = stride;
        stride *= shape[i];
    }
    return tensor;
}

bool zone_read(case_run *run, const red_zone *zone, void *data, const char *what)
{
    uint8_t *memory = malloc(zone->total);
    if (memory == NULL) {
        return case_fail(run, "the host has no %" PRIu64 " bytes", zone->total);
    }
    bool well = case_ok(run, hal_queue_read(run->queue, zone->buffer, 0, zone->total, memory),
                        "hal_queue_read");
    if (well) {
        if (data != NULL && zone->bytes > 0) {
            memcpy(data, memory + zone->offset, zone->bytes);
        }
        well = check_canaries(run, zone, memory, what);
    }
    free(memory);
    return well;
}

void zone_release(red_zone *zone)
{
    hal_buffer_release(zone->buffer);
    zone->buffer = NULL;
}

void canary_fill(void *memory, uint64_t bytes)
{
    uint8_t *byte = memory;
    for (uint64_t i = 0; i < bytes; i++) {
        byte[i] = canary[i % 2];
    }
}

uint64_t canary_first_broken(const void *memory, uint64_t bytes)
{
    const uint8_t *byte = memory;
    uint64_t i = 0;
    while (i < bytes && byte[i] == canary[i % 2]) {
        i++;
    }
    return i;
}
