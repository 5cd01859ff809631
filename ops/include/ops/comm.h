/* Collectives over tensors and arrays, for training on several devices or processes: see
 * hal/comm.h. */
#ifndef OPS_COMM_H
#define OPS_COMM_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_COMM_BUCKET_BYTES (UINT64_C(1) << 20) /* of options whose bucket_bytes is 0 */

typedef struct ops_comm_options {
    uint32_t size;         /* sizeof(ops_comm_options) */
    uint32_t any_order;    /* 1: sums and means of floats may be added in any order, which backends
                            * of the devices' vendor need, see hal_collective */
    uint64_t bucket_bytes; /* smaller tensors of one type are reduced together, up to as many bytes
                            * at a time; 0: OPS_COMM_BUCKET_BYTES */
    hal_queue *queue;      /* of the context's device: the collectives run there, next to later work
                            * of the context; null: on the context's queue */
} ops_comm_options;

#define OPS_COMM_OPTIONS_DEFAULT          \
    {                                     \
        sizeof(ops_comm_options), 0, 0, 0 \
    }

/* Replaces each of `count` tensors by its reduction (HAL_REDUCE_SUM, ...) over the ranks of the
 * communicator. All ranks pass tensors of the same types and sizes in the same order. The tensors
 * are contiguous, at multiples of 4 bytes, and do not overlap; null options are the defaults. With
 * options.queue the result is there at the last point of that queue: before its next use of the
 * tensors the context's queue waits for it (hal_queue_flush, hal_queue_wait_point). The bits do not
 * depend on buckets and queue, unless options.any_order is set. A failure after the checks ends the
 * communicator.
 * Threads: the context's and the queue's. Errors: INVALID_ARGUMENT, those of
 * hal_queue_collective. */
HAL_API hal_status ops_comm_all_reduce(ops_context *context, hal_comm *comm, uint32_t reduction,
                                       const ops_tensor *tensors, uint32_t count,
                                       const ops_comm_options *options);

/* Replaces the tensors of all ranks by those of rank `root`, such as initial weights.
 * Threads, Errors: as ops_comm_all_reduce. */
HAL_API hal_status ops_comm_broadcast(ops_context *context, hal_comm *comm, uint32_t root,
                                      const ops_tensor *tensors, uint32_t count,
                                      const ops_comm_options *options);

/* Makes results[i], the reduction of arrays[i] over the ranks of the communicator, for each of
 * `count` arrays of one context; `results` may be `arrays`. All ranks pass arrays of the same types
 * and sizes in the same order. The arrays are computed by this call. A communicator of one rank
 * gives views of them, deferred as they are. While a graph is recorded, each launch repeats the
 * collectives; options.queue is null then.
 * Ownership: the results are the innermost scope's or the caller's; nulls after a failure.
 * Threads: the queue's. Errors, options, bits: as ops_comm_all_reduce; those of the evaluation,
 * which end the communicator as well. */
HAL_API hal_status ops_array_all_reduce(hal_comm *comm, uint32_t reduction,
                                        ops_array *const *arrays, uint32_t count,
                                        const ops_comm_options *options,
                                        HAL_OUT ops_array **results);

#ifdef __cplusplus
}
#endif
#endif
