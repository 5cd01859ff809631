/* usage.h: what the process has of memory and of things that are few, and whether it has more of
 * them after each of several rounds of the same calls. */
#ifndef CONFORMANCE_HAL_USAGE_H
#define CONFORMANCE_HAL_USAGE_H

#include "case/case.h"

/* Resident bytes of the process; 0: unknown. */
uint64_t usage_resident_bytes(void);

/* A call that is repeated. */
typedef struct usage_turns {
    void (*turn)(case_run *run, void *user);
    void (*finish)(case_run *run, void *user); /* after each round, before the look; may be null */
    void *user;
    const char *name;      /* of what is repeated, for reports: "batches" */
    uint32_t turns, least; /* of a round; the least of one that takes long (0: 8) */
    uint32_t rounds;       /* 0: 5 */
    uint64_t bytes;        /* fails from so many bytes for each turn on; UINT64_MAX: not judged */
    bool has_driver;       /* whose threads may keep some memory in each round */
} usage_turns;

/* Fails if the process has after each round more memory, or one more descriptor, thread, mapping,
 * file, key of thread-local data, child process or timer for every second turn, or if no file can
 * be opened. A round that takes long is cut short, by processor time and where calls sleep by the
 * clock, and after 25 s three rounds are enough. Caches may grow in some rounds. */
void usage_check(case_run *run, const usage_turns *tested);

#endif
