/* Analyses a kernel before it is lowered: uniformity, blocks, the last use of each value, and
 * copies to avoid: a value is computed in the slot of its variable or in the memory of its store,
 * and a variable or memory is read in place. */
#include "lower/plan.h"

#include <hal/ir_uniform.h>
#include <stdlib.h>

static bool find_uniformity(cpu_lower *lower)
{
    const uint32_t count = lower->ir->record_count;
    uint32_t *scratch = malloc((HAL_IR_UNIFORM_SCRATCH(count) + 1) * sizeof(uint32_t));
    uint8_t *uniform = malloc(count + 1);
    bool found = scratch && uniform != NULL;
    if (found) {
        hal_ir_uniformity(lower->ir, scratch, uniform);
        for (uint32_t i = 0; i < count; i++) {
            lower->plan[i].uniform = uniform[i];
        }
    }
    free(scratch);
    free(uniform);
    return found;
}

/* Whether work-items may diverge at an opener. */
static bool is_divergent(const cpu_lower *lower, uint32_t opener)
{
    const hal_ir_record *record = &lower->ir->records[opener];
    uint32_t decides = opener;
    if (record->opcode == HAL_IR_ELSE) {
        decides = lower->plan[opener].end; /* find_blocks leaves the IF there */
        record = &lower->ir->records[decides];
    }
    if (record->opcode == HAL_IR_IF) {
        decides = record->a;
    }
    return !(lower->plan[decides].uniform & HAL_IR_UNIFORM_VALUE);
}

static void find_blocks(cpu_lower *lower)
{
    uint32_t open = CPU_NONE;
    for (uint32_t i = 0; i < lower->ir->record_count; i++) {
        const uint32_t opcode = lower->ir->records[i].opcode;
        cpu_plan *plan = &lower->plan[i];
        if (hal_ir_closes_block(opcode)) {
            const uint32_t closed = open;
            open = lower->plan[open].block;
            if (opcode == HAL_IR_ELSE) {
                plan->end = closed;
            } else {
                lower->plan[closed].end = i;
            }
        }
        plan->block = open;
        plan->masked = CPU_NONE;
        if (open != CPU_NONE) {
            plan->masked = is_divergent(lower, open) ? open : lower->plan[open].masked;
        }
        if (hal_ir_opens_block(opcode)) {
            open = i;
        }
    }
}

/* Records whose result may be the slot of their operand. */
static bool renames(const cpu_lower *lower, const hal_ir_record *record)
{
    switch (record->opcode) {
    case HAL_IR_PACK:
    case HAL_IR_EXTRACT:
    case HAL_IR_BITCAST:
    case HAL_IR_NARROW:
        return true;
    case HAL_IR_CAST:
        return hal_type_is_integer(record->type) &&
               hal_type_size(record->type) == hal_type_size(lower->ir->records[record->a].type);
    default:
        return false;
    }
}

/* A use in a loop of a value from outside lasts to the end of the loop. */
static uint32_t use_lasts(const cpu_lower *lower, uint32_t use, uint32_t definition)
{
    uint32_t last = use;
    uint32_t opener = lower->plan[use].block;
    while (opener != CPU_NONE && opener > definition) {
        if (lower->ir->records[opener].opcode == HAL_IR_FOR && lower->plan[opener].end > last) {
            last = lower->plan[opener].end;
        }
        opener = lower->plan[opener].block;
    }
    return last;
}

/* Backwards, so that the uses of a rename are known at its operand. A loop needs its bounds
 * until it ends. */
static void find_last_uses(cpu_lower *lower)
{
    for (uint32_t i = lower->ir->record_count; i-- > 0;) {
        const hal_ir_record *record = &lower->ir->records[i];
        hal_ir_value operands[4];
        uint32_t count = hal_ir_operands(record, operands);
        const uint32_t use = record->opcode == HAL_IR_FOR ? lower->plan[i].end
                             : renames(lower, record)     ? lower->plan[i].last_use
                                                          : i;
        for (uint32_t k = 0; k < count; k++) {
            cpu_plan *plan = &lower->plan[operands[k]];
            uint32_t last = use_lasts(lower, i, operands[k]);
            last = use > last ? use : last;
            plan->last_use = last > plan->last_use ? last : plan->last_use;
        }
    }
}

/* Adds a record to the front of a list. */
static void list_push(cpu_lower *lower, uint32_t record, uint32_t *first)
{
    lower->plan[record].next = *first;
    if (*first != CPU_NONE) {
        lower->plan[*first].previous = record;
    }
    *first = record;
}

static bool is_varying(const cpu_lower *lower, uint32_t record)
{
    return !(lower->plan[record].uniform & HAL_IR_UNIFORM_VALUE);
}

/* Operations whose lanes read no other lanes. */
static bool is_lanewise(uint32_t opcode)
{
    return (opcode >= HAL_IR_ADD && opcode <= HAL_IR_SELECT) || opcode == HAL_IR_CAST ||
           hal_ir_is_math(opcode);
}

/* The value of a SET can be computed in the variable's slot when all work-items of the variable are
 * active, the variable is not read in between, and it is not set while the value is needed. */
static bool set_in_place(const cpu_lower *lower, uint32_t set)
{
    const hal_ir_record *record = &lower->ir->records[set];
    const uint32_t variable = record->a, value = record->b;
    const cpu_plan *plan = &lower->plan[value];
    const uint32_t before = lower->plan[set].previous;
    if (!is_varying(lower, variable) || !is_varying(lower, value) || plan->variable != CPU_NONE ||
        !is_lanewise(lower->ir->records[value].opcode) || value < variable || before > value ||
        plan->block != lower->plan[set].block ||
        lower->plan[set].masked != lower->plan[variable].masked) {
        return false;
    }
    for (uint32_t other = lower->plan[set].next; other != CPU_NONE;
         other = lower->plan[other].next) {
        if (lower->ir->records[other].opcode == HAL_IR_SET) {
            /* The value may be computed in place as well: then the SET takes effect there. */
            const uint32_t made = lower->ir->records[other].b;
            return (made > set ? made : other) > plan->last_use;
        }
    }
    return true;
}

/* The record at which a SET takes effect: that of its value, if computed in place. */
static uint32_t set_at(const cpu_lower *lower, uint32_t set)
{
    return lower->plan[set].in_place ? lower->ir->records[set].b : set;
}

/* A GET needs no copy when nothing changes the variable until its value has been used. Of the SETs
 * that follow only the first can take effect before its place, and none before that one. */
static bool get_in_place(const cpu_lower *lower, uint32_t get)
{
    if (!is_varying(lower, lower->ir->records[get].a)) {
        return false;
    }
    for (uint32_t other = lower->plan[get].next; other != CPU_NONE;
         other = lower->plan[other].next) {
        if (lower->ir->records[other].opcode == HAL_IR_SET) {
            return set_at(lower, other) >= lower->plan[get].last_use;
        }
    }
    return true;
}

static void plan_variables(cpu_lower *lower)
{
    const hal_ir_record *records = lower->ir->records;
    /* In rising order, since built from the end; a VAR begins its own. */
    for (uint32_t i = lower->ir->record_count; i-- > 0;) {
        if (records[i].opcode == HAL_IR_GET || records[i].opcode == HAL_IR_SET) {
            list_push(lower, i, &lower->plan[records[i].a].next);
        } else if (records[i].opcode == HAL_IR_VAR && lower->plan[i].next != CPU_NONE) {
            lower->plan[lower->plan[i].next].previous = i;
        }
    }
    for (uint32_t i = 0; i < lower->ir->record_count; i++) {
        if (records[i].opcode == HAL_IR_SET && set_in_place(lower, i)) {
            lower->plan[i].in_place = true;
            lower->plan[records[i].b].variable = records[i].a;
        }
    }
    for (uint32_t i = 0; i < lower->ir->record_count; i++) {
        if (records[i].opcode == HAL_IR_GET) {
            lower->plan[i].in_place = get_in_place(lower, i);
        }
    }
}

/* Asynchronous copies read a binding and the memory that they are chained to. */
static bool copies_written_binding(const hal_ir_kernel *ir)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (ir->records[i].opcode == HAL_IR_ASYNC_COPY &&
            ir->memories[ir->records[i].imm].access != HAL_ACCESS_READ) {
            return true;
        }
    }
    return false;
}

static bool touches_memory(uint32_t opcode)
{
    return opcode == HAL_IR_LOAD || opcode == HAL_IR_STORE || opcode == HAL_IR_ATOMIC ||
           opcode == HAL_IR_ASYNC_COPY;
}

/* These types have the same format in memory and in lanes. */
static bool is_plain(hal_type type)
{
    return hal_type_of_value(type) == type && type != HAL_TYPE_BOOL;
}

/* Whether the memory of an access is written after it, up to another record. */
static bool written_until(const cpu_lower *lower, uint32_t access, uint32_t until)
{
    for (uint32_t other = lower->plan[access].next; other != CPU_NONE && other <= until;
         other = lower->plan[other].next) {
        if (lower->ir->records[other].opcode != HAL_IR_LOAD) {
            return true;
        }
    }
    return false;
}

/* What a store writes can be computed there when its address is known before, nothing else touches
 * the memory in between, no view of it is still needed (`viewed`: the last record that needs one),
 * and it stays until its last use. */
static bool store_in_place(const cpu_lower *lower, uint32_t store, uint32_t viewed)
{
    const hal_ir_record *record = &lower->ir->records[store];
    const uint32_t value = record->c, before = lower->plan[store].previous;
    const cpu_plan *plan = &lower->plan[value];
    if (!is_varying(lower, value) || plan->variable != CPU_NONE || plan->store != CPU_NONE ||
        !is_lanewise(lower->ir->records[value].opcode) || plan->block != lower->plan[store].block ||
        record->a > value || (record->b != HAL_IR_NONE && record->b > value) ||
        (before != CPU_NONE && before > value) || viewed >= value) {
        return false;
    }
    return !written_until(lower, store, plan->last_use);
}

/* Loads that are views, then stores in place, whose values are views too; `memory` has one number
 * for each memory. */
static void plan_accesses(cpu_lower *lower, uint32_t *memory)
{
    const hal_ir_kernel *ir = lower->ir;
    const bool stay = copies_written_binding(ir);
    /* Vectors would reach beyond the last work-item's element. */
    const bool whole = lower->program->items % CPU_BLOCK == 0;
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        memory[i] = CPU_NONE;
    }
    for (uint32_t i = ir->record_count; i-- > 0;) {
        if (touches_memory(ir->records[i].opcode)) {
            list_push(lower, i, &memory[ir->records[i].aux]);
        }
    }
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        memory[i] = 0; /* last record that needs the view */
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        if (record->opcode != HAL_IR_LOAD && record->opcode != HAL_IR_STORE) {
            continue;
        }
        uint32_t *viewed = &memory[record->aux];
        const bool plain = whole && is_plain(ir->memories[record->aux].type);
        const uint32_t last = lower->plan[i].last_use;
        if (record->opcode == HAL_IR_LOAD && plain && record->width == 1 && is_varying(lower, i) &&
            !written_until(lower, i, last)) {
            lower->plan[i].in_place = true;
            *viewed = last > *viewed ? last : *viewed;
        }
        if (record->opcode == HAL_IR_STORE && plain && ir->records[record->c].width == 1 && !stay &&
            store_in_place(lower, i, *viewed)) {
            const uint32_t value_last = lower->plan[record->c].last_use;
            lower->plan[record->c].store = i;
            *viewed = value_last > *viewed ? value_last : *viewed;
        }
    }
}

static void plan_memory(cpu_lower *lower)
{
    uint32_t *memory = malloc((lower->ir->memory_count + 1) * sizeof(uint32_t));
    if (memory) {
        plan_accesses(lower, memory);
    } /* else every copy stays */
    free(memory);
}

/* False, with lower->status set, without host memory. */
bool cpu_plan_records(cpu_lower *lower)
{
    const uint32_t count = lower->ir->record_count;
    lower->plan = calloc(count + 1, sizeof(cpu_plan));
    if (!lower->plan || !find_uniformity(lower)) {
        lower->status = HAL_ERROR_OUT_OF_MEMORY;
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        cpu_plan *plan = &lower->plan[i];
        plan->block = plan->masked = plan->variable = plan->store = CPU_NONE;
        plan->next = plan->previous = CPU_NONE;
        plan->last_use = i;
    }
    find_blocks(lower);
    find_last_uses(lower);
    plan_variables(lower);
    plan_memory(lower);
    return true;
}
