/* Reports of invalid arguments to the handler that the program or its libraries define. */
#ifndef BLAS_SRC_REPORT_H
#define BLAS_SRC_REPORT_H

#include "call.h"

/* Calls xerbla_, or cblas_xerbla for a call of the C interface. It is looked for among the global
 * symbols, in the caller's library with what that needs, and in the host's BLAS. Without any, the
 * fault is told on the standard error output and the process continues. The position is that of
 * blas_call_check. Threads: any. */
void blas_report(const blas_call *call, int position);

/* The same for an argument of the C interface, with its position there. */
void blas_report_cblas(const blas_call *call, int position);

#endif
