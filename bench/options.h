/* options.h: reads the command line of hal-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "harness/bench.h"

/* 0: continue, 1: wrong usage, which standard error says, -1: help was printed. */
int bench_options_parse(int count, char **arguments, bool (*is_suite)(const char *name),
                        bench_options *options);

#endif
