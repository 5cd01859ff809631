/* SIGINT and SIGTERM while cells are measured whose rows are printed at the end: the run ends
 * after the current cell, with the rows that it has. */
#ifndef BENCH_HARNESS_INTERRUPT_H
#define BENCH_HARNESS_INTERRUPT_H

#include <stdbool.h>

/* From now on; a second signal ends the process. */
void interrupt_watch(void);

bool interrupt_was_asked(void);

#endif
