/* Making deferred nodes: what all public calls of operations share. */
#ifndef OPS_SRC_ARRAY_DEFERRED_H
#define OPS_SRC_ARRAY_DEFERRED_H

#include "lost.h"

/* Type and shape of an operation's result, and the axis that the operation works along. */
typedef struct ops_result {
    hal_type type;
    uint32_t rank, axis;
    const int64_t *shape; /* that of an operand, or `own` */
    int64_t own[OPS_MAX_RANK];
    const ops_tensor *like; /* of a copy or update: the tensor whose dense strides it gets; null:
                             * its operands decide */
    const void *form;       /* what the node's form gets a copy of, of operations that have one */
    uint32_t form_bytes;
    double scale; /* of attention */
} ops_result;

/* A result with the type and shape of x. */
static inline void ops_result_like(const ops_array *x, ops_result *result)
{
    result->type = x->view.type;
    result->axis = 0;
    result->like = NULL;
    result->rank = x->view.rank;
    result->shape = x->view.shape;
}

/* Gives the result a shape that can be changed, with the lengths so far. */
int64_t *ops_result_own_shape(ops_result *result);

/* Checks that `type`, an argument, is one that the device stores. */
hal_status ops_check_type(const char *function, const ops_arrays *arrays, hal_type type);

/* Checks an axis along which kernels index in 32 bits, and writes it counted from the start. */
hal_status ops_check_short_axis(const char *function, int32_t axis, const ops_array *x,
                                uint32_t *checked);

/* A copy of x with the dense strides of a tensor of its shape. Errors: null, as ops_defer. */
ops_array *ops_copy_like(ops_array *x, const ops_tensor *like);

/* Makes a deferred node, which owns uses of its operands. Executes operands until the node's
 * cluster is within the limits of one kernel; without fusion, executes the node. Null, and an
 * error, on failure. */
ops_array *ops_defer(const char *function, ops_operation operation, uint32_t operation_function,
                     ops_array *const *operands, uint32_t count, const ops_result *result);

#endif
