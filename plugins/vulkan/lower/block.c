/* Labels and branches of the block that is written, and the failure of a lowering. */
#include "lower/state.h"

#include <stdarg.h>
#include <stdio.h>

void lower_label(lower *l, uint32_t label)
{
    EMIT(&l->writer, SPIRV_BODY, SPV_OP_LABEL, label);
    l->label = label;
}

void lower_branch(lower *l, uint32_t target)
{
    EMIT(&l->writer, SPIRV_BODY, SPV_OP_BRANCH, target);
}

void lower_branch_if(lower *l, uint32_t condition, uint32_t yes, uint32_t no, uint32_t merge)
{
    EMIT(&l->writer, SPIRV_BODY, SPV_OP_SELECTION_MERGE, merge, 0);
    EMIT(&l->writer, SPIRV_BODY, SPV_OP_BRANCH_CONDITIONAL, condition, yes, no);
}

uint32_t lower_phi(lower *l, uint32_t type, uint32_t one, uint32_t from_one, uint32_t other,
                   uint32_t from_other)
{
    return RESULT(&l->writer, SPV_OP_PHI, type, one, from_one, other, from_other);
}

void lower_fail(lower *l, hal_status status, const char *format, ...)
{
    va_list arguments;
    if (l->status != HAL_OK) {
        return;
    }
    l->status = status;
    va_start(arguments, format);
    vsnprintf(l->problem, l->problem_bytes, format, arguments);
    va_end(arguments);
}
