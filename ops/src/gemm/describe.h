/* A plan as text. */
#ifndef OPS_SRC_GEMM_DESCRIBE_H
#define OPS_SRC_GEMM_DESCRIBE_H

#include "plan.h"

enum { OPS_GEMM_LINE_LENGTH = 512 };

/* Writes one line about a product and its plan; a longer one is cut. */
void ops_gemm_plan_describe(const ops_context *context, const ops_product *product,
                            const ops_gemm_plan *plan, uint64_t bytes, char *text);

#endif
