/* Execution: computes deferred nodes. */
#ifndef OPS_SRC_ARRAY_EXECUTE_H
#define OPS_SRC_ARRAY_EXECUTE_H

#include "lost.h"

/* Results of at most this many bytes that the host reads next are computed into memory that it
 * reads directly; docs/batching.md. */
#define OPS_DIRECT_READ_BYTES 16384u

/* Records what computes the arrays, which have one context. Arrays in memory are skipped. */
hal_status ops_execute(ops_array *const *arrays, uint32_t count);

/* The same for one array that the host reads next. */
hal_status ops_execute_for_host(ops_array *array);

#endif
