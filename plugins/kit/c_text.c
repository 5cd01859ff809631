/* Lowers a kernel record by record. */
#include <kit/c_text/state.h>

#include <stdio.h>
#include <string.h>

/* Whether work-items may exchange data through a binding. */
static bool bindings_meet(const hal_ir_kernel *ir)
{
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        if (ir->memories[i].access == HAL_ACCESS_READ_WRITE) {
            return true;
        }
    }
    return false;
}

static void declare_shared(kit_c_state *state)
{
    const hal_ir_kernel *ir = state->ir;
    for (uint32_t i = ir->binding_count; i < ir->memory_count; i++) {
        kit_c_new_line(state);
        kit_c_put(state, state->dialect->shared_array[0]);
        kit_c_put(state, state->dialect->memory_types[ir->memories[i].type]);
        kit_text_add(state->text, " m%u[%u]", i, ir->memories[i].count);
        kit_c_put(state, state->dialect->shared_array[1]);
        kit_c_put(state, ";\n");
    }
}

static void put_name(kit_c_state *state, hal_ir_value value)
{
    char name[40];
    kit_c_name(state, value, name);
    kit_c_put(state, name);
}

static void vector(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    kit_c_declare(state, value, "const ");
    kit_c_put(state, state->dialect->vector[0]);
    kit_c_put_type(state, record->type, record->width);
    kit_c_put(state, state->dialect->vector[1]);
    for (uint32_t i = 0; i < count; i++) {
        kit_c_put(state, i > 0 ? ", " : "");
        put_name(state, operands[i]);
    }
    kit_c_put(state, ");\n");
}

static void extract(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    kit_c_declare(state, value, "const ");
    put_name(state, record->a);
    kit_c_put(state, state->dialect->elements[record->imm]);
    kit_c_put(state, record->type == HAL_TYPE_BOOL ? " != 0;\n" : ";\n");
}

static void fill_words(const kit_c_state *state, const hal_ir_record *record, kit_c_words *words)
{
    const hal_ir_value operands[4] = {record->a, record->b, record->c, record->d};
    for (uint32_t i = 0; i < 4; i++) {
        if (operands[i] != HAL_IR_NONE) {
            kit_c_name(state, operands[i], words->operands[i]);
        }
    }
    words->type = record->type;
    words->from = record->a != HAL_IR_NONE ? state->ir->records[record->a].type : record->type;
    words->width = record->width;
    words->aux = record->aux;
    words->imm = record->imm;
}

/* A butterfly: neighbours, then pairs of neighbours, and so on. In a short last subgroup missing
 * lanes take no part: lane 0 has the result and shuffles it to the others. */
static bool reduce(kit_c_state *state, hal_ir_value value)
{
    static const uint16_t opcodes[HAL_IR_REDUCE_COUNT] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX};
    const hal_ir_record *record = &state->ir->records[value];
    hal_ir_record combine = *record;
    kit_c_words words;
    if (!state->dialect->shuffle_xor) {
        return false;
    }
    fill_words(state, record, &words);
    kit_c_declare(state, value, "");
    kit_c_put(state, words.operands[0]);
    kit_c_put(state, ";\n");
    combine.opcode = opcodes[record->aux];
    snprintf(words.operands[0], sizeof words.operands[0], "v%u", value);
    snprintf(words.operands[1], sizeof words.operands[1], "o%u", value);
    const kit_c_dialect *dialect = state->dialect;
    const int short_one = hal_ir_group_items(state->ir) % dialect->subgroup_width != 0;
    for (uint32_t distance = 1; distance < dialect->subgroup_width; distance *= 2) {
        words.imm = (int32_t)distance;
        kit_c_new_line(state);
        kit_c_expand(state, "{ const @T @b = ", &words);
        kit_c_expand(state, dialect->shuffle_xor, &words);
        kit_c_expand(state, "; @a = ", &words);
        if (short_one) {
            kit_c_put(state, "(");
            kit_c_expand(state, dialect->lane_id, &words);
            kit_c_expand(state, " ^ @ku) >= ", &words);
            kit_c_expand(state, dialect->lane_count, &words);
            kit_c_expand(state, " ? @a : ", &words);
        }
        kit_c_expand(state, kit_c_pattern(state, &combine), &words);
        kit_c_put(state, "; }\n");
    }
    if (short_one) {
        strcpy(words.operands[1], "0u");
        kit_c_new_line(state);
        kit_c_expand(state, "@a = ", &words);
        kit_c_expand(state, dialect->shuffle, &words);
        kit_c_put(state, ";\n");
    }
    return true;
}

static void loop(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    kit_c_put(state, "for (");
    kit_c_put_type(state, record->type, 1);
    kit_c_put(state, " v");
    kit_c_put_number(state, value);
    kit_c_put(state, " = ");
    put_name(state, record->a);
    kit_c_put(state, "; v");
    kit_c_put_number(state, value);
    kit_c_put(state, " < ");
    put_name(state, record->b);
    kit_c_put(state, "; v");
    kit_c_put_number(state, value);
    kit_c_put(state, " += ");
    put_name(state, record->c);
    kit_c_put(state, ") {\n");
}

static bool control(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    if (record->opcode == HAL_IR_VAR || record->opcode == HAL_IR_GET) {
        kit_c_declare(state, value, record->opcode == HAL_IR_VAR ? "" : "const ");
        put_name(state, record->a);
        kit_c_put(state, ";\n");
        return true;
    }
    state->depth -= (uint32_t)hal_ir_closes_block(record->opcode);
    kit_c_new_line(state);
    state->depth += (uint32_t)hal_ir_opens_block(record->opcode);
    switch (record->opcode) {
    case HAL_IR_SET:
        put_name(state, record->a);
        kit_c_put(state, " = ");
        put_name(state, record->b);
        kit_c_put(state, ";\n");
        return true;
    case HAL_IR_FOR:
        loop(state, value);
        return true;
    case HAL_IR_IF:
        kit_c_put(state, "if (");
        put_name(state, record->a);
        kit_c_put(state, ") {\n");
        return true;
    case HAL_IR_BARRIER:
        kit_c_put(state, state->dialect->barrier[state->bindings_meet]);
        kit_c_put(state, "\n");
        return true;
    default:
        kit_c_put(state, record->opcode == HAL_IR_ELSE ? "} else {\n" : "}\n");
        return true;
    }
}

/* The end of a set of asynchronous copies, or the wait for it. */
static bool async_statement(kit_c_state *state, const hal_ir_record *record, const char *pattern)
{
    kit_c_words words;
    if (!pattern) {
        return false;
    }
    fill_words(state, record, &words);
    kit_c_new_line(state);
    kit_c_expand(state, pattern, &words);
    kit_c_put(state, "\n");
    return true;
}

static void declare_result(kit_c_state *state, hal_ir_value value, const char *pattern,
                           const kit_c_words *words)
{
    const bool is_hidden = kit_c_is_hidden(state, value);
    kit_c_words bits = *words; /* of the result */
    bits.from = words->type;
    kit_c_declare(state, value, "const ");
    kit_c_expand(state, is_hidden ? "@f(@u(" : "", &bits);
    kit_c_expand(state, pattern, words);
    kit_c_expand(state, is_hidden ? ") ^ (@V)hidden);\n" : ";\n", &bits);
}

static bool operation(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    const char *pattern = kit_c_pattern(state, record);
    kit_c_words words;
    if (!pattern) {
        return false;
    }
    fill_words(state, record, &words);
    declare_result(state, value, pattern, &words);
    return true;
}

/* A constant is a literal where it is used, unless it is hidden. */
static void constant(kit_c_state *state, hal_ir_value value)
{
    kit_c_words words;
    if (kit_c_is_hidden(state, value)) {
        fill_words(state, &state->ir->records[value], &words);
        kit_c_literal(state, value, words.operands[0]);
        declare_result(state, value, "@a", &words);
    }
}

/* 0 when the dialect has no words for the record. */
static bool statement(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    switch (record->opcode) {
    case HAL_IR_CONSTANT:
        constant(state, value);
        return true;
    case HAL_IR_LOAD:
        return kit_c_load(state, value);
    case HAL_IR_STORE:
        return kit_c_store(state, record);
    case HAL_IR_ATOMIC:
        return kit_c_atomic(state, value);
    case HAL_IR_ASYNC_COPY:
        return kit_c_async_copy(state, record);
    case HAL_IR_ASYNC_COMMIT:
        return async_statement(state, record, state->dialect->async_commit);
    case HAL_IR_ASYNC_WAIT:
        return async_statement(state, record, state->dialect->async_wait);
    case HAL_IR_PACK:
        vector(state, value);
        return true;
    case HAL_IR_EXTRACT:
        extract(state, value);
        return true;
    case HAL_IR_SUBGROUP_REDUCE:
        return reduce(state, value);
    case HAL_IR_VAR:
    case HAL_IR_GET:
    case HAL_IR_SET:
    case HAL_IR_FOR:
    case HAL_IR_IF:
    case HAL_IR_ELSE:
    case HAL_IR_END:
    case HAL_IR_BARRIER:
        return control(state, value);
    default:
        return operation(state, value);
    }
}

hal_status kit_c_lower(const hal_host *host, const kit_c_dialect *dialect, const hal_ir_kernel *ir,
                       kit_text *text)
{
    kit_c_state state = {
        .dialect = dialect, .ir = ir, .text = text, .depth = 1, .bindings_meet = bindings_meet(ir)};
    char message[256];
    const hal_status checked = kit_c_check(host, dialect, ir);
    if (checked != HAL_OK) {
        return checked;
    }
    declare_shared(&state);
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (!statement(&state, i)) {
            snprintf(message, sizeof message,
                     "kernel %s, record %u: the device's language has no way to write opcode %u "
                     "of type %u",
                     ir->names + ir->name, i, ir->records[i].opcode, ir->records[i].type);
            return host->fail(host, HAL_ERROR_UNSUPPORTED, message);
        }
    }
    if (text->failed) {
        snprintf(message, sizeof message, "kernel %s: no host memory for its text",
                 ir->names + ir->name);
        return host->fail(host, HAL_ERROR_OUT_OF_MEMORY, message);
    }
    return HAL_OK;
}
