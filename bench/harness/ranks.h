/* The ranks of a local communicator, each with a thread and a queue: on one device, or with
 * --spread on several devices of the plugin. Called by suite_collectives.c and dense_ranks.c. */
#ifndef BENCH_HARNESS_RANKS_H
#define BENCH_HARNESS_RANKS_H

#include <hal/comm.h>
#include <pthread.h>

#include "harness/bench.h"

enum { CREW_MAX_RANKS = 64 };

struct crew;

/* A rank and its thread. */
typedef struct crew_member {
    struct crew *crew;
    uint32_t rank;
    pthread_t thread;
    hal_device *device;
    hal_queue *queue;
    hal_comm *comm;
    void *user; /* the suite's data of the rank */
} crew_member;

typedef void (*crew_work)(crew_member *self, int calls);

/* All ranks; the first one works on the thread that calls crew_run. */
typedef struct crew {
    bench_state *bench;
    uint32_t ranks, started;             /* started: threads, with the caller's */
    hal_device *devices[CREW_MAX_RANKS]; /* with --spread references of the crew's */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t turn; /* of work that was started */
    uint32_t busy; /* ranks that have not ended it */
    bool ended;
    crew_work work;
    int calls;
    crew_member members[CREW_MAX_RANKS];
} crew;

/* Devices and number of ranks by --ranks and --spread, the communicator, queues and threads. False
 * after a printed failure; call crew_close in any case. */
bool crew_open(bench_state *bench, crew *made);
void crew_close(crew *all);

/* Lets all ranks work and waits for them. */
void crew_run(crew *all, crew_work work, int calls);

/* Prints hal's message of the calling thread as a failure of the rank. */
void crew_fail(const crew_member *self);

#endif
