/* The way of a call. */
#ifndef BLAS_SRC_RUN_H
#define BLAS_SRC_RUN_H

#include "call.h"

/* Checks a call, reports an invalid argument, and computes the result on the device, by the host's
 * BLAS or by plain loops. Threads: any. */
void blas_run(const blas_call *call);

#endif
