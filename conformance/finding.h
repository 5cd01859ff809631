/* finding.h: what the validate layer finds while cases run, when HAL_LAYERS has it. Called by
 * worker.c. */
#ifndef HAL_CONFORMANCE_FINDING_H
#define HAL_CONFORMANCE_FINDING_H

#include <stdbool.h>
#include <stddef.h>

/* Before the device is opened: the log goes by here, on its way to standard error. */
void finding_listen(void);

/* Whether something was found since the last call; then `text` has the words of the first. */
bool finding_take(char *text, size_t bytes);

#endif
