/* The steps that a loop of a kernel may take, for devices whose drivers limit the iterations of
 * loops. */
#ifndef OPS_SRC_TENSOR_LOOP_LIMIT_H
#define OPS_SRC_TENSOR_LOOP_LIMIT_H

#include "context.h"

/* Steps of one loop, whose iterations are at most as many: a step contains `inner` iterations of
 * further loops, the rest of the kernel `outside`. At least 1; INT64_MAX without a limit. */
int64_t ops_loop_limit(const ops_context *context, uint64_t inner, uint64_t outside);

/* Iterations of an expression's loops; 0 for null. */
uint64_t ops_loops_of(const ops_expression *expression);

#endif
