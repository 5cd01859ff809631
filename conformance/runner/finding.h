/* finding.h: what the layers validate and sanitize find while cases run, when they are on. */
#ifndef CONFORMANCE_RUNNER_FINDING_H
#define CONFORMANCE_RUNNER_FINDING_H

#include <stdbool.h>
#include <stddef.h>

/* Installs a log callback that records findings and prints to standard error. Call it before the
 * device is opened. */
void finding_listen(void);

/* Whether something was found since the last call; then `text` says of the first which
 * layer found what. */
bool finding_take(char *text, size_t bytes);

#endif
