/* Parts of shared work, see parts.h. A word says how far its part has been taken; that of an
 * earlier stage counts as untouched, so nothing is reset between stages. */
#include "threads/parts.h"

enum { STAGE_SHIFT = 40 };

static uint64_t part_begin(const cpu_parts *parts, uint64_t units, uint32_t part)
{
    return units / parts->count * part + (units % parts->count * part) / parts->count;
}

/* Takes from one part. */
static bool part_take(cpu_parts *parts, uint32_t part, uint64_t stage, uint64_t units,
                      uint64_t chunk, uint64_t *first, uint64_t *count)
{
    const uint64_t begin = part_begin(parts, units, part);
    const uint64_t length = part_begin(parts, units, part + 1) - begin;
    _Atomic uint64_t *word = &parts->parts[part].taken;
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    for (;;) {
        const uint64_t stage_seen = seen >> STAGE_SHIFT;
        const uint64_t taken =
            stage_seen == stage + 1 ? seen & ((UINT64_C(1) << STAGE_SHIFT) - 1) : 0;
        if (stage_seen > stage + 1 || taken >= length) {
            return false;
        }
        const uint64_t rest = length - taken, size = rest < chunk ? rest : chunk;
        const uint64_t next = (stage + 1) << STAGE_SHIFT | (taken + size);
        if (atomic_compare_exchange_weak_explicit(word, &seen, next, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *first = begin + taken;
            *count = size;
            return true;
        }
    }
}

void cpu_parts_init(cpu_parts *parts, uint32_t threads)
{
    parts->count = threads < CPU_PARTS_MAX ? threads : CPU_PARTS_MAX;
    for (uint32_t i = 0; i < parts->count; i++) {
        atomic_init(&parts->parts[i].taken, 0);
    }
}

bool cpu_parts_take(cpu_parts *parts, uint32_t thread, uint64_t stage, uint64_t units,
                    uint64_t chunk, uint64_t *first, uint64_t *count)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        const uint32_t part = (thread + i) % parts->count;
        if (part_take(parts, part, stage, units, chunk, first, count)) {
            return true;
        }
    }
    return false;
}
