/* Looks up the functions of steps. */
#include "lanes/action.h"

cpu_action cpu_action_operation(uint32_t opcode, hal_type type)
{
    cpu_action action = {
        .class = CPU_STEP_OPERATION, .opcode = (uint16_t)opcode, .type = type, .result = type};
    if (opcode >= HAL_IR_EQ && opcode <= HAL_IR_LE) {
        action.result = HAL_TYPE_BOOL;
    } else if (opcode == HAL_IR_NARROW || opcode == HAL_IR_LOAD) {
        action.result = hal_type_of_value(type);
    }
    return action;
}

static cpu_run *operation_find(const cpu_lanes *lanes, const cpu_action *action, uint32_t type)
{
    switch (action->opcode) {
    case HAL_IR_NARROW:
        return lanes->narrow[action->type];
    case HAL_IR_LOAD:
        return lanes->load_uniform[action->type];
    case HAL_IR_GROUP_ID:
        return lanes->group_id;
    case HAL_IR_GROUP_COUNT:
        return lanes->group_count;
    default:
        break;
    }
    if (type == CPU_TYPE_COUNT || action->opcode >= HAL_IR_OPCODE_COUNT) {
        return NULL;
    }
    switch (action->opcode) {
    case HAL_IR_SCALAR:
        return lanes->scalar[type];
    case HAL_IR_CAST: {
        const uint32_t result = cpu_type(action->result);
        return result == CPU_TYPE_COUNT ? NULL : lanes->cast[type][result];
    }
    case HAL_IR_FMA:
    case HAL_IR_SELECT:
        return lanes->ternary[action->opcode == HAL_IR_SELECT][type][action->form];
    default:
        return lanes->unary[action->opcode][type]
                   ? lanes->unary[action->opcode][type]
                   : lanes->binary[action->opcode][type][action->form];
    }
}

/* Steps without a type, or with one of memory. */
static cpu_run *plain_find(const cpu_lanes *lanes, const cpu_action *action)
{
    cpu_run *const controls[CPU_STEP_CLASS_COUNT] = {
        [CPU_STEP_VIEW] = lanes->view,
        [CPU_STEP_ADDRESS] = lanes->address,
        [CPU_STEP_CHECK] = action->form == 1 ? lanes->check_uniform : lanes->check,
        [CPU_STEP_BOTH] = lanes->both,
        [CPU_STEP_CHOOSE] = lanes->choose,
        [CPU_STEP_BRANCH] = lanes->branch,
        [CPU_STEP_JUMP] = lanes->jump,
        [CPU_STEP_IF] = lanes->if_masked,
        [CPU_STEP_ELSE] = lanes->else_masked,
        [CPU_STEP_LOOP_BEGIN] = lanes->loop_begin,
        [CPU_STEP_LOOP_NEXT] = lanes->loop_next,
        [CPU_STEP_MASK_BEGIN] = lanes->mask_begin,
        [CPU_STEP_MASK_NEXT] = lanes->mask_next,
        [CPU_STEP_END] = lanes->end};
    switch (action->class) {
    case CPU_STEP_LOAD:
        return lanes->load[action->type];
    case CPU_STEP_STORE:
        return lanes->store[action->type];
    case CPU_STEP_ATOMIC:
        return lanes->atomic[action->type];
    default:
        return controls[action->class];
    }
}

cpu_run *cpu_lanes_find(const cpu_lanes *lanes, const cpu_action *action)
{
    const uint32_t type = cpu_type(action->type);
    if (action->class == CPU_STEP_OPERATION) {
        return operation_find(lanes, action, type);
    }
    cpu_run *plain = plain_find(lanes, action);
    if (plain || type == CPU_TYPE_COUNT) {
        return plain;
    }
    switch (action->class) {
    case CPU_STEP_MOVE:
        return action->form == 1 ? lanes->spread[type] : lanes->copy[type];
    case CPU_STEP_BLEND:
        return lanes->blend[type];
    case CPU_STEP_AFFINE:
        return lanes->affine[type];
    case CPU_STEP_WITHIN:
        return lanes->within[type];
    case CPU_STEP_BEYOND:
        return lanes->beyond[type];
    case CPU_STEP_EXCHANGE:
        return lanes->shuffle_xor[type];
    case CPU_STEP_SHUFFLE:
        return lanes->shuffle[type];
    case CPU_STEP_REDUCE:
        return action->opcode < HAL_IR_REDUCE_COUNT ? lanes->reduce[action->opcode][type] : NULL;
    default:
        return NULL;
    }
}
