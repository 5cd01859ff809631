/* Work that the calling thread shares with the pool's: how many threads run it. */
#ifndef PLUGINS_CPU_THREADS_SHARE_H
#define PLUGINS_CPU_THREADS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* The choices of a device. */
typedef struct cpu_share cpu_share;

/* One piece of work, between cpu_share_begin and cpu_share_end. */
typedef struct cpu_share_turn {
    uint64_t key;
    uint64_t start;   /* nanoseconds by the clock */
    double units;     /* of work: what the time is proportional to */
    double expected;  /* nanoseconds with one thread */
    uint32_t index;   /* of the chosen count */
    uint32_t threads; /* the chosen count */
} cpu_share_turn;

/* Creates the choices of a device with this many threads, which begin with at most `processors`.
 * Returns null when the host has no memory. */
cpu_share *cpu_share_create(uint32_t threads, uint32_t processors);
void cpu_share_destroy(cpu_share *share);

/* Work of fewer nanoseconds runs on one thread: to share it costs half of them. */
enum { CPU_SHARE_FROM = 3000 };

/* Whether work of this many nanoseconds can be worth sharing. */
static inline bool cpu_share_is_worth(uint64_t expected)
{
    return expected >= CPU_SHARE_FROM;
}

/* Kinds of work; a kernel is CPU_SHARE_KERNELS plus its number. */
enum { CPU_SHARE_COPY, CPU_SHARE_FILL, CPU_SHARE_KERNELS };

/* Returns a key for work of one kind and of a similar size (equal logarithm); `key`: 0, or that of
 * the work before it in a run. */
uint64_t cpu_share_key(uint64_t key, uint64_t kind, uint64_t size);

/* Chooses the number of threads for work with a key, and takes the time. Threads: any. */
cpu_share_turn cpu_share_begin(cpu_share *share, uint64_t key, double units, double expected);

/* Notes what the work took. */
void cpu_share_end(cpu_share *share, const cpu_share_turn *turn);

#endif
