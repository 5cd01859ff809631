/* The ranks of a local communicator, each with a thread and a queue: on one device, or with
 * --spread on several devices of the plugin. */
#ifndef BENCH_HARNESS_RANKS_H
#define BENCH_HARNESS_RANKS_H

#include <hal/comm.h>
#include <pthread.h>

#include "harness/bench.h"

enum { RANKS_MAX = 64 };

struct bench_ranks;

/* A rank and its thread. */
typedef struct bench_rank {
    struct bench_ranks *all;
    uint32_t rank;
    pthread_t thread;
    hal_device *device;
    hal_queue *queue;
    hal_comm *comm;
    void *user; /* the suite's data of the rank */
} bench_rank;

typedef void (*rank_work)(bench_rank *self, int calls);

/* All ranks; the first one works on the thread that calls ranks_run. */
typedef struct bench_ranks {
    bench_state *bench;
    uint32_t ranks, started;        /* started: threads, with the caller's */
    hal_device *devices[RANKS_MAX]; /* with --spread references that are released with them */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t turn; /* of work that was started */
    uint32_t busy; /* ranks that have not ended it */
    bool ended;
    rank_work work;
    int calls;
    bench_rank members[RANKS_MAX];
} bench_ranks;

/* Devices and number of ranks by --ranks and --spread, the communicator, queues and threads. False
 * after a printed failure; call ranks_close in any case. */
bool ranks_open(bench_state *bench, bench_ranks *made);
void ranks_close(bench_ranks *all);

/* Lets all ranks work and waits for them. */
void ranks_run(bench_ranks *all, rank_work work, int calls);

/* Prints hal's message of the calling thread as a failure of the rank. */
void rank_fail(const bench_rank *self);

#endif
