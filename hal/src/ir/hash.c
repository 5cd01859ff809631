/* The hash of a kernel: the key of the compile cache and of kernels in memory. */
#include "internal.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

/* Incremented when the hashed fields or the meaning of a record change; not for new opcodes. */
#define HASH_VERSION 2u

#define BATCH_WORDS 512u /* hashed at once */

typedef struct hasher {
    XXH3_state_t state;
    uint32_t words[BATCH_WORDS];
    uint32_t count;
} hasher;

static void hasher_add(hasher *h, uint32_t word)
{
    if (h->count == BATCH_WORDS) {
        XXH3_128bits_update(&h->state, h->words, sizeof h->words);
        h->count = 0;
    }
    h->words[h->count++] = word;
}

/* Constants are hashed by their bits: their index in the pool has no meaning. */
static void hasher_add_record(hasher *h, const hal_ir_kernel *kernel, const hal_ir_record *record)
{
    hasher_add(h, (uint32_t)record->opcode << 16 | (uint32_t)record->type << 8 | record->width);
    if (record->opcode == HAL_IR_CONSTANT) {
        hasher_add(h, (uint32_t)kernel->constants[record->aux]);
        hasher_add(h, (uint32_t)(kernel->constants[record->aux] >> 32));
        return;
    }
    hasher_add(h, record->a);
    hasher_add(h, record->b);
    hasher_add(h, record->c);
    hasher_add(h, record->d);
    hasher_add(h, record->aux);
    hasher_add(h, (uint32_t)record->imm);
    hasher_add(h, record->flags);
}

void hal_ir_hash(const hal_ir_kernel *kernel, uint64_t hash[2])
{
    hasher h;
    h.count = 0;
    XXH3_INITSTATE(&h.state);
    XXH3_128bits_reset(&h.state);
    hasher_add(&h, HASH_VERSION);
    hasher_add(&h, kernel->flags);
    hasher_add(&h, kernel->group_size[0]);
    hasher_add(&h, kernel->group_size[1]);
    hasher_add(&h, kernel->group_size[2]);
    hasher_add(&h, kernel->groups_per_unit);
    hasher_add(&h, kernel->scalar_bytes);
    hasher_add(&h, kernel->binding_count);
    hasher_add(&h, kernel->memory_count);
    hasher_add(&h, kernel->scalar_count);
    hasher_add(&h, kernel->record_count);
    for (uint32_t i = 0; i < kernel->memory_count; i++) {
        const hal_ir_memory *memory = &kernel->memories[i];
        hasher_add(&h, (uint32_t)memory->type << 8 | memory->access);
        hasher_add(&h, memory->count);
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        hasher_add(&h, (uint32_t)kernel->scalars[i].type << 16 | kernel->scalars[i].offset);
    }
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        hasher_add_record(&h, kernel, &kernel->records[i]);
    }
    XXH3_128bits_update(&h.state, h.words, h.count * sizeof *h.words);
    const XXH128_hash_t digest = XXH3_128bits_digest(&h.state);
    hash[0] = digest.low64;
    hash[1] = digest.high64;
}
