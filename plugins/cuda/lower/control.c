/* Variables, loops, branches, barriers, constants and ids. */
#include "lower/control.h"

#include <hal/ir_uniform.h>

/* An id or count in the group or grid; 0 where the group has one item in the dimension. */
static void lower_id(cuda_lowering *l, uint32_t index, const char *name)
{
    static const char *const dimensions[3] = {".x", ".y", ".z"};
    const hal_ir_record *r = &l->kernel->records[index];
    if (r->opcode == HAL_IR_LOCAL_ID && l->kernel->group_size[r->aux] == 1) {
        cuda_emit(l, "mov.u32 $, 0;", cuda_define(l, index));
    } else {
        cuda_emit(l, "mov.u32 $, $$;", cuda_define(l, index), cuda_text(name),
                  cuda_text(dimensions[r->aux]));
    }
}

static void block_open(cuda_lowering *l, uint32_t opener)
{
    l->blocks[++l->depth] = (cuda_block){opener, ++l->serials, l->labels};
    l->labels += 2;
}

/* The suffix of a branch: .uni where all work-items of the group take the same way. */
static cuda_operand branch_suffix(const cuda_lowering *l, uint32_t opener)
{
    return cuda_text(l->uniform[opener] & HAL_IR_UNIFORM_VALUE ? ".uni" : "");
}

static void lower_for(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const cuda_operand i = cuda_define(l, index), skip = cuda_fresh(l, CUDA_PREDICATE);
    block_open(l, index);
    const uint32_t label = l->blocks[l->depth].label;
    cuda_emit(l, "mov.b32 $, $;", i, cuda_value(l, r->a));
    cuda_emit(l, "setp.ge$ $, $, $;", cuda_type(r->type), skip, i, cuda_value(l, r->b));
    cuda_emit(l, "@$ bra$ L$;", skip, branch_suffix(l, index), cuda_unsigned(label));
    cuda_emit(l, "L$:", cuda_unsigned(label + 1));
}

static void lower_end(cuda_lowering *l)
{
    const cuda_block block = l->blocks[l->depth--];
    const hal_ir_record *r = &l->kernel->records[block.opener];
    if (r->opcode == HAL_IR_FOR) {
        const cuda_operand i = cuda_value(l, block.opener), again = cuda_fresh(l, CUDA_PREDICATE);
        cuda_emit(l, "add$ $, $, $;", cuda_type(r->type), i, i, cuda_value(l, r->c));
        cuda_emit(l, "setp.lt$ $, $, $;", cuda_type(r->type), again, i, cuda_value(l, r->b));
        cuda_emit(l, "@$ bra$ L$;", again, branch_suffix(l, block.opener),
                  cuda_unsigned(block.label + 1));
    }
    cuda_emit(l, "L$:", cuda_unsigned(block.label));
}

bool cuda_lower_control(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    switch (r->opcode) {
    case HAL_IR_CONSTANT:
        if (r->type == HAL_TYPE_BOOL) { /* all others are immediates */
            cuda_emit(l, "setp.ne.u32 $, $, 0;", cuda_define(l, index),
                      cuda_unsigned(l->kernel->constants[r->aux]));
        }
        return true;
    case HAL_IR_LOCAL_ID:
        lower_id(l, index, "%tid");
        return true;
    case HAL_IR_GROUP_ID:
        lower_id(l, index, "%ctaid");
        return true;
    case HAL_IR_GROUP_COUNT:
        lower_id(l, index, "%nctaid");
        return true;
    case HAL_IR_VAR:
    case HAL_IR_GET:
        cuda_emit(l, "mov$ $, $;", cuda_bits(r->type), cuda_define(l, index), cuda_value(l, r->a));
        return true;
    case HAL_IR_SET:
        cuda_emit(l, "mov$ $, $;", cuda_bits(l->kernel->records[r->a].type), cuda_value(l, r->a),
                  cuda_value(l, r->b));
        return true;
    case HAL_IR_FOR:
        lower_for(l, index);
        return true;
    case HAL_IR_IF:
        block_open(l, index);
        cuda_emit(l, "@!$ bra$ L$;", cuda_value(l, r->a), branch_suffix(l, index),
                  cuda_unsigned(l->blocks[l->depth].label));
        return true;
    case HAL_IR_ELSE: {
        const cuda_block first = l->blocks[l->depth--];
        block_open(l, first.opener);
        cuda_emit(l, "bra$ L$;", branch_suffix(l, first.opener),
                  cuda_unsigned(l->blocks[l->depth].label));
        cuda_emit(l, "L$:", cuda_unsigned(first.label));
        return true;
    }
    case HAL_IR_END:
        lower_end(l);
        return true;
    case HAL_IR_BARRIER:
        cuda_emit(l, "bar.sync 0;");
        return true;
    default:
        return false;
    }
}
