/* Labels and branches of the block that is written. */
#include "lower/block.h"

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
