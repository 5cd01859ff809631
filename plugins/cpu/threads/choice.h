/* Chooses how many threads run a piece of work, from the times that earlier runs of it took. Pure:
 * no clock, no threads, no locks. */
#ifndef PLUGINS_CPU_THREADS_CHOICE_H
#define PLUGINS_CPU_THREADS_CHOICE_H

#include <stdint.h>

enum { THREAD_COUNTS_MAX = 12 };

/* The counts to choose from, ascending: 1, 2, 4, ..., half and all of the device's threads. */
typedef struct thread_counts {
    uint32_t length;
    uint32_t threads[THREAD_COUNTS_MAX];
} thread_counts;

/* All costs are nanoseconds per unit of work, so that runs of similar sizes compare. */
typedef struct thread_choice {
    float cost[THREAD_COUNTS_MAX]; /* of each count; 0: not measured */
    float units;                   /* of work in the latest run */
    float budget;                  /* nanoseconds that trials may still lose */
    float trial_sum, trial_max, trial_min; /* costs of the samples of the current trial */
    float rival_cost;    /* of the count that `best` replaced; 0: no probation */
    uint16_t quiet;      /* runs since the last trial, saturating */
    uint16_t settled;    /* runs since `best` changed, saturating */
    uint8_t warm_up;     /* first runs still to come, of which the least cost counts */
    uint8_t best;        /* index of the count that ordinary runs use */
    uint8_t rival;       /* index of the count that `best` replaced */
    uint8_t trial;       /* index of the count on trial */
    uint8_t trial_left;  /* samples that the trial still takes; 0: no trial */
    uint8_t trial_taken; /* samples that the trial has taken */
    uint8_t turn;        /* index of the latest count whose turn it was */
    uint8_t one_measured; /* whether cost[0] was measured; else it is the latest expectation */
} thread_choice;

/* `threads`: 1 to 1024. */
void thread_counts_init(thread_counts *counts, uint32_t threads);

/* Returns the index of the largest count that is at most `threads`, which is at least 1. */
uint32_t thread_counts_find(const thread_counts *counts, uint32_t threads);

/* Begins with the count of index `start`. */
void thread_choice_init(thread_choice *choice, uint32_t start);

/* Returns the index of the count to use in the next run. */
uint32_t thread_choice_next(thread_choice *choice, const thread_counts *counts);

/* Notes that a run of `units` of work with the count of index `used` took `nanoseconds`, and that
 * one thread is expected to take `expected` nanoseconds, which counts until it was measured. Runs
 * may overlap: a time of a count that is neither the best nor on trial has no effect. */
void thread_choice_note(thread_choice *choice, const thread_counts *counts, uint32_t used,
                        double nanoseconds, double expected, double units);

#endif
