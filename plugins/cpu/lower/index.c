/* Uniform quantities, and values that are affine in the ids of a work-item in its group: base +
 * place[0] * factor[0] + place[1] * factor[1] + place[2] * factor[2]. Most indices are affine; a
 * load at one copies rows and needs no index in lanes. */
#include "lower/index.h"

#include "lower/draft.h"

static uint64_t wrap_to_type(hal_type type, uint64_t bits)
{
    return hal_type_size(type) == 4 ? (uint32_t)bits : bits;
}

static bool is_zero(cpu_quantity quantity)
{
    return quantity.name == CPU_NONE && quantity.bits == 0;
}

/* Sets the value of an affine record, and a draft for its lanes, which is removed if unused. */
static void set_affine(cpu_lower *lower, hal_ir_value record, cpu_value value)
{
    value.type = lower->ir->records[record].type;
    value.kind = CPU_AFFINE;
    value.name = cpu_new_name(lower, value.type, false, false);
    lower->values[record] = value;
    const uint32_t access = cpu_access_of_index(lower, &value);
    cpu_draft *draft = cpu_draft_lanes(lower, cpu_action_of(CPU_STEP_AFFINE, value.type),
                                       value.name, CPU_NONE, CPU_NONE);
    draft->access = access;
}

/* Quotient and remainder of the local id in a group of rows, see cpu_choose_places. */
static bool lower_row(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    const uint32_t row = lower->program->place[0];
    if (lower->ir->records[r->a].opcode != HAL_IR_LOCAL_ID ||
        lower->ir->records[r->b].opcode != HAL_IR_CONSTANT ||
        lower->values[r->a].kind != CPU_AFFINE || row == lower->ir->group_size[0]) {
        return false;
    }
    const uint64_t bits = lower->ir->constants[lower->ir->records[r->b].aux];
    const bool quotient = (r->opcode == HAL_IR_DIV && bits == row) ||
                          (r->opcode == HAL_IR_SHR && bits < 32 && UINT64_C(1) << bits == row);
    const bool remainder = (r->opcode == HAL_IR_REM && bits == row) ||
                           (r->opcode == HAL_IR_AND && bits == row - 1 && (row & (row - 1)) == 0);
    if (!quotient && !remainder) {
        return false;
    }
    cpu_value value = {.base = cpu_known(0)};
    value.factor[0] = cpu_known(remainder ? 1 : 0);
    value.factor[1] = cpu_known(quotient ? 1 : 0);
    value.factor[2] = cpu_known(0);
    set_affine(lower, record, value);
    return true;
}

/* x opcode y for ADD, SUB, MUL and SHL of integers: folded where both are known, else a step. */
static cpu_quantity quantities_combine(cpu_lower *lower, uint32_t opcode, hal_type type,
                                       cpu_quantity x, cpu_quantity y)
{
    const bool x_known = x.name == CPU_NONE, y_known = y.name == CPU_NONE;
    const uint32_t width = hal_type_size(type) * 8;
    if (x_known && y_known) {
        uint64_t bits = opcode == HAL_IR_ADD   ? x.bits + y.bits
                        : opcode == HAL_IR_SUB ? x.bits - y.bits
                        : opcode == HAL_IR_MUL ? x.bits * y.bits
                                               : x.bits << (y.bits & (width - 1));
        return cpu_known(wrap_to_type(type, bits));
    }
    if (is_zero(y) && opcode != HAL_IR_MUL) {
        return x;
    }
    if ((is_zero(x) && opcode == HAL_IR_ADD) || (x_known && x.bits == 1 && opcode == HAL_IR_MUL)) {
        return y;
    }
    if (y_known && y.bits == 1 && opcode == HAL_IR_MUL) {
        return x;
    }
    if ((is_zero(x) && opcode != HAL_IR_SUB) || (is_zero(y) && opcode == HAL_IR_MUL)) {
        return cpu_known(0);
    }
    cpu_quantity result = {.name = cpu_new_name(lower, type, true, false),
                           .section = x.section > y.section ? x.section : y.section};
    const uint32_t a = cpu_quantity_name(lower, x, type), b = cpu_quantity_name(lower, y, type);
    cpu_draft *draft = cpu_draft_add(lower, result.section, cpu_action_operation(opcode, type));
    draft->d = result.name;
    draft->a = a;
    draft->b = b;
    draft->n = CPU_BLOCK;
    return result;
}

/* An access with this index, for loads and stores, and for steps that compute the index. A uniform
 * index is affine without factors. */
uint32_t cpu_access_of_index(cpu_lower *lower, const cpu_value *index)
{
    cpu_access access = {.type = index->type,
                         .index_type = index->type,
                         .index = CPU_NONE,
                         .guard = CPU_NONE,
                         .width = 1};
    for (uint32_t k = 0; k < 8; k++) {
        access.values[k] = CPU_NONE;
    }
    access.operand[0] = access.operand[1] = CPU_NONE;
    if (index->kind == CPU_VARYING) {
        access.index = index->name;
        access.base = access.factor[0] = access.factor[1] = access.factor[2] = CPU_NONE;
    } else {
        const uint32_t *place = lower->program->place;
        const bool affine = index->kind == CPU_AFFINE;
        uint64_t distance = 1;
        access.run = affine && lower->program->items > 1;
        access.base = cpu_quantity_name(lower, index->base, index->type);
        for (uint32_t k = 0; k < 3; k++) {
            const cpu_quantity factor = affine ? index->factor[k] : cpu_known(0);
            access.factor[k] = cpu_quantity_name(lower, factor, index->type);
            if (place[k] != 1 && (factor.name != CPU_NONE || factor.bits != distance)) {
                access.run = 0;
            }
            distance *= place[k];
        }
    }
    lower->accesses = cpu_grow(lower, lower->accesses, lower->access_count, &lower->access_capacity,
                               sizeof(cpu_access));
    if (lower->access_count == lower->access_capacity) {
        return CPU_NONE;
    }
    lower->accesses[lower->access_count] = access;
    return lower->access_count++;
}

/* Integer arithmetic whose result is affine; false for other records. */
bool cpu_lower_affine(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    if (r->b == HAL_IR_NONE || !hal_type_is_integer(r->type)) {
        return false;
    }
    if (r->opcode == HAL_IR_DIV || r->opcode == HAL_IR_SHR || r->opcode == HAL_IR_REM ||
        r->opcode == HAL_IR_AND) {
        return lower_row(lower, record);
    }
    if (r->opcode != HAL_IR_ADD && r->opcode != HAL_IR_SUB && r->opcode != HAL_IR_MUL &&
        r->opcode != HAL_IR_SHL) {
        return false;
    }
    const cpu_value *a = &lower->values[r->a], *b = &lower->values[r->b];
    const bool sum = r->opcode == HAL_IR_ADD || r->opcode == HAL_IR_SUB;
    if (a->kind == CPU_UNIFORM && r->opcode == HAL_IR_MUL) {
        const cpu_value *swapped = a;
        a = b;
        b = swapped;
    }
    const bool fits = sum ? (a->kind == CPU_AFFINE || a->kind == CPU_UNIFORM) &&
                                (b->kind == CPU_AFFINE || b->kind == CPU_UNIFORM) &&
                                (a->kind == CPU_AFFINE || b->kind == CPU_AFFINE)
                          : a->kind == CPU_AFFINE && b->kind == CPU_UNIFORM;
    if (!fits) {
        return false;
    }
    cpu_value value = {.base = quantities_combine(lower, r->opcode, r->type, a->base, b->base)};
    for (uint32_t k = 0; k < 3; k++) {
        cpu_quantity x = a->kind == CPU_AFFINE ? a->factor[k] : cpu_known(0);
        cpu_quantity y = !sum ? b->base : b->kind == CPU_AFFINE ? b->factor[k] : cpu_known(0);
        value.factor[k] = quantities_combine(lower, r->opcode, r->type, x, y);
    }
    set_affine(lower, record, value);
    return true;
}

/* An affine index compared with a uniform bound; false for other records. */
bool cpu_lower_bound(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    if (r->opcode != HAL_IR_LT && r->opcode != HAL_IR_LE) {
        return false;
    }
    const cpu_value *a = &lower->values[r->a], *b = &lower->values[r->b];
    const bool within = a->kind == CPU_AFFINE && b->kind == CPU_UNIFORM;
    const bool beyond = a->kind == CPU_UNIFORM && b->kind == CPU_AFFINE;
    if (!within && !beyond) {
        return false;
    }
    const cpu_value *index = within ? a : b, *bound = within ? b : a;
    const uint32_t access = cpu_access_of_index(lower, index);
    const uint32_t limit = cpu_quantity_name(lower, bound->base, bound->type);
    const uint32_t name = cpu_new_name(lower, HAL_TYPE_BOOL, false, true);
    cpu_draft *draft = cpu_draft_lanes(
        lower, cpu_action_of(within ? CPU_STEP_WITHIN : CPU_STEP_BEYOND, index->type), name, limit,
        CPU_NONE);
    draft->access = access;
    draft->aux = r->opcode == HAL_IR_LE;
    cpu_set_varying(lower, record, name);
    return true;
}

void cpu_lower_local_id(cpu_lower *lower, hal_ir_value record)
{
    const hal_ir_record *r = &lower->ir->records[record];
    cpu_value value = {.base = cpu_known(0)};
    if (lower->ir->group_size[r->aux] == 1) {
        value.kind = CPU_UNIFORM;
        value.type = HAL_TYPE_U32;
        lower->values[record] = value;
        return;
    }
    for (uint32_t k = 0; k < 3; k++) {
        value.factor[k] = cpu_known(k == r->aux ? 1 : 0);
    }
    if (lower->program->place[0] != lower->ir->group_size[0]) {
        value.factor[1] = cpu_known(lower->program->place[0]); /* the group is rows, see below */
    }
    set_affine(lower, record, value);
}

/* The extents of the ids: those of the group; or, where the id in a group of one dimension is
 * divided by a constant, rows of that length, so that quotient and remainder are affine too. */
void cpu_choose_places(cpu_lower *lower)
{
    const hal_ir_kernel *ir = lower->ir;
    uint32_t *place = lower->program->place;
    for (uint32_t k = 0; k < 3; k++) {
        place[k] = ir->group_size[k];
    }
    if (place[1] != 1 || place[2] != 1) {
        return;
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *r = &ir->records[i];
        uint64_t row = 0;
        if ((r->opcode != HAL_IR_DIV && r->opcode != HAL_IR_REM && r->opcode != HAL_IR_SHR &&
             r->opcode != HAL_IR_AND) ||
            ir->records[r->a].opcode != HAL_IR_LOCAL_ID || ir->records[r->a].aux != 0 ||
            ir->records[r->b].opcode != HAL_IR_CONSTANT) {
            continue;
        }
        const uint64_t bits = ir->constants[ir->records[r->b].aux];
        row = r->opcode == HAL_IR_SHR   ? UINT64_C(1) << (bits & 31)
              : r->opcode == HAL_IR_AND ? bits + 1
                                        : bits;
        if (row > 1 && row < place[0] && place[0] % row == 0 &&
            (r->opcode != HAL_IR_AND || (row & (row - 1)) == 0)) {
            place[1] = place[0] / (uint32_t)row;
            place[0] = (uint32_t)row;
            return;
        }
    }
}
