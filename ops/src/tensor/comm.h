/* Collectives over lists of tensors. */
#ifndef OPS_SRC_TENSOR_COMM_H
#define OPS_SRC_TENSOR_COMM_H

#include "context.h"

#include <ops/comm.h>
#include <stdbool.h>

/* Whether a collective reads and writes the tensor where it is. */
bool ops_comm_takes_tensor(const ops_tensor *tensor);

/* The all_reduce that the options, which may be null, describe. */
hal_collective ops_comm_reduction(uint32_t reduction, const ops_comm_options *options);

/* Checks the arguments that all lists have. *is_alone: the communicator has one rank, and nothing
 * is to be done. Errors: INVALID_ARGUMENT, those of hal_comm_get_status. */
hal_status ops_comm_check(const char *function, const ops_context *context, hal_comm *comm,
                          const ops_comm_options *options, bool *is_alone);

/* Records a collective from each source to its result, which may be the same tensor; the options
 * are checked. A failure ends the communicator. */
hal_status ops_comm_record(ops_context *context, hal_comm *comm, hal_collective what,
                           const ops_tensor *sources, const ops_tensor *results, uint32_t count,
                           const ops_comm_options *options);

#endif
