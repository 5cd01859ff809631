/* The memories of a file that is replayed: what the recorded device's held, in host memory, and the
 * types of what lies where, as far as kernels have shown. Called by replay_run.c. */
#ifndef HAL_TOOLS_REPLAY_MEMORY_H
#define HAL_TOOLS_REPLAY_MEMORY_H

#include <hal/hal.h>

/* Elements of one type; ranges are in order and do not overlap. */
typedef struct replay_typed {
    uint64_t begin, end;
    hal_type type;
} replay_typed;

typedef struct replay_memory {
    uint64_t id, bytes;
    uint8_t *recorded;  /* zeros where nothing was said */
    hal_buffer *buffer; /* on the device that replays */
    replay_typed *types;
    uint32_t type_count, type_capacity;
} replay_memory;

/* Begins as {0}; in the order of their ids. A call that adds or removes moves them. */
typedef struct replay_memories {
    replay_memory *items;
    uint32_t count, capacity;
} replay_memories;

/* Makes a memory with its buffer. Errors: INVALID_ARGUMENT for an id that is there, what
 * hal_buffer_create answers, OUT_OF_MEMORY. */
hal_status replay_memory_add(replay_memories *memories, hal_device *device, uint64_t id,
                             uint64_t bytes, replay_memory **added);
replay_memory *replay_memory_find(const replay_memories *memories, uint64_t id);
void replay_memory_remove(replay_memories *memories, uint64_t id);
void replay_memories_free(replay_memories *memories);

/* Says what type a range has; with `if_unknown` only where nothing is known.
 * Errors: OUT_OF_MEMORY. */
hal_status replay_memory_set_type(replay_memory *memory, uint64_t begin, uint64_t end,
                                  hal_type type, int if_unknown);

/* The type at a place, and in *end where it stops to be that, at most the one given. */
hal_type replay_memory_type(const replay_memory *memory, uint64_t at, uint64_t *end);

#endif
