/* canary.h: a pattern for memory that nobody may write, and for outputs before they are written.
 * Every halfword is a NaN in all float types (and no BOOL), so that reads outside of a range and
 * unwritten outputs are visible in a result. */
#ifndef CONFORMANCE_CASE_CANARY_H
#define CONFORMANCE_CASE_CANARY_H

#include <stdint.h>

/* Fills memory with the pattern, whose phase begins at `memory`. */
void canary_fill(void *memory, uint64_t bytes);

/* The pattern's byte `place` bytes after its begin. */
uint8_t canary_at(uint64_t place);

/* The first byte that differs from the pattern, or `bytes`. */
uint64_t canary_first_broken(const void *memory, uint64_t bytes);

#endif
