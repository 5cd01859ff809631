/* Variables, loops, branches, barriers, and what a kernel starts from: constants, scalars, ids. */
#include "lower_state.h"

#include <hal/ir_uniform.h>

/* A place in the group or grid; where there is one place only, it is known. */
static void id(cuda_lowering *l, uint32_t index, const char *name)
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

/* The label of a block is where control goes when it is left, or not entered; a loop has the next
 * number for its beginning. */
static void open_block(cuda_lowering *l, uint32_t opener)
{
    l->blocks[++l->depth] = (cuda_block){opener, ++l->serials, l->labels};
    l->labels += 2;
}

/* Branches that no work-items part at say so. */
static cuda_operand branch(const cuda_lowering *l, uint32_t opener)
{
    return cuda_text(l->uniform[opener] & HAL_IR_UNIFORM_VALUE ? ".uni" : "");
}

static void begin_for(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const cuda_operand i = cuda_define(l, index), skip = cuda_fresh(l, CUDA_PREDICATE);
    open_block(l, index);
    const uint32_t label = l->blocks[l->depth].label;
    cuda_emit(l, "mov.b32 $, $;", i, cuda_value(l, r->a));
    cuda_emit(l, "setp.ge$ $, $, $;", cuda_type(r->type), skip, i, cuda_value(l, r->b));
    cuda_emit(l, "@$ bra$ L$;", skip, branch(l, index), cuda_unsigned(label));
    cuda_emit(l, "L$:", cuda_unsigned(label + 1));
}

static void end_block(cuda_lowering *l)
{
    const cuda_block block = l->blocks[l->depth--];
    const hal_ir_record *r = &l->kernel->records[block.opener];
    if (r->opcode == HAL_IR_FOR) {
        const cuda_operand i = cuda_value(l, block.opener), again = cuda_fresh(l, CUDA_PREDICATE);
        cuda_emit(l, "add$ $, $, $;", cuda_type(r->type), i, i, cuda_value(l, r->c));
        cuda_emit(l, "setp.lt$ $, $, $;", cuda_type(r->type), again, i, cuda_value(l, r->b));
        cuda_emit(l, "@$ bra$ L$;", again, branch(l, block.opener), cuda_unsigned(block.label + 1));
    }
    cuda_emit(l, "L$:", cuda_unsigned(block.label));
}

int cuda_lower_control(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    switch (r->opcode) {
    case HAL_IR_CONSTANT:
        if (r->type == HAL_TYPE_BOOL) { /* all others are immediates */
            cuda_emit(l, "setp.ne.u32 $, $, 0;", cuda_define(l, index),
                      cuda_unsigned(l->kernel->constants[r->aux]));
        }
        return 1;
    case HAL_IR_LOCAL_ID:
        id(l, index, "%tid");
        return 1;
    case HAL_IR_GROUP_ID:
        id(l, index, "%ctaid");
        return 1;
    case HAL_IR_GROUP_COUNT:
        id(l, index, "%nctaid");
        return 1;
    case HAL_IR_VAR:
    case HAL_IR_GET:
        cuda_emit(l, "mov$ $, $;", cuda_bits(r->type), cuda_define(l, index), cuda_value(l, r->a));
        return 1;
    case HAL_IR_SET:
        cuda_emit(l, "mov$ $, $;", cuda_bits(l->kernel->records[r->a].type), cuda_value(l, r->a),
                  cuda_value(l, r->b));
        return 1;
    case HAL_IR_FOR:
        begin_for(l, index);
        return 1;
    case HAL_IR_IF:
        open_block(l, index);
        cuda_emit(l, "@!$ bra$ L$;", cuda_value(l, r->a), branch(l, index),
                  cuda_unsigned(l->blocks[l->depth].label));
        return 1;
    case HAL_IR_ELSE: {
        const cuda_block first = l->blocks[l->depth--];
        open_block(l, first.opener);
        cuda_emit(l, "bra$ L$;", branch(l, first.opener), cuda_unsigned(l->blocks[l->depth].label));
        cuda_emit(l, "L$:", cuda_unsigned(first.label));
        return 1;
    }
    case HAL_IR_END:
        end_block(l);
        return 1;
    case HAL_IR_BARRIER:
        cuda_emit(l, "bar.sync 0;");
        return 1;
    default:
        return 0;
    }
}
