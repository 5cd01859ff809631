/* What HALYARD_BLAS_LOG=summary tells when the process ends. */
#ifndef BLAS_SRC_SUMMARY_H
#define BLAS_SRC_SUMMARY_H

#include "call.h"
#include "lapack.h"

/* Whether a summary is wanted; without it calls are not timed. Threads: any. */
bool blas_summary_is_wanted(void);

/* Nanoseconds of a clock that does not go back. */
uint64_t blas_summary_clock(void);

/* Counts a call that took this long since `start`, on the device or elsewhere. Threads: any. */
void blas_summary_add(const blas_call *call, bool on_device, uint64_t moved, uint64_t start);
void blas_summary_add_factoring(const blas_factoring *call, bool on_device, uint64_t moved,
                                uint64_t start);

#endif
