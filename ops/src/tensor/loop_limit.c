/* Limits of loops, see loop_limit.h. */
#include "loop_limit.h"

#include "expression.h"

/* Iterations left for loops that end, and for the remainder of an unrolled loop. */
#define SPARE 64u

int64_t ops_loop_limit(const ops_context *context, uint64_t inner, uint64_t outside)
{
    const uint64_t limit = context->info->max_loop_iterations;
    if (limit == 0) {
        return INT64_MAX;
    }
    if (inner >= limit || outside >= limit || limit - outside <= SPARE + inner) {
        return 1;
    }
    return (int64_t)((limit - outside - SPARE) / (1 + inner));
}

uint64_t ops_loops_of(const ops_expression *expression)
{
    return expression ? expression->iterations : 0;
}
