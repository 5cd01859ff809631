/* Measuring competitors in turns, so that other load on the machine affects all of them. */
#ifndef BENCH_HARNESS_MEASURE_H
#define BENCH_HARNESS_MEASURE_H

#include <stdbool.h>

/* Microseconds per call, over repeated runs; spread: between the quartiles. */
typedef struct measurement {
    double median_us, min_us, spread_us;
    int runs, calls; /* calls of one run */
} measurement;

/* Runs the work `calls` times and returns when all of it is complete. */
typedef void (*measure_function)(void *user, int calls);

typedef struct measured {
    measure_function function;
    void *user;
    int least;        /* minimum of calls per run */
    bool has_threads; /* of a library, which may spin after a call */
    measurement time;
} measured;

/* Warms each competitor up, finds how many calls take at least 5 ms (at least `least`), then
 * measures them in turns, after pauses where one has threads, else after some calls that are not
 * timed, in both orders by turns, for about `seconds` each, at least 9 runs, or 5 where a turn of
 * all takes more than 2 seconds. */
void measure_alternating(measured *competitors, int count, double seconds);

/* The same for the first `kept`, and for those of the others that are nearly as fast as the fastest
 * in three short runs, at most 5 of them; the rest keeps the times of these runs. Without host
 * memory the others have no runs. */
void measure_screened(measured *competitors, int count, int kept, double seconds);

/* Median, minimum and spread of samples in seconds, which are sorted in place. */
void measure_summarise(measurement *time, double *samples, int count, int calls);

/* The time of one of `parts` operations of a call. */
measurement measure_divide(const measurement *time, double parts);

double measure_now(void); /* seconds */

/* From now on measure_now is the processor time of the calling thread. */
void measure_use_thread_time(void);

#endif
