/* Memories of a replay, see replay_memory.h. */
#include "replay_memory.h"

#include "../src/base/array.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static hal_status fail_memory(void)
{
    return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                          "no host memory for a copy of the file's memory");
}

static void memory_release(replay_memory *memory)
{
    hal_buffer_release(memory->buffer);
    free(memory->recorded);
    free(memory->types);
}

/* The first index whose id is not smaller. */
static uint32_t memory_index(const replay_memories *memories, uint64_t id)
{
    uint32_t first = 0, end = memories->count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (memories->items[middle].id < id) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

/* Replaces the types of the range. Keeps the parts on both sides. */
static hal_status types_put(replay_memory *memory, replay_typed added)
{
    if (!HAL_ARRAY_RESERVE(memory->types, memory->type_capacity,
                           (uint64_t)memory->type_count + 2)) {
        return fail_memory();
    }
    replay_typed *types = memory->types;
    uint32_t first = 0; /* first one that ends after the begin */
    while (first < memory->type_count && types[first].end <= added.begin) {
        first++;
    }
    uint32_t last = first; /* first one that begins at the end or later */
    while (last < memory->type_count && types[last].begin < added.end) {
        last++;
    }
    replay_typed parts[3];
    uint32_t count = 0;
    if (first < last && types[first].begin < added.begin) {
        parts[count++] = (replay_typed){types[first].begin, added.begin, types[first].type};
    }
    parts[count++] = added;
    if (first < last && types[last - 1].end > added.end) {
        parts[count++] = (replay_typed){added.end, types[last - 1].end, types[last - 1].type};
    }
    memmove(types + first + count, types + last, (memory->type_count - last) * sizeof *types);
    memcpy(types + first, parts, count * sizeof *parts);
    memory->type_count = memory->type_count - (last - first) + count;
    return HAL_OK;
}

hal_status replay_memory_add(replay_memories *memories, hal_device *device, uint64_t id,
                             uint64_t bytes, replay_memory **added)
{
    if (replay_memory_find(memories, id)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "memory %llu: expected one description, got two",
                              (unsigned long long)id);
    }
    if (!HAL_ARRAY_RESERVE(memories->items, memories->capacity, (uint64_t)memories->count + 1)) {
        return fail_memory();
    }
    replay_memory made = {.id = id, .bytes = bytes};
    hal_status status =
        device ? hal_buffer_create(device, HAL_MEMORY_DEVICE, bytes, &made.buffer) : HAL_OK;
    if (status == HAL_OK && (bytes > SIZE_MAX || !(made.recorded = calloc(1, bytes)))) {
        status = fail_memory();
    }
    if (status != HAL_OK) {
        memory_release(&made);
        return status;
    }
    const uint32_t place = memory_index(memories, id);
    replay_memory *at = memories->items + place;
    memmove(at + 1, at, (memories->count - place) * sizeof *at);
    memories->count++;
    *at = made;
    *added = at;
    return HAL_OK;
}

replay_memory *replay_memory_find(const replay_memories *memories, uint64_t id)
{
    const uint32_t place = memory_index(memories, id);
    return place < memories->count && memories->items[place].id == id ? &memories->items[place]
                                                                      : NULL;
}

uint8_t *replay_memory_range(const replay_memory *memory, uint64_t offset, uint64_t bytes)
{
    return memory && offset <= memory->bytes && bytes <= memory->bytes - offset
               ? memory->recorded + offset
               : NULL;
}

void replay_memory_remove(replay_memories *memories, uint64_t id)
{
    replay_memory *memory = replay_memory_find(memories, id);
    if (memory) {
        memory_release(memory);
        const uint32_t after = memories->count - 1 - memory_index(memories, id);
        memmove(memory, memory + 1, after * sizeof *memory);
        memories->count--;
    }
}

void replay_memories_free(replay_memories *memories)
{
    for (uint32_t i = 0; i < memories->count; i++) {
        memory_release(&memories->items[i]);
    }
    free(memories->items);
    *memories = (replay_memories){0};
}

hal_status replay_memory_set_type(replay_memory *memory, uint64_t begin, uint64_t end,
                                  hal_type type, int if_unknown)
{
    hal_status status = HAL_OK;
    while (status == HAL_OK && begin < end) {
        uint64_t piece = end;
        const bool known = if_unknown && replay_memory_type(memory, begin, &piece) != HAL_TYPE_NONE;
        if (!known) {
            status = types_put(memory, (replay_typed){begin, piece, type});
        }
        begin = piece;
    }
    return status;
}

hal_type replay_memory_type(const replay_memory *memory, uint64_t at, uint64_t *end)
{
    for (uint32_t i = 0; i < memory->type_count; i++) {
        const replay_typed *item = &memory->types[i];
        if (item->end > at) {
            const uint64_t stop = item->begin > at ? item->begin : item->end;
            *end = stop < *end ? stop : *end;
            return item->begin > at ? (hal_type)HAL_TYPE_NONE : item->type;
        }
    }
    return HAL_TYPE_NONE;
}
