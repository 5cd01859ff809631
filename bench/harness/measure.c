/* Measuring competitors in turns. */
#include "harness/measure.h"

#include <stdlib.h>
#include <time.h>

#define MIN_RUNS 9
#define MIN_LONG_RUNS 5
#define MAX_RUNS 201
#define MIN_RUN 5e-3
#define MAX_CALLS 1000000
#define COMPETITORS 48

/* Screening: runs, their seconds, how many times as long as the fastest one those take that are
 * measured at length, and most of them. */
#define SCREEN_RUNS 3
#define SCREEN_RUN 5e-4 /* or `seconds` if less */
#define SCREEN_FACTOR 1.2
#define SCREEN_MOST 5

/* Idle threads of a competitor spin before they sleep, for up to 30 ms (OpenBLAS), and would take
 * processors from the next competitor, which therefore waits. */
#define SETTLE_NS 40000000

/* Seconds of a call of which waking up, and the operands of others in the caches, are less than a
 * hundredth. */
#define LONG_CALL 0.5

/* Seconds of a turn of all, of which fewer runs suffice: each averages over more. */
#define LONG_TURN 2.0

/* Seconds a call. */
static double run_once(measured *competitor, int calls)
{
    const double start = measure_now();
    competitor->function(competitor->user, calls);
    return (measure_now() - start) / calls;
}

/* The same after some calls that are not timed. The first work after that of another competitor may
 * take longer: it finds another context on the device, and others' data in the caches. */
static double run_warm(measured *competitor, int calls)
{
    if (calls > 1) {
        run_once(competitor, calls / 8 + 1);
    }
    return run_once(competitor, calls);
}

/* The same after the other threads fell asleep and its own woke up, which a long call does in its
 * own time. */
static double run_settled(measured *competitor, int calls)
{
    const struct timespec pause = {.tv_nsec = SETTLE_NS};
    nanosleep(&pause, NULL);
    const double start = measure_now();
    double taken;
    do {
        taken = run_once(competitor, 1);
    } while (measure_now() < start + MIN_RUN);
    return calls == 1 && taken >= LONG_CALL ? taken : run_once(competitor, calls);
}

/* Finds the number of calls while it warms up for a tenth of a second, or `seconds` if less. */
static int find_calls(measured *competitor, double seconds)
{
    const double end = measure_now() + (seconds < 0.1 ? seconds : 0.1);
    int calls = competitor->least > 0 ? competitor->least : 1;
    double taken = run_once(competitor, calls) * calls;
    const double least = seconds < MIN_RUN ? seconds : MIN_RUN;
    while (taken < least && calls < MAX_CALLS) {
        calls *= 2;
        taken = run_once(competitor, calls) * calls;
    }
    while (measure_now() < end) {
        run_once(competitor, calls);
    }
    return calls;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void measure_alternating(measured *competitors, int count, double seconds)
{
    static double samples[COMPETITORS][MAX_RUNS];
    int calls[COMPETITORS];
    if (count > COMPETITORS) {
        count = COMPETITORS;
    }
    double turn = 0.0;
    bool settles = false;
    for (int i = 0; i < count; i++) {
        settles = settles || (count > 1 && competitors[i].has_threads);
    }
    for (int i = 0; i < count; i++) {
        turn += settles ? run_settled(&competitors[i], 1) : run_once(&competitors[i], 1);
        calls[i] = find_calls(&competitors[i], seconds);
    }
    const int least = turn > LONG_TURN ? MIN_LONG_RUNS : MIN_RUNS;
    const double start = measure_now();
    int runs = 0;
    while (runs < least || (runs < MAX_RUNS && measure_now() - start < seconds * count)) {
        for (int j = 0; j < count; j++) {
            const int i = runs % 2 ? count - 1 - j : j; /* nobody always follows the same one */
            samples[i][runs] = settles ? run_settled(&competitors[i], calls[i])
                                       : run_warm(&competitors[i], calls[i]);
        }
        runs++;
    }
    for (int i = 0; i < count; i++) {
        measure_summarise(&competitors[i].time, samples[i], runs, calls[i]);
    }
}

static void screen(measured *competitor, double seconds)
{
    double samples[SCREEN_RUNS];
    int calls = competitor->least > 0 ? competitor->least : 1;
    const double least = seconds < SCREEN_RUN ? seconds : SCREEN_RUN;
    while (run_once(competitor, calls) * calls < least && calls < MAX_CALLS) {
        calls *= 2;
    }
    for (int i = 0; i < SCREEN_RUNS; i++) {
        samples[i] = run_once(competitor, calls);
    }
    measure_summarise(&competitor->time, samples, SCREEN_RUNS, calls);
}

static int compare_times(const void *a, const void *b)
{
    const double x = (*(measured *const *)a)->time.min_us, y = (*(measured *const *)b)->time.min_us;
    return (x > y) - (x < y);
}

void measure_screened(measured *competitors, int count, int kept, double seconds)
{
    measured chosen[COMPETITORS];
    measured **ordered = malloc((size_t)(count - kept + 1) * sizeof *ordered);
    const int others = ordered ? count - kept : 0;
    int taken = 0;
    for (int i = 0; i < others; i++) {
        ordered[i] = &competitors[kept + i];
        screen(ordered[i], seconds);
    }
    if (others > 0) {
        qsort(ordered, (size_t)others, sizeof *ordered, compare_times);
    }
    for (int i = 0; i < kept && taken < COMPETITORS - SCREEN_MOST; i++) {
        chosen[taken++] = competitors[i];
    }
    const int first = taken;
    for (int i = 0; i < others && i < SCREEN_MOST &&
                    ordered[i]->time.min_us <= SCREEN_FACTOR * ordered[0]->time.min_us;
         i++) {
        chosen[taken++] = *ordered[i];
    }
    measure_alternating(chosen, taken, seconds);
    for (int i = 0; i < first; i++) {
        competitors[i].time = chosen[i].time;
    }
    for (int i = first; i < taken; i++) {
        ordered[i - first]->time = chosen[i].time;
    }
    free(ordered);
}

static clockid_t clock_used = CLOCK_MONOTONIC;

void measure_use_thread_time(void)
{
    clock_used = CLOCK_THREAD_CPUTIME_ID;
}

double measure_now(void)
{
    struct timespec time;
    clock_gettime(clock_used, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void measure_summarise(measurement *time, double *samples, int count, int calls)
{
    qsort(samples, (size_t)count, sizeof *samples, compare);
    time->median_us = 1e6 * samples[count / 2];
    time->min_us = 1e6 * samples[0];
    time->spread_us = 1e6 * (samples[count * 3 / 4] - samples[count / 4]);
    time->runs = count;
    time->calls = calls;
}

measurement measure_divide(const measurement *time, double parts)
{
    measurement divided = *time;
    divided.median_us /= parts;
    divided.min_us /= parts;
    divided.spread_us /= parts;
    return divided;
}
