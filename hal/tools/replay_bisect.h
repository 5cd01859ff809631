/* hal-replay --bisect: finds the first command of a recording whose results differ between two
 * sides, then the first instruction of its kernel, and writes a file that shows the difference. */
#ifndef HAL_TOOLS_REPLAY_BISECT_H
#define HAL_TOOLS_REPLAY_BISECT_H

#include "replay_compare.h"
#include "replay_file.h"

typedef struct replay_bisect_options {
    const char *sides[2];   /* see replay_side_start */
    const char *reproducer; /* path of the file that is written */
    replay_bound bound;
} replay_bisect_options;

/* Returns 0 if no result differs, 1 if one does, 2 for an error. Prints what it finds. `file` is at
 * its first record. */
int replay_bisect(replay_file *file, const replay_bisect_options *options);

#endif
