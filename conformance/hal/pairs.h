/* pairs.h: pairs of small kernels of one name that differ in one thing only. */
#ifndef CONFORMANCE_HAL_PAIRS_H
#define CONFORMANCE_HAL_PAIRS_H

#include "case/case.h"

#define PAIR_COUNT 16u

/* What the two kernels of a pair differ in, such as "immediate". */
const char *pair_difference(uint32_t pair);

/* Creates the first (0) or second (1) kernel of a pair on the run's device. */
hal_kernel *pair_kernel(case_run *run, uint32_t pair, uint32_t which);

/* Runs the kernel and checks what it writes. */
void pair_check(case_run *run, hal_kernel *kernel, uint32_t pair, uint32_t which);

#endif
