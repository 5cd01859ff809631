/* Halyard's operator library: everything in one include.
 *
 * Kernels are written once, as IR, and run on the device of the context's queue. A call checks its
 * arguments, records work on that queue and returns. Only reading waits, and writing where many
 * writes are pending (hal_queue_write). Functions return a status, or, for arrays (array.h), null;
 * hal_status_message() has the reason.
 *
 *     ops_context *context;                      // from a hal_queue
 *     ops_context_create(queue, &context);
 *     ops_tensor a, b, c;                        // ops_tensor_from_host, ops_tensor_create
 *     ops_gemm(context, NULL, &a, &b, &c);       // c = a b
 *     ops_unary(context, OPS_RELU, &c, &c);      // in place
 *     ops_tensor_read(context, &c, sizeof numbers, numbers); */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include <ops/array.h>
#include <ops/attention.h>
#include <ops/complex.h>
#include <ops/convolution.h>
#include <ops/draw.h>
#include <ops/gemm.h>
#include <ops/grouped.h>
#include <ops/graph.h>
#include <ops/comm.h>
#include <ops/dlpack.h>
#include <ops/index.h>
#include <ops/loop.h>
#include <ops/normalisation.h>
#include <ops/normwise.h>
#include <ops/pointwise.h>
#include <ops/pooling.h>
#include <ops/quantised.h>
#include <ops/random.h>
#include <ops/recurrent.h>
#include <ops/reduce.h>
#include <ops/resize.h>
#include <ops/scan.h>
#include <ops/shape.h>
#include <ops/sort.h>
#include <ops/statistics.h>
#include <ops/tensor.h>
#include <ops/windows.h>

#endif
