/* Row programs, see rows_program.h. */
#include "rows_program.h"

#include "tensor/expression.h"

#include <string.h>

void ops_row_begin(ops_row_program *program, uint32_t input_count)
{
    program->input_count = program->value_count = input_count;
    program->operand_count = program->output_count = 0;
    program->overflowed = input_count >= OPS_ROW_VALUES;
    program->costly = OPS_ROW_NONE;
    program->exponential = OPS_ROW_EXP_FULL;
}

static uint8_t program_add(ops_row_program *p, const ops_row_step *step, const uint8_t *operands,
                           uint32_t count)
{
    if (p->overflowed || p->value_count == OPS_ROW_VALUES ||
        p->operand_count + count > OPS_ROW_OPERANDS) {
        p->overflowed = 1;
        return 0;
    }
    ops_row_step *made = &p->steps[p->value_count - p->input_count];
    *made = *step;
    made->first_operand = (uint16_t)p->operand_count;
    made->operand_count = (uint16_t)count;
    memcpy(p->operands + p->operand_count, operands, count);
    p->operand_count += count;
    return (uint8_t)p->value_count++;
}

uint8_t ops_row_map(ops_row_program *program, ops_row_function function, const void *user,
                    const uint64_t key[2], const uint8_t *operands, uint32_t count)
{
    const ops_row_step step = {
        .kind = OPS_ROW_MAP, .function = function, .user = user, .key = {key[0], key[1]}};
    return program_add(program, &step, operands, count);
}

uint8_t ops_row_reduce(ops_row_program *program, uint32_t kind, hal_type type,
                       const uint8_t *operands, uint32_t count)
{
    const ops_row_step step = {.kind = (uint8_t)kind, .type = type};
    return program_add(program, &step, operands, count);
}

uint8_t ops_row_place(ops_row_program *program, uint8_t reduction)
{
    const ops_row_step step = {.kind = OPS_ROW_PLACE};
    return program_add(program, &step, &reduction, 1);
}

void ops_row_output(ops_row_program *program, uint8_t value)
{
    program->overflowed |= program->output_count == OPS_ROW_OUTPUTS;
    if (!program->overflowed) {
        program->outputs[program->output_count++] = value;
    }
}

void ops_row_keep(ops_row_program *program, uint8_t value, hal_type type)
{
    program->costly = value;
    program->costly_type = type;
}

static hal_ir_value unary_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    const uint32_t opcode = (uint32_t)(uintptr_t)user;
    return hal_ir_is_math(opcode) ? hal_ir_math(b, opcode, in[0], HAL_IR_NONE, 0)
                                  : hal_ir_unary(b, opcode, in[0]);
}

static hal_ir_value binary_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    return hal_ir_binary(b, (uint32_t)(uintptr_t)user, in[0], in[1]);
}

uint8_t ops_row_opcode(ops_row_program *program, uint32_t opcode, uint8_t x, uint8_t y)
{
    const uint8_t operands[2] = {x, y};
    const bool is_unary = y == OPS_ROW_NONE;
    const uint64_t key[2] = {is_unary ? OPS_ROW_KEY_UNARY : OPS_ROW_KEY_BINARY, opcode};
    return ops_row_map(program, is_unary ? unary_emit : binary_emit,
                       (const void *)(uintptr_t)opcode, key, operands, is_unary ? 1 : 2);
}

static hal_ir_value expression_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    const ops_expression *expression = user;
    hal_ir_value result = HAL_IR_NONE;
    hal_ir_splice(b, expression->fragment, in, expression->input_count, &result, 1);
    return result;
}

uint8_t ops_row_expression(ops_row_program *program, const ops_expression *expression,
                           const uint8_t *operands, uint32_t count)
{
    return ops_row_map(program, expression_emit, expression, expression->hash, operands, count);
}

/* A row of nothing but the least value keeps the place of the neutral state: its first element is
 * the greatest. */
static hal_ir_value index_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    hal_ir_value none = hal_ir_eq(b, in[0], hal_ir_u32(b, UINT32_MAX));
    hal_ir_value place = hal_ir_select(b, none, hal_ir_u32(b, 0), in[0]);
    return hal_ir_cast(b, (hal_type)(uintptr_t)user, place);
}

uint8_t ops_row_index(ops_row_program *program, hal_type type, uint8_t place)
{
    const uint64_t key[2] = {OPS_ROW_KEY_INDEX, type};
    return ops_row_map(program, index_emit, (const void *)(uintptr_t)type, key, &place, 1);
}

bool ops_row_program_has(const ops_row_program *program, uint32_t kind)
{
    for (uint32_t i = 0; i < program->value_count - program->input_count; i++) {
        if (program->steps[i].kind == kind) {
            return true;
        }
    }
    return false;
}

bool ops_row_program_finds_place(const ops_row_program *program)
{
    return ops_row_program_has(program, OPS_REDUCE_ARGMAX) ||
           ops_row_program_has(program, OPS_REDUCE_ARGMIN);
}

void ops_row_program_append_key(const ops_row_program *program, ops_cache_key *key)
{
    const uint32_t counts[5] = {program->input_count, program->value_count, program->operand_count,
                                program->output_count, program->exponential};
    ops_cache_key_append(key, counts, sizeof counts);
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        const uint64_t form[3] = {step->kind | (uint64_t)step->type << 8 |
                                      (uint64_t)step->operand_count << 16,
                                  step->key[0], step->key[1]};
        ops_cache_key_append(key, form, sizeof form);
    }
    ops_cache_key_append(key, program->operands, program->operand_count);
    ops_cache_key_append(key, program->outputs, program->output_count);
}

void ops_row_order(const ops_row_program *program, uint8_t *is_element, uint8_t *ready)
{
    memset(ready, 0, program->value_count);
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        is_element[v] = 0;
        for (uint32_t i = 0; i < step->operand_count; i++) {
            const uint8_t operand = program->operands[step->first_operand + i];
            ready[v] = ready[operand] > ready[v] ? ready[operand] : ready[v];
            is_element[v] |= step->kind == OPS_ROW_MAP && is_element[operand];
        }
        ready[v] += ops_row_is_reduction(step);
    }
}

void ops_row_needs(const ops_row_program *program, const ops_row_schedule *schedule, uint32_t phase,
                   const ops_axis *axis, uint32_t stored, uint8_t *needed)
{
    memset(needed, 0, program->value_count);
    for (uint32_t i = 0; phase == schedule->last && i < program->output_count; i++) {
        needed[program->outputs[i]] |= axis->step[program->input_count + i] != OPS_INNER_ZERO;
    }
    for (uint32_t v = program->value_count; v-- > 0;) {
        const ops_row_step *step = v < program->input_count ? NULL : ops_row_step_of(program, v);
        const bool is_reduced =
            step && ops_row_is_reduction(step) && schedule->ready[v] == phase + 1;
        needed[v] = needed[v] && schedule->is_element[v];
        const bool is_loaded = v + 1 == stored && phase > schedule->first_need[v];
        const bool is_computed = (needed[v] && !is_loaded) || is_reduced;
        for (uint32_t i = 0; step && is_computed && i < step->operand_count; i++) {
            needed[program->operands[step->first_operand + i]] = 1;
        }
    }
}

/* The most values of elements that are computed up to a phase and used after it. */
static uint32_t schedule_live(const ops_row_program *program, const ops_row_schedule *schedule)
{
    uint8_t last_use[OPS_ROW_VALUES] = {0};
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        uint32_t use =
            ops_row_is_reduction(step) ? schedule->ready[v] - 1u : schedule->first_need[v];
        for (uint32_t i = 0; use != OPS_ROW_NEVER && i < step->operand_count; i++) {
            uint8_t *last = &last_use[program->operands[step->first_operand + i]];
            *last = use > *last ? (uint8_t)use : *last;
        }
    }
    for (uint32_t i = 0; i < program->output_count; i++) {
        last_use[program->outputs[i]] = (uint8_t)schedule->last;
    }
    uint32_t most = 1;
    for (uint32_t phase = 0; phase < schedule->last; phase++) {
        uint32_t live = 0;
        for (uint32_t v = 0; v < program->value_count; v++) {
            live += schedule->first_need[v] <= phase && last_use[v] > phase;
        }
        most = live > most ? live : most;
    }
    return most;
}

void ops_row_schedule_make(const ops_row_program *program, const ops_axis *axis,
                           ops_row_schedule *schedule)
{
    uint8_t needed[OPS_ROW_VALUES];
    schedule->last = 0;
    schedule->stores_elements = 0;
    for (uint32_t v = 0; v < program->input_count; v++) {
        schedule->is_element[v] = axis->step[v] != OPS_INNER_ZERO;
    }
    memset(schedule->first_need, OPS_ROW_NEVER, program->value_count);
    ops_row_order(program, schedule->is_element, schedule->ready);
    for (uint32_t i = 0; i < program->output_count; i++) {
        const uint8_t ready = schedule->ready[program->outputs[i]];
        schedule->last = ready > schedule->last ? ready : schedule->last;
        schedule->stores_elements |= axis->step[program->input_count + i] != OPS_INNER_ZERO;
    }
    for (uint32_t phase = 0; phase <= schedule->last; phase++) {
        ops_row_needs(program, schedule, phase, axis, 0, needed);
        for (uint32_t v = 0; v < program->value_count; v++) {
            if (needed[v] && schedule->first_need[v] == OPS_ROW_NEVER) {
                schedule->first_need[v] = (uint8_t)phase;
            }
        }
    }
    schedule->live = schedule_live(program, schedule);
}
