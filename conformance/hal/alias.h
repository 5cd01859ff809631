/* alias.h: work on one of two buffers of the same memory, whose results are read through the other,
 * so that hal itself orders nothing; for order by what hal does not know. */
#ifndef CONFORMANCE_HAL_ALIAS_H
#define CONFORMANCE_HAL_ALIAS_H

#include "hal/fixture.h"

enum { ALIAS_COUNT = 4096, ALIAS_STEPS = 200 };

typedef struct alias {
    hal_queue *other; /* where the work is */
    hal_kernel *kernel;
    hal_buffer *first, *second; /* of the same memory */
    hal_buffer *between, *result;
} alias;

/* Makes the buffers, with the numbers of the words as contents, the kernel and a queue. */
void alias_begin(case_run *run, alias *made);

/* Adds 2 to each word ALIAS_STEPS times, which takes the device a while. */
void alias_submit(case_run *run, const alias *is, hal_queue *queue);

/* Reads through the other buffer what `turns` calls of alias_submit wrote. */
void alias_check(case_run *run, const alias *is, hal_queue *queue, uint32_t turns,
                 const char *what);

#endif
