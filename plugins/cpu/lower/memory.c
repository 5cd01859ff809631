/* Loads, stores, atomics and asynchronous copies. A load of memory that is not written while its
 * value is needed is a view: the slot points to the memory. A stored value may be computed
 * there. */
#include "lower/memory.h"

#include "lower/draft.h"
#include "lower/index.h"

uint32_t cpu_mask_of(cpu_lower *lower, const cpu_value *value)
{
    if (value->kind != CPU_UNIFORM) {
        return value->name;
    }
    uint32_t condition = cpu_quantity_name(lower, value->base, HAL_TYPE_BOOL);
    uint32_t name = cpu_new_name(lower, HAL_TYPE_BOOL, false, true);
    cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_CHOOSE, HAL_TYPE_NONE), name, condition,
                    CPU_NONE);
    return name;
}

/* The access of a record; CPU_NONE after a failure. */
static uint32_t make_access(cpu_lower *lower, uint32_t memory, const cpu_value *index,
                            int32_t offset, hal_ir_value guard, uint32_t width)
{
    const uint32_t mask =
        guard == HAL_IR_NONE ? CPU_NONE : cpu_mask_of(lower, &lower->values[guard]);
    const uint32_t number = cpu_access_of_index(lower, index);
    if (number == CPU_NONE) {
        return CPU_NONE;
    }
    cpu_access *access = &lower->accesses[number];
    access->memory = memory;
    access->type = lower->ir->memories[memory].type;
    access->shared = hal_ir_is_shared(lower->ir, memory) ? 1 : 0;
    access->offset = offset;
    access->width = width;
    access->guard = mask;
    return number;
}

static void add_elements(cpu_lower *lower, hal_ir_value record, hal_type type, uint32_t width,
                         const uint32_t *names, bool uniform)
{
    const uint32_t first = lower->element_count;
    for (uint32_t k = 0; k < width; k++) {
        cpu_value value = {.kind = uniform ? CPU_UNIFORM : CPU_VARYING, .type = type};
        value.name = names[k];
        value.base = (cpu_quantity){.name = names[k], .section = CPU_SECTION_GROUP};
        if (width == 1) {
            lower->values[record] = value;
            return;
        }
        lower->elements = cpu_grow(lower, lower->elements, lower->element_count,
                                   &lower->element_capacity, sizeof(cpu_value));
        if (lower->element_count == lower->element_capacity) {
            return;
        }
        lower->elements[lower->element_count++] = value;
    }
    lower->values[record] = (cpu_value){.kind = CPU_VECTOR, .type = type, .name = first};
}

static void load_uniform(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const hal_type memory = lower->ir->memories[r->aux].type;
    uint32_t access =
        make_access(lower, r->aux, &lower->values[r->a], r->imm, HAL_IR_NONE, r->width);
    uint32_t names[8];
    if (access == CPU_NONE) {
        return;
    }
    if (r->b != HAL_IR_NONE) {
        const cpu_value *guard = &lower->values[r->b];
        uint32_t name = cpu_quantity_name(lower, guard->base, HAL_TYPE_BOOL);
        lower->accesses[access].guard = name;
    }
    cpu_lower_check(lower, record, access, true);
    for (uint32_t k = 0; k < r->width; k++) {
        names[k] = cpu_new_name(lower, r->type, true, false);
        lower->accesses[access].values[k] = names[k];
    }
    cpu_draft *draft =
        cpu_draft_add(lower, CPU_SECTION_GROUP, cpu_action_operation(HAL_IR_LOAD, memory));
    draft->access = access;
    draft->lanewise = false;
    add_elements(lower, record, r->type, r->width, names, true);
}

void cpu_lower_load(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const hal_type memory = lower->ir->memories[r->aux].type;
    if (lower->values[r->a].kind == CPU_UNIFORM &&
        (r->b == HAL_IR_NONE || lower->values[r->b].kind == CPU_UNIFORM)) {
        load_uniform(lower, record); /* work-items run in lock-step, so all read the same value */
        return;
    }
    const bool in_place = lower->plan[record].in_place;
    uint32_t access = make_access(lower, r->aux, &lower->values[r->a], r->imm, r->b, r->width);
    uint32_t names[8];
    if (access == CPU_NONE) {
        return;
    }
    cpu_lower_check(lower, record, access, false);
    for (uint32_t k = 0; k < r->width; k++) {
        names[k] = cpu_new_name(lower, r->type, false, in_place);
        lower->accesses[access].values[k] = names[k];
    }
    cpu_draft *draft = cpu_draft_add(
        lower, CPU_SECTION_GROUP, cpu_action_of(in_place ? CPU_STEP_VIEW : CPU_STEP_LOAD, memory));
    draft->access = access;
    draft->lanewise = false;
    draft->mask = lower->mask;
    add_elements(lower, record, r->type, r->width, names, false);
}

/* Adds the step that computes the address of a store. Returns the value's name. */
uint32_t cpu_lower_address(cpu_lower *lower, hal_ir_value store)
{
    const hal_ir_record *r = &lower->ir->records[store];
    uint32_t name = cpu_new_name(lower, lower->ir->records[r->c].type, false, true);
    uint32_t access = make_access(lower, r->aux, &lower->values[r->a], r->imm, r->b, 1);
    if (access == CPU_NONE) {
        return name;
    }
    cpu_lower_check(lower, store, access, false);
    lower->accesses[access].values[0] = name;
    cpu_draft *draft =
        cpu_draft_add(lower, CPU_SECTION_GROUP, cpu_action_of(CPU_STEP_ADDRESS, HAL_TYPE_NONE));
    draft->access = access;
    draft->lanewise = false;
    draft->mask = lower->mask;
    return name;
}

void cpu_lower_store(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const cpu_value *value = &lower->values[r->c];
    const bool vector = value->kind == CPU_VECTOR;
    const uint32_t width = vector ? lower->ir->records[r->c].width : 1;
    uint32_t access = make_access(lower, r->aux, &lower->values[r->a], r->imm, r->b, width);
    if (access == CPU_NONE) {
        return;
    }
    cpu_lower_check(lower, record, access, false);
    for (uint32_t k = 0; k < width; k++) {
        uint32_t name = cpu_spread(lower, vector ? &lower->elements[value->name + k] : value);
        lower->accesses[access].values[k] = name;
    }
    cpu_draft *draft = cpu_draft_add(
        lower, CPU_SECTION_GROUP, cpu_action_of(CPU_STEP_STORE, lower->ir->memories[r->aux].type));
    draft->access = access;
    draft->root = true;
    draft->stores = true;
    draft->lanewise = false;
    draft->mask = lower->mask;
    draft->aux = lower->plan[r->c].store == record && value->kind == CPU_VARYING &&
                 lower->names[value->name].view;
}

void cpu_lower_atomic(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    uint32_t access = make_access(lower, r->aux, &lower->values[r->a], r->imm, r->b, 1);
    if (access == CPU_NONE) {
        return;
    }
    cpu_lower_check(lower, record, access, false);
    uint32_t name = cpu_new_name(lower, r->type, false, false);
    uint32_t operand = cpu_spread(lower, &lower->values[r->c]);
    uint32_t comparand = r->d != HAL_IR_NONE ? cpu_spread(lower, &lower->values[r->d]) : CPU_NONE;
    lower->accesses[access].atomic = (uint8_t)r->flags;
    lower->accesses[access].values[0] = name;
    lower->accesses[access].operand[0] = operand;
    lower->accesses[access].operand[1] = comparand;
    cpu_draft *draft = cpu_draft_add(
        lower, CPU_SECTION_GROUP, cpu_action_of(CPU_STEP_ATOMIC, lower->ir->memories[r->aux].type));
    draft->access = access;
    draft->root = true;
    draft->lanewise = false;
    draft->mask = lower->mask;
    cpu_set_varying(lower, record, name);
}

/* A load and a store; where the guard is false the load returns 0. */
void cpu_lower_async_copy(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const uint32_t binding = (uint32_t)r->imm, width = r->width == 0 ? 1 : r->width;
    const hal_type memory = lower->ir->memories[binding].type;
    uint32_t from = make_access(lower, binding, &lower->values[r->d], 0, r->b, width);
    uint32_t to = make_access(lower, r->aux, &lower->values[r->a], 0, HAL_IR_NONE, width);
    if (from == CPU_NONE || to == CPU_NONE) {
        return;
    }
    cpu_lower_check(lower, record, from, false);
    cpu_lower_check(lower, record, to, false);
    for (uint32_t k = 0; k < width; k++) {
        uint32_t name = cpu_new_name(lower, hal_type_of_value(memory), false, false);
        lower->accesses[from].values[k] = lower->accesses[to].values[k] = name;
    }
    cpu_draft *load = cpu_draft_add(lower, CPU_SECTION_GROUP, cpu_action_of(CPU_STEP_LOAD, memory));
    load->access = from;
    load->lanewise = false;
    load->mask = lower->mask;
    cpu_draft *store =
        cpu_draft_add(lower, CPU_SECTION_GROUP, cpu_action_of(CPU_STEP_STORE, memory));
    store->access = to;
    store->root = true;
    store->stores = true;
    store->lanewise = false;
    store->mask = lower->mask;
}

void cpu_lower_check(cpu_lower *lower, hal_ir_value record, uint32_t access, bool uniform)
{
    if (!lower->checks) {
        return;
    }
    const uint32_t guard = cpu_new_name(lower, HAL_TYPE_BOOL, uniform, !uniform);
    lower->accesses = cpu_grow(lower, lower->accesses, lower->access_count, &lower->access_capacity,
                               sizeof(cpu_access));
    if (lower->access_count == lower->access_capacity) {
        return;
    }
    cpu_action action = cpu_action_of(CPU_STEP_CHECK, HAL_TYPE_NONE);
    action.form = uniform;
    cpu_draft *draft = cpu_draft_lanes(lower, action, guard, CPU_NONE, CPU_NONE);
    draft->access = lower->access_count;
    draft->lanewise = false;
    draft->mask = lower->mask;
    draft->aux = record;
    lower->accesses[lower->access_count++] = lower->accesses[access];
    lower->accesses[access].guard = guard;
}
