/* yardsticks.h: what memory-bound work is held against: the triad (triad.h) where a processor
 * computes, device-to-device copies (copy.h) where the device has memory of its own; both on
 * software that acts as a GPU. Called by the suites of memory-bound work. */
#ifndef OPS_BENCH_YARDSTICKS_H
#define OPS_BENCH_YARDSTICKS_H

#include "bench.h"
#include "copy.h"
#include "triad.h"

typedef struct yardsticks {
    bench_state *bench;
    int64_t count; /* floats of one array */
    triad *triad;  /* null where no processor computes */
    bool copies;
    copy_yardstick copy;
} yardsticks;

/* Arrays of `count` floats each. False when they cannot be made, which is said; what there is, is
 * freed by yardsticks_destroy all the same. */
bool yardsticks_create(bench_state *bench, int64_t count, yardsticks *made);
void yardsticks_destroy(yardsticks *made);

/* Puts them behind the first competitor, the device, and gives the number of all: at most
 * 1 + BENCH_MAX_PEERS. */
int yardsticks_list(yardsticks *all, measured *competitors);

/* Adds what they reached to a row; the rates of the row come afterwards. */
void yardsticks_add(const yardsticks *all, const measured *competitors, int count, bench_row *row);

#endif
