/* Lowers the records of a kernel to drafts in order: arithmetic and variables here, other
 * families in their files (see lower/state.h). */
#include "lower/lower.h"

#include "lower/control.h"
#include "lower/draft.h"
#include "lower/index.h"
#include "lower/memory.h"
#include "lower/plan.h"
#include "lower/slots.h"

#include <hal/ir_uniform.h>
#include <stdlib.h>
#include <string.h>

static bool lower_prepare(cpu_lower *lower)
{
    const hal_ir_kernel *ir = lower->ir;
    cpu_program *program = lower->program;
    program->items = hal_ir_group_items(ir);
    program->binding_count = ir->binding_count;
    program->memory_count = ir->memory_count;
    lower->n = (program->items + CPU_BLOCK - 1) / CPU_BLOCK * CPU_BLOCK;
    if (program->items == 0 || program->items > CPU_MAX_ITEMS) {
        cpu_unsupported(lower, "a group of this size");
        return false;
    }
    lower->values = calloc(ir->record_count + 1, sizeof(cpu_value));
    if (!lower->values) {
        lower->status = HAL_ERROR_OUT_OF_MEMORY;
        return false;
    }
    cpu_choose_places(lower);
    return cpu_plan_records(lower);
}

static void lower_constant(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    cpu_value *value = &lower->values[record];
    *value = (cpu_value){.kind = CPU_UNIFORM, .type = r->type, .name = CPU_NONE};
    value->base = cpu_known(lower->ir->constants[r->aux]);
}

/* Scalars, group ids and counts: uniform, set by a step. */
static void lower_input(cpu_lower *lower, hal_ir_value record, uint32_t section)
{
    const hal_ir_record *r = &lower->ir->records[record];
    cpu_value *value = &lower->values[record];
    *value = (cpu_value){.kind = CPU_UNIFORM, .type = r->type, .name = CPU_NONE};
    value->base.name = cpu_new_name(lower, r->type, true, false);
    value->base.section = section;
    cpu_draft *draft = cpu_draft_add(lower, section, cpu_action_operation(r->opcode, r->type));
    draft->d = value->base.name;
    draft->n = CPU_BLOCK;
    draft->aux = r->opcode == HAL_IR_SCALAR ? lower->ir->scalars[r->aux].offset : r->aux;
}

/* The index in the group, modulo the width of a subgroup. */
static void lower_lane_id(cpu_lower *lower, hal_ir_value record)
{
    const uint32_t *place = lower->program->place;
    cpu_value all = {.kind = CPU_AFFINE, .type = HAL_TYPE_U32, .base = cpu_known(0)};
    all.factor[0] = cpu_known(1);
    all.factor[1] = cpu_known(place[0]);
    all.factor[2] = cpu_known(place[0] * place[1]);
    uint32_t whole = cpu_new_name(lower, HAL_TYPE_U32, false, false);
    uint32_t name = cpu_new_name(lower, HAL_TYPE_U32, false, false);
    uint32_t access = cpu_access_of_index(lower, &all);
    cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_AFFINE, HAL_TYPE_U32), whole,
                                       CPU_NONE, CPU_NONE);
    draft->access = access;
    cpu_action both = cpu_action_operation(HAL_IR_AND, HAL_TYPE_U32);
    both.form = 2;
    cpu_draft_lanes(lower, both, name, whole,
                    cpu_quantity_name(lower, cpu_known(CPU_BLOCK - 1), HAL_TYPE_U32));
    cpu_set_varying(lower, record, name);
}

/* An operation of up to three operands. On uniform operands it runs on one block, in the earliest
 * section that has them. */
static void lower_operation(cpu_lower *lower, hal_ir_value record, cpu_action action,
                            uint32_t operand_count)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const hal_ir_value operands[3] = {r->a, r->b, r->c};
    uint32_t names[3] = {CPU_NONE, CPU_NONE, CPU_NONE};
    uint32_t form = 0, section = CPU_SECTION_DISPATCH;

    for (uint32_t k = 0; k < operand_count; k++) {
        const cpu_value *value = &lower->values[operands[k]];
        if (value->kind == CPU_UNIFORM) {
            names[k] = cpu_quantity_name(lower, value->base, value->type);
            section = value->base.section > section ? value->base.section : section;
            form |= 1u << k;
        } else {
            names[k] = value->name;
        }
    }
    const bool uniform = form == (1u << operand_count) - 1;
    uint32_t name;
    if (uniform) {
        name = cpu_new_name(lower, r->type, true, false);
        lower->values[record] = (cpu_value){.kind = CPU_UNIFORM, .type = r->type, .name = CPU_NONE};
        lower->values[record].base = (cpu_quantity){.name = name, .section = section};
    } else {
        section = CPU_SECTION_GROUP;
        if (lower->plan[record].variable != CPU_NONE) {
            name = lower->values[lower->plan[record].variable].name;
        } else if (lower->plan[record].store != CPU_NONE) {
            name = cpu_lower_address(lower, lower->plan[record].store);
        } else {
            name = cpu_new_name(lower, r->type, false, false);
        }
        cpu_set_varying(lower, record, name);
    }
    action.form = (uint8_t)(uniform ? 0 : form);
    cpu_draft *draft = cpu_draft_add(lower, section, action);
    draft->d = name;
    draft->a = names[0];
    draft->b = names[1];
    draft->c = names[2];
    draft->n = uniform ? (uint32_t)CPU_BLOCK : lower->n;
}

/* The same bits as another type. An affine index stays affine. */
static void lower_rename(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    cpu_value value = lower->values[r->a];
    if (value.kind == CPU_AFFINE && !hal_type_is_integer(r->type)) {
        value.kind = CPU_VARYING;
    }
    value.type = r->type;
    if (lower->plan[record].variable != CPU_NONE || lower->plan[record].store != CPU_NONE) {
        /* The plan assigns a slot and no step computes the value: a copy. */
        uint32_t name = lower->plan[record].variable != CPU_NONE
                            ? lower->values[lower->plan[record].variable].name
                            : cpu_lower_address(lower, lower->plan[record].store);
        cpu_draft_move(lower, r->type, false, name, cpu_spread(lower, &value));
        value.kind = CPU_VARYING;
        value.name = name;
    }
    lower->values[record] = value;
}

/* A cast between integers of one size is a rename. */
static void lower_cast(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const hal_type from = lower->ir->records[r->a].type;
    if (r->type == from || (hal_type_is_integer(from) && hal_type_is_integer(r->type) &&
                            hal_type_size(from) == hal_type_size(r->type))) {
        lower_rename(lower, record);
        return;
    }
    if (cpu_type(from) == CPU_TYPE_COUNT || cpu_type(r->type) == CPU_TYPE_COUNT) {
        cpu_unsupported(lower, "a cast between these types");
        return;
    }
    cpu_action action = cpu_action_operation(HAL_IR_CAST, from);
    action.result = r->type;
    lower_operation(lower, record, action, 1);
}

/* Vectors are lists of values, without steps. */
static void lower_pack(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    if (r->opcode == HAL_IR_EXTRACT) {
        lower->values[record] = lower->elements[lower->values[r->a].name + (uint32_t)r->imm];
        return;
    }
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(r, operands);
    const uint32_t first = lower->element_count;
    for (uint32_t k = 0; k < count; k++) {
        const cpu_value *operand = &lower->values[operands[k]];
        const uint32_t width = operand->kind == CPU_VECTOR ? r->width / count : 1;
        for (uint32_t element = 0; element < width; element++) {
            lower->elements = cpu_grow(lower, lower->elements, lower->element_count,
                                       &lower->element_capacity, sizeof(cpu_value));
            if (lower->element_count == lower->element_capacity) {
                return;
            }
            lower->elements[lower->element_count++] =
                operand->kind == CPU_VECTOR ? lower->elements[operand->name + element] : *operand;
        }
    }
    lower->values[record] = (cpu_value){.kind = CPU_VECTOR, .type = r->type, .name = first};
}

static void lower_variable(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const bool uniform = lower->plan[record].uniform & HAL_IR_UNIFORM_VALUE;
    const cpu_value *initial = &lower->values[r->a];
    const uint32_t name = cpu_new_name(lower, initial->type, uniform, false);
    cpu_value *value = &lower->values[record];
    *value = (cpu_value){.kind = uniform ? CPU_UNIFORM : CPU_VARYING, .type = initial->type};
    value->name = name;
    value->base = (cpu_quantity){.name = name, .section = CPU_SECTION_GROUP};
    const bool spreads = initial->kind == CPU_UNIFORM;
    const uint32_t from =
        spreads ? cpu_quantity_name(lower, initial->base, initial->type) : initial->name;
    cpu_draft *draft = cpu_draft_move(lower, initial->type, spreads, name, from);
    draft->n = uniform ? (uint32_t)CPU_BLOCK : lower->n;
}

static void lower_get(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const cpu_value *variable = &lower->values[r->a];
    if (lower->plan[record].in_place) {
        cpu_set_varying(lower, record, variable->name);
        lower->values[record].type = variable->type;
        return;
    }
    const bool uniform = variable->kind == CPU_UNIFORM;
    const uint32_t name = cpu_new_name(lower, variable->type, uniform, false);
    cpu_draft *draft = cpu_draft_move(lower, variable->type, false, name, variable->name);
    draft->n = uniform ? (uint32_t)CPU_BLOCK : lower->n;
    cpu_set_varying(lower, record, name);
    if (uniform) {
        lower->values[record].kind = CPU_UNIFORM;
        lower->values[record].base = (cpu_quantity){.name = name, .section = CPU_SECTION_GROUP};
    }
}

/* Inactive work-items keep the old value. */
static void lower_set(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const cpu_value *variable = &lower->values[r->a], *value = &lower->values[r->b];
    if (lower->plan[record].in_place && value->kind == CPU_VARYING &&
        value->name == variable->name) {
        return;
    }
    const bool all =
        lower->mask == CPU_NONE || lower->plan[record].masked == lower->plan[r->a].masked;
    if (value->kind == CPU_UNIFORM && all) {
        uint32_t from = cpu_quantity_name(lower, value->base, value->type);
        cpu_draft *draft = cpu_draft_move(lower, variable->type, true, variable->name, from);
        draft->n = variable->kind == CPU_UNIFORM ? (uint32_t)CPU_BLOCK : lower->n;
        return;
    }
    uint32_t from = cpu_spread(lower, value);
    cpu_draft *draft =
        cpu_draft_lanes(lower, cpu_action_of(all ? CPU_STEP_MOVE : CPU_STEP_BLEND, variable->type),
                        variable->name, from, CPU_NONE);
    if (!all) {
        draft->mask = lower->mask;
        draft->updates = true;
    }
}

static void lower_subgroup(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const uint32_t a = cpu_spread(lower, &lower->values[r->a]);
    const uint32_t name = cpu_new_name(lower, r->type, false, false);
    uint32_t b = CPU_NONE;
    cpu_action action = cpu_action_of(CPU_STEP_EXCHANGE, r->type);
    if (r->opcode == HAL_IR_SHUFFLE) {
        b = cpu_spread(lower, &lower->values[r->b]);
        action.class = CPU_STEP_SHUFFLE;
    } else if (r->opcode == HAL_IR_SUBGROUP_REDUCE) {
        action.class = CPU_STEP_REDUCE;
        action.opcode = (uint16_t)r->aux;
    }
    cpu_draft *draft = cpu_draft_lanes(lower, action, name, a, b);
    draft->aux = (uint32_t)r->imm;
    draft->lanewise = false;
    cpu_set_varying(lower, record, name);
}

static bool is_known(const cpu_value *value)
{
    return value->kind == CPU_UNIFORM && value->base.name == CPU_NONE;
}

/* Comparisons of known integers, which the op library's kernels have in their guards. False for
 * other records. */
static bool lower_known_comparison(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    if (r->opcode < HAL_IR_EQ || r->opcode > HAL_IR_LE) {
        return false;
    }
    const cpu_value *a = &lower->values[r->a], *b = &lower->values[r->b];
    const hal_type type = a->type;
    if (!is_known(a) || !is_known(b) || !hal_type_is_integer(type)) {
        return false;
    }
    const uint64_t x = a->base.bits, y = b->base.bits;
    const bool less = !hal_type_is_signed(type)  ? x < y
                      : hal_type_size(type) == 4 ? (int32_t)(uint32_t)x < (int32_t)(uint32_t)y
                                                 : (int64_t)x < (int64_t)y;
    const bool result = r->opcode == HAL_IR_EQ   ? x == y
                        : r->opcode == HAL_IR_NE ? x != y
                        : r->opcode == HAL_IR_LT ? less
                                                 : less || x == y;
    lower->values[record] = (cpu_value){.kind = CPU_UNIFORM, .type = HAL_TYPE_BOOL};
    lower->values[record].name = CPU_NONE;
    lower->values[record].base = cpu_known(result);
    return true;
}

/* A mask that steps may find to be that of all work-items or of none, and another condition: false
 * for other records. */
static bool lower_masks(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    if (r->opcode != HAL_IR_AND || r->type != HAL_TYPE_BOOL ||
        lower->plan[record].variable != CPU_NONE) {
        return false;
    }
    const cpu_value *a = &lower->values[r->a], *b = &lower->values[r->b];
    const bool a_is_mask = a->kind == CPU_VARYING && lower->names[a->name].view;
    const bool b_is_mask = b->kind == CPU_VARYING && lower->names[b->name].view;
    if (!a_is_mask && !b_is_mask) {
        return false;
    }
    const cpu_value *mask = a_is_mask ? a : b, *other = a_is_mask ? b : a;
    if (is_known(other) && other->base.bits != 0) {
        cpu_set_varying(lower, record, mask->name);
        return true;
    }
    const uint32_t x = mask->name, y = cpu_mask_of(lower, other);
    const uint32_t name = cpu_new_name(lower, HAL_TYPE_BOOL, false, true);
    cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_BOTH, HAL_TYPE_NONE), name, x, y);
    cpu_set_varying(lower, record, name);
    return true;
}

/* Unary and binary operations: affine where possible, else in lanes. */
static void lower_arithmetic(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    if (r->opcode >= HAL_IR_OPCODE_COUNT || r->a == HAL_IR_NONE) {
        cpu_unsupported(lower, "this operation");
        return;
    }
    if (cpu_lower_affine(lower, record) || cpu_lower_bound(lower, record) ||
        lower_known_comparison(lower, record) || lower_masks(lower, record)) {
        return;
    }
    const cpu_action action = cpu_action_operation(r->opcode, lower->ir->records[r->a].type);
    lower_operation(lower, record, action, r->b == HAL_IR_NONE ? 1 : 2);
}

static void lower_record(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    switch (r->opcode) {
    case HAL_IR_CONSTANT:
        lower_constant(lower, record);
        break;
    case HAL_IR_SCALAR:
        lower_input(lower, record, CPU_SECTION_DISPATCH);
        break;
    case HAL_IR_GROUP_ID:
        lower_input(lower, record, CPU_SECTION_GROUP);
        break;
    case HAL_IR_GROUP_COUNT:
        lower_input(lower, record, CPU_SECTION_DISPATCH);
        break;
    case HAL_IR_LOCAL_ID:
        cpu_lower_local_id(lower, record);
        break;
    case HAL_IR_LANE_ID:
        lower_lane_id(lower, record);
        break;
    case HAL_IR_FMA:
    case HAL_IR_SELECT:
        lower_operation(lower, record, cpu_action_operation(r->opcode, r->type), 3);
        break;
    case HAL_IR_CAST:
        lower_cast(lower, record);
        break;
    case HAL_IR_NARROW:
        if (lower->lanes->narrow[r->aux]) {
            lower_operation(lower, record, cpu_action_operation(r->opcode, (hal_type)r->aux), 1);
        } else {
            lower_rename(lower, record);
        }
        break;
    case HAL_IR_BITCAST:
        lower_rename(lower, record);
        break;
    case HAL_IR_PACK:
    case HAL_IR_EXTRACT:
        lower_pack(lower, record);
        break;
    case HAL_IR_LOAD:
        cpu_lower_load(lower, record);
        break;
    case HAL_IR_STORE:
        cpu_lower_store(lower, record);
        break;
    case HAL_IR_ATOMIC:
        cpu_lower_atomic(lower, record);
        break;
    case HAL_IR_ASYNC_COPY:
        cpu_lower_async_copy(lower, record);
        break;
    case HAL_IR_BARRIER: /* work-items run in lock-step */
        lower->fence++;
        break;
    case HAL_IR_ASYNC_COMMIT:
    case HAL_IR_ASYNC_WAIT:
        break;
    case HAL_IR_VAR:
        lower_variable(lower, record);
        break;
    case HAL_IR_GET:
        lower_get(lower, record);
        break;
    case HAL_IR_SET:
        lower_set(lower, record);
        break;
    case HAL_IR_FOR:
    case HAL_IR_IF:
    case HAL_IR_ELSE:
    case HAL_IR_END:
        cpu_lower_control(lower, record);
        break;
    case HAL_IR_SHUFFLE:
    case HAL_IR_SHUFFLE_XOR:
    case HAL_IR_SUBGROUP_REDUCE:
        lower_subgroup(lower, record);
        break;
    default:
        lower_arithmetic(lower, record);
    }
}

hal_status cpu_lower_kernel(cpu_program *program, const hal_ir_kernel *ir, const cpu_lanes *lanes,
                            bool compiles, bool checks, cpu_lower **lower)
{
    cpu_lower *made = calloc(1, sizeof(*made));
    *lower = made;
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    made->ir = ir;
    made->lanes = lanes;
    made->program = program;
    made->compiles = compiles;
    made->checks = checks;
    made->mask = CPU_NONE;
    if (lower_prepare(made)) {
        for (uint32_t i = 0; i < ir->record_count && made->status == HAL_OK; i++) {
            made->record = i;
            lower_record(made, i);
        }
        for (uint32_t section = 0; section < CPU_SECTION_COUNT; section++) {
            cpu_draft *end =
                cpu_draft_add(made, section, cpu_action_of(CPU_STEP_END, HAL_TYPE_NONE));
            end->root = true;
        }
        cpu_assign_slots(made);
    }
    return made->status;
}

void cpu_lower_destroy(cpu_lower *lower)
{
    if (lower) {
        free(lower->plan);
        free(lower->values);
        free(lower->elements);
        free(lower->names);
        free(lower->constants);
        free(lower->accesses);
        free(lower->lists[CPU_SECTION_DISPATCH].drafts);
        free(lower->lists[CPU_SECTION_GROUP].drafts);
        free(lower->blocks);
        free(lower->loops);
        free(lower);
    }
}
