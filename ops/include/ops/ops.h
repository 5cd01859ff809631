/* Halyard's operator library: everything in one include.
 *
 * Every family writes its kernels once, as IR; they run on whatever device the context's queue
 * belongs to. A call checks its arguments, records work on that queue and returns; nothing waits
 * but reading, and writing where the device lags far behind (hal_queue_write). What can fail gives
 * a status, or, on arrays (array.h), null; its sentence is hal_status_message().
 *
 *     ops_context *context;                      // from a hal_queue
 *     ops_context_create(queue, &context);
 *     ops_tensor a, b, c;                        // ops_tensor_from_host, ops_tensor_create
 *     ops_gemm(context, NULL, &a, &b, &c);       // c = a b
 *     ops_unary(context, OPS_RELU, &c, &c);      // in place
 *     ops_tensor_read(context, &c, numbers, sizeof numbers); */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include <ops/array.h>
#include <ops/gemm.h>
#include <ops/graph.h>
#include <ops/index.h>
#include <ops/pointwise.h>
#include <ops/random.h>
#include <ops/reduce.h>
#include <ops/tensor.h>

#endif
