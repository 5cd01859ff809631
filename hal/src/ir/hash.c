/* The hash of a kernel: the key of the compile cache and of kernels in memory. */
#include "internal.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

/* Raised when what is hashed changes, or what a record means. Appended opcodes do not raise it. */
#define HASH_VERSION 2u

/* Words that are hashed at once. */
#define BATCH_WORDS 512u

typedef struct hasher {
    XXH3_state_t state;
    uint32_t words[BATCH_WORDS];
    uint32_t count;
} hasher;

static void put(hasher *h, uint32_t word)
{
    if (h->count == BATCH_WORDS) {
        XXH3_128bits_update(&h->state, h->words, sizeof h->words);
        h->count = 0;
    }
    h->words[h->count++] = word;
}

/* A constant counts by its bits, not by its place in the pool. */
static void put_record(hasher *h, const hal_ir_kernel *kernel, const hal_ir_record *record)
{
    put(h, (uint32_t)record->opcode << 16 | (uint32_t)record->type << 8 | record->width);
    if (record->opcode == HAL_IR_CONSTANT) {
        put(h, (uint32_t)kernel->constants[record->aux]);
        put(h, (uint32_t)(kernel->constants[record->aux] >> 32));
        return;
    }
    put(h, record->a);
    put(h, record->b);
    put(h, record->c);
    put(h, record->d);
    put(h, record->aux);
    put(h, (uint32_t)record->imm);
    put(h, record->flags);
}

void hal_ir_hash(const hal_ir_kernel *kernel, uint64_t hash[2])
{
    hasher h;
    h.count = 0;
    XXH3_INITSTATE(&h.state);
    XXH3_128bits_reset(&h.state);
    put(&h, HASH_VERSION);
    put(&h, kernel->flags);
    put(&h, kernel->group_size[0]);
    put(&h, kernel->group_size[1]);
    put(&h, kernel->group_size[2]);
    put(&h, kernel->groups_per_unit);
    put(&h, kernel->scalar_bytes);
    put(&h, kernel->binding_count);
    put(&h, kernel->memory_count);
    put(&h, kernel->scalar_count);
    put(&h, kernel->record_count);
    for (uint32_t i = 0; i < kernel->memory_count; i++) {
        const hal_ir_memory *memory = &kernel->memories[i];
        put(&h, (uint32_t)memory->type << 8 | memory->access);
        put(&h, memory->count);
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        put(&h, (uint32_t)kernel->scalars[i].type << 16 | kernel->scalars[i].offset);
    }
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        put_record(&h, kernel, &kernel->records[i]);
    }
    XXH3_128bits_update(&h.state, h.words, h.count * sizeof *h.words);
    const XXH128_hash_t digest = XXH3_128bits_digest(&h.state);
    hash[0] = digest.low64;
    hash[1] = digest.high64;
}
