/* options.h: what the command line of hal-conformance says. */
#ifndef CONFORMANCE_OPTIONS_H
#define CONFORMANCE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct program_options {
    const char *plugin, *device, *filter, *expect, *compare;
    const char *json, *junit, *tap;
    unsigned levels;
    uint64_t seed;
    unsigned jobs, seconds, shrink_seconds, every, most_hung;
    unsigned part, parts;
    bool seed_given, cover, quick, list, table, in_process, version;
} program_options;

/* 0: continue, 1: wrong usage, which was told, -1: help or the version was printed. */
int options_parse(int count, char **arguments, program_options *options);

#endif
