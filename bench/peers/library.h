/* Libraries that are opened on request: nothing of them is needed to build or to start. */
#ifndef BENCH_PEERS_LIBRARY_H
#define BENCH_PEERS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Where the address of a function is written. */
typedef struct library_symbol {
    void *place;
    const char *name;
} library_symbol;

/* Opens the first of the files that is there (names with spaces between) and finds all functions.
 * The library stays open. False with a message. */
bool library_open(const char *files, const library_symbol *symbols, size_t count, char *message,
                  size_t bytes);

#endif
