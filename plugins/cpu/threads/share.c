/* The choices of a device: the time of each piece of work goes to a thread_choice, whose key is the
 * work's kernels and the logarithm of its size. */
#include "threads/share.h"

#include "threads/choice.h"

#include <kit/clock.h>
#include <pthread.h>
#include <stdlib.h>

/* The table of choices: sets of this many ways, of which the least recently used is replaced. */
enum { SETS = 256, WAYS = 4 };

typedef struct choice_entry {
    uint64_t key;  /* 0: unused */
    uint64_t used; /* number of the latest use */
    thread_choice choice;
} choice_entry;

struct cpu_share {
    thread_counts counts;
    uint32_t processors;
    pthread_mutex_t lock; /* of what follows */
    uint64_t uses;
    choice_entry entries[SETS][WAYS];
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* Finds the choice with a key or makes it. A new choice begins with a thread for each
 * CPU_SHARE_FROM nanoseconds of work. The caller holds the lock. */
static thread_choice *choice_find(cpu_share *share, uint64_t key, double expected)
{
    choice_entry *set = share->entries[key % SETS], *oldest = set;
    share->uses++;
    for (uint32_t way = 0; way < WAYS; way++) {
        if (set[way].key == key) {
            set[way].used = share->uses;
            return &set[way].choice;
        }
        oldest = set[way].used < oldest->used ? &set[way] : oldest;
    }
    const double worth = expected / CPU_SHARE_FROM;
    const uint32_t threads = worth < 1                   ? 1
                             : worth < share->processors ? (uint32_t)worth
                                                         : share->processors;
    oldest->key = key;
    oldest->used = share->uses;
    thread_choice_init(&oldest->choice, thread_counts_find(&share->counts, threads));
    return &oldest->choice;
}

cpu_share *cpu_share_create(uint32_t threads, uint32_t processors)
{
    cpu_share *share = calloc(1, sizeof(*share));
    if (share) {
        thread_counts_init(&share->counts, threads);
        share->processors = processors;
        pthread_mutex_init(&share->lock, NULL);
    }
    return share;
}

void cpu_share_destroy(cpu_share *share)
{
    if (share) {
        pthread_mutex_destroy(&share->lock);
        free(share);
    }
}

uint64_t cpu_share_key(uint64_t key, uint64_t kind, uint64_t size)
{
    const uint64_t class = size == 0 ? 0 : 64 - (uint64_t)__builtin_clzll(size);
    const uint64_t made = mix(key ^ mix(kind << 7 ^ class));
    return made == 0 ? 1 : made;
}

cpu_share_turn cpu_share_begin(cpu_share *share, uint64_t key, double units, double expected)
{
    cpu_share_turn turn = {.key = key, .units = units, .expected = expected};
    pthread_mutex_lock(&share->lock);
    turn.index = thread_choice_next(choice_find(share, key, expected), &share->counts);
    pthread_mutex_unlock(&share->lock);
    turn.threads = share->counts.threads[turn.index];
    turn.start = kit_clock_ns();
    return turn;
}

void cpu_share_end(cpu_share *share, const cpu_share_turn *turn)
{
    const double took = (double)(kit_clock_ns() - turn->start);
    pthread_mutex_lock(&share->lock);
    thread_choice_note(choice_find(share, turn->key, turn->expected), &share->counts, turn->index,
                       took, turn->expected, turn->units);
    pthread_mutex_unlock(&share->lock);
}
