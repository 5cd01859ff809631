/* The memories of a replay: recorded contents in host memory, and the types of ranges as far as
 * known from kernels. */
#ifndef HAL_TOOLS_REPLAY_MEMORY_H
#define HAL_TOOLS_REPLAY_MEMORY_H

#include <hal/hal.h>

/* A range of elements of one type. Ranges are sorted and do not overlap. */
typedef struct replay_typed {
    uint64_t begin, end;
    hal_type type;
} replay_typed;

typedef struct replay_memory {
    uint64_t id, bytes;
    uint8_t *recorded;  /* zeros unless the file says otherwise */
    hal_buffer *buffer; /* on the device of the replay; null without one */
    replay_typed *types;
    uint32_t type_count, type_capacity;
} replay_memory;

/* Begins as {0}; sorted by id. Adding and removing moves items. */
typedef struct replay_memories {
    replay_memory *items;
    uint32_t count, capacity;
} replay_memories;

/* Creates a memory with its buffer; without a device it has none. Errors: INVALID_ARGUMENT for a
 * known id, those of hal_buffer_create, OUT_OF_MEMORY. */
hal_status replay_memory_add(replay_memories *memories, hal_device *device, uint64_t id,
                             uint64_t bytes, replay_memory **added);
replay_memory *replay_memory_find(const replay_memories *memories, uint64_t id);
/* The recorded contents of a range, or null where the memory, which may be null, has none. */
uint8_t *replay_memory_range(const replay_memory *memory, uint64_t offset, uint64_t bytes);
void replay_memory_remove(replay_memories *memories, uint64_t id);
void replay_memories_free(replay_memories *memories);

/* Sets the type of a range; with `if_unknown` only where it is unknown. Errors: OUT_OF_MEMORY. */
hal_status replay_memory_set_type(replay_memory *memory, uint64_t begin, uint64_t end,
                                  hal_type type, int if_unknown);

/* The type at an offset. Reduces *end to the end of the range with that type. */
hal_type replay_memory_type(const replay_memory *memory, uint64_t at, uint64_t *end);

#endif
