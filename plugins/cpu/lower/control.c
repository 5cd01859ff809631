/* Branches and loops. Uniform ones are jumps; else both sides run under masks, and a side or an
 * iteration without active work-items is skipped. So a block always has an active work-item. */
#include "lower/control.h"

#include "lower/draft.h"

#include <hal/ir_uniform.h>

static cpu_block *block_open(cpu_lower *lower, hal_ir_value record)
{
    lower->blocks = cpu_grow(lower, lower->blocks, lower->block_count, &lower->block_capacity,
                             sizeof(cpu_block));
    cpu_block *block = lower->block_count == lower->block_capacity
                           ? &lower->discarded_block
                           : &lower->blocks[lower->block_count++];
    *block = (cpu_block){.record = record,
                         .first = lower->lists[CPU_SECTION_GROUP].count,
                         .skip = CPU_NONE,
                         .outer_mask = lower->mask,
                         .condition = CPU_NONE,
                         .mask = CPU_NONE};
    return block;
}

static uint32_t next_draft(const cpu_lower *lower)
{
    return lower->lists[CPU_SECTION_GROUP].count;
}

static void lower_if(cpu_lower *lower, hal_ir_value record)
{
    const cpu_value *condition = &lower->values[lower->ir->records[record].a];
    cpu_block *block = block_open(lower, record);
    block->masked = condition->kind != CPU_UNIFORM;
    block->skip = next_draft(lower);
    if (!block->masked) {
        uint32_t name = cpu_quantity_name(lower, condition->base, HAL_TYPE_BOOL);
        cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_BRANCH, HAL_TYPE_NONE),
                                           CPU_NONE, name, CPU_NONE);
        draft->root = true;
        return;
    }
    block->mask = cpu_new_name(lower, HAL_TYPE_BOOL, false, true);
    cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_IF, HAL_TYPE_NONE),
                                       block->mask, condition->name, CPU_NONE);
    draft->mask = lower->mask;
    draft->root = true;
    lower->mask = block->mask;
}

/* Sets the target of a jump to the next draft. */
static void jump_land(cpu_lower *lower, uint32_t draft)
{
    if (draft != CPU_NONE && draft < next_draft(lower)) {
        lower->lists[CPU_SECTION_GROUP].drafts[draft].target = next_draft(lower);
    }
}

static void lower_else(cpu_lower *lower)
{
    cpu_block *block = &lower->blocks[lower->block_count - 1];
    if (!block->masked) {
        const uint32_t skip = next_draft(lower);
        cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_JUMP, HAL_TYPE_NONE),
                                           CPU_NONE, CPU_NONE, CPU_NONE);
        draft->root = true;
        jump_land(lower, block->skip);
        block->skip = skip;
        return;
    }
    jump_land(lower, block->skip);
    block->skip = next_draft(lower);
    uint32_t mask = cpu_new_name(lower, HAL_TYPE_BOOL, false, true);
    cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_ELSE, HAL_TYPE_NONE), mask,
                                       block->mask, CPU_NONE);
    draft->mask = block->outer_mask;
    draft->root = true;
    lower->mask = mask;
}

/* An operation in lanes on values that may be uniform. */
static uint32_t lower_binary(cpu_lower *lower, uint32_t opcode, hal_type type, hal_type result,
                             uint32_t name, const cpu_value *x, const cpu_value *y)
{
    const uint32_t a =
        x->kind == CPU_UNIFORM ? cpu_quantity_name(lower, x->base, x->type) : x->name;
    const uint32_t b =
        y->kind == CPU_UNIFORM ? cpu_quantity_name(lower, y->base, y->type) : y->name;
    cpu_action action = cpu_action_operation(opcode, type);
    action.form = x->kind == CPU_UNIFORM ? 1 : y->kind == CPU_UNIFORM ? 2 : 0;
    if (name == CPU_NONE) {
        name = cpu_new_name(lower, result, false, false);
    }
    cpu_draft_lanes(lower, action, name, a, b);
    return name;
}

/* A work-item continues while limit - counter > step; unsigned, the difference cannot overflow,
 * since the counter is below the limit. */
static void end_masked_for(cpu_lower *lower, const cpu_block *block)
{
    const hal_ir_record *r = &lower->ir->records[block->record];
    const cpu_value *counter = &lower->values[block->record];
    const cpu_value *step = &lower->values[r->c];
    cpu_value rest = {.kind = CPU_VARYING, .type = r->type};
    rest.name =
        lower_binary(lower, HAL_IR_SUB, r->type, r->type, CPU_NONE, &lower->values[r->b], counter);
    const uint32_t again =
        lower_binary(lower, HAL_IR_LT, HAL_TYPE_U32, HAL_TYPE_BOOL, CPU_NONE, step, &rest);
    lower_binary(lower, HAL_IR_ADD, r->type, r->type, counter->name, counter, step);
    cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_MASK_NEXT, HAL_TYPE_NONE),
                                       block->mask, again, CPU_NONE);
    draft->root = draft->updates = true;
    draft->target = block->first;
}

static void lower_end(cpu_lower *lower)
{
    const cpu_block block = lower->blocks[lower->block_count - 1];
    const hal_ir_record *r = &lower->ir->records[block.record];
    if (r->opcode == HAL_IR_FOR) {
        if (block.masked) {
            end_masked_for(lower, &block);
        } else {
            const uint32_t limit = cpu_quantity_name(lower, lower->values[r->b].base, r->type);
            const uint32_t step = cpu_quantity_name(lower, lower->values[r->c].base, r->type);
            cpu_draft *draft =
                cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_LOOP_NEXT, HAL_TYPE_NONE),
                                lower->values[block.record].base.name, CPU_NONE, limit);
            draft->c = step;
            draft->aux = r->type;
            draft->n = CPU_BLOCK;
            draft->root = draft->updates = true;
            draft->target = block.first;
        }
        lower->loops = cpu_grow(lower, lower->loops, lower->loop_count, &lower->loop_capacity,
                                sizeof(cpu_loop));
        if (lower->loop_count < lower->loop_capacity) {
            lower->loops[lower->loop_count++] =
                (cpu_loop){.first = block.first, .last = next_draft(lower) - 1, .outer = CPU_NONE};
        }
    }
    jump_land(lower, block.skip);
    lower->mask = block.outer_mask;
    lower->block_count--;
}

static void lower_for(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const uint32_t start = cpu_quantity_name(lower, lower->values[r->a].base, r->type);
    const uint32_t limit = cpu_quantity_name(lower, lower->values[r->b].base, r->type);
    cpu_block *block = block_open(lower, record);
    const uint32_t name = cpu_new_name(lower, r->type, true, false);
    block->skip = next_draft(lower);
    cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_LOOP_BEGIN, HAL_TYPE_NONE),
                                       name, start, limit);
    draft->aux = r->type;
    draft->n = CPU_BLOCK;
    draft->root = true;
    draft->lanewise = false;
    block->first = next_draft(lower);
    cpu_value *value = &lower->values[record];
    *value = (cpu_value){.kind = CPU_UNIFORM, .type = r->type, .name = CPU_NONE};
    value->base = (cpu_quantity){.name = name, .section = CPU_SECTION_GROUP};
}

static void lower_masked_for(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const cpu_value *start = &lower->values[r->a];
    cpu_block *block = block_open(lower, record);
    block->masked = true;
    block->condition = cpu_new_name(lower, r->type, false, false);
    block->mask = cpu_new_name(lower, HAL_TYPE_BOOL, false, false);
    const uint32_t counter = block->condition, mask = block->mask;

    const bool uniform = start->kind == CPU_UNIFORM;
    const uint32_t from = uniform ? cpu_quantity_name(lower, start->base, r->type) : start->name;
    cpu_draft_move(lower, r->type, uniform, counter, from);
    cpu_set_varying(lower, record, counter);
    const uint32_t inside = lower_binary(lower, HAL_IR_LT, r->type, HAL_TYPE_BOOL, CPU_NONE,
                                         &lower->values[record], &lower->values[r->b]);
    block->skip = next_draft(lower);
    cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_MASK_BEGIN, HAL_TYPE_NONE),
                                       mask, inside, CPU_NONE);
    draft->mask = lower->mask;
    draft->root = true;
    block->first = next_draft(lower);
    lower->mask = mask;
}

void cpu_lower_control(cpu_lower *lower, hal_ir_value record)
{
    const uint32_t opcode = lower->ir->records[record].opcode;
    if (opcode == HAL_IR_IF) {
        lower_if(lower, record);
    } else if (opcode == HAL_IR_ELSE) {
        lower_else(lower);
    } else if (opcode == HAL_IR_END) {
        lower_end(lower);
    } else if (lower->plan[record].uniform & HAL_IR_UNIFORM_VALUE) {
        lower_for(lower, record);
    } else {
        lower_masked_for(lower, record);
    }
}
