/* finding.h: what the layers validate and sanitize find while cases run, when they are on. */
#ifndef CONFORMANCE_RUNNER_FINDING_H
#define CONFORMANCE_RUNNER_FINDING_H

#include <stdbool.h>
#include <stddef.h>

/* Installs a log callback that records findings and prints to standard error. Call it before the
 * device is opened. */
void finding_listen(void);

/* Until the next call findings of these checks, PROVOKE_* of case/provoke.h, are expected. */
void finding_allow(unsigned checks);

/* Whether something else was found since the last call; then `text` says of the first which layer
 * found what. `provoked`: the checks that found what was expected. */
bool finding_take(char *text, size_t bytes, unsigned *provoked);

#endif
