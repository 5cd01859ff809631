/* Who computes: HALYARD_BLAS_DECIDE. */
#ifndef BLAS_SRC_DECIDE_H
#define BLAS_SRC_DECIDE_H

#include "model.h"

typedef enum blas_policy { BLAS_BY_MODEL, BLAS_ALWAYS, BLAS_NEVER } blas_policy;

/* What the program's environment asks for. Threads: any. */
blas_policy blas_decide_policy(void);

/* The share of the host's time that the device's has to stay below, of a call whose smallest length
 * is `least`: most of the model's times are those of square calls. Threads: any. */
double blas_decide_margin(int64_t least);

/* Whether the device wins by the model's times by more than the model may err. Threads: any. */
bool blas_decide_is_faster(blas_times times, int64_t least);

/* Calls that the model leaves to the host are remembered by what it counts, so that those like
 * them cost less than the model; not where operands stay, on which it depends. Threads: any. */
void blas_decide_remember_host(const blas_call *call);
bool blas_decide_is_for_host(const blas_call *call);

#endif
