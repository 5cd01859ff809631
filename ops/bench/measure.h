/* measure.h: times of competitors that take turns, so that what slows the machine down slows all of
 * them. Called by the suites. */
#ifndef OPS_BENCH_MEASURE_H
#define OPS_BENCH_MEASURE_H

/* Of repeated runs, in microseconds a call; the spread is that between the quartiles. */
typedef struct measurement {
    double median_us, min_us, spread_us;
    int runs, calls; /* calls of one run */
} measurement;

/* Does the work `calls` times and returns when all of it is done. */
typedef void (*measure_function)(void *user, int calls);

typedef struct measured {
    measure_function function;
    void *user;
    int least; /* calls of a run; 0: no matter */
    measurement time;
} measured;

/* Warms each up, finds how many calls make a run of at least 5 ms and `least` calls, then lets them
 * take turns for about `seconds` for each, at least 9 runs. */
void measure_alternating(measured *competitors, int count, double seconds);

/* Median, least and spread of samples in seconds, which get sorted. */
void measure_summarise(measurement *time, double *samples, int count, int calls);

double measure_now(void); /* seconds */

#endif
