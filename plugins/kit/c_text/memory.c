/* Loads, stores, atomics and asynchronous copies in C-like languages: widening and narrowing
 * between memory's types and those of values, vectors, guards. */
#include <kit/c_text/state.h>

#include <stdio.h>
#include <string.h>

/* The address of an access, as text. */
typedef struct place {
    char index[80];
    char pointer[96]; /* m0 + index */
    char space[48];
    hal_type type;
    uint32_t width;
} place;

static void find_place(const kit_c_state *state, const hal_ir_record *record, uint32_t width,
                       int reads, place *found)
{
    const hal_ir_record *index = &state->ir->records[record->a];
    const uint64_t bits = index->opcode == HAL_IR_CONSTANT ? state->ir->constants[index->aux] : 0;
    char name[40];
    kit_c_name(state, record->a, name);
    const uint32_t distance = record->imm < 0 ? 0u - (uint32_t)record->imm : (uint32_t)record->imm;
    if (index->opcode == HAL_IR_CONSTANT) {
        const int64_t first = index->type == HAL_TYPE_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
        snprintf(found->index, sizeof found->index, "%lld", (long long)(first + record->imm));
    } else if (distance == 0) {
        snprintf(found->index, sizeof found->index, "%s", name);
    } else if (hal_type_is_signed(index->type) || record->imm > 0) {
        snprintf(found->index, sizeof found->index, "%s %c %u%s", name, record->imm < 0 ? '-' : '+',
                 distance, hal_type_is_signed(index->type) ? "l" : "ul");
    } else {
        snprintf(found->index, sizeof found->index, "(%s)%s - %ul",
                 state->dialect->value_types[HAL_TYPE_I64], name, distance);
    }
    snprintf(found->pointer, sizeof found->pointer, "m%u + %s", record->aux, found->index);
    snprintf(found->space, sizeof found->space, "%s%s", reads ? "const " : "",
             hal_ir_is_shared(state->ir, record->aux) ? state->dialect->shared
                                                      : state->dialect->global);
    found->type = state->ir->memories[record->aux].type;
    found->width = width;
}

static void fill_words(const kit_c_state *state, const place *at, kit_c_words *words)
{
    words->place = at->pointer;
    words->space = at->space;
    words->element = state->dialect->memory_types[at->type];
    words->width = at->width;
}

/* The element or vector in memory: an expression that is read or assigned to. */
static void put_access(kit_c_state *state, const hal_ir_record *record, const place *at)
{
    kit_c_words words;
    if (at->width == 1) {
        kit_c_put(state, "m");
        kit_c_put_number(state, record->aux);
        kit_c_put(state, "[");
        kit_c_put(state, at->index);
        kit_c_put(state, "]");
        return;
    }
    fill_words(state, at, &words);
    kit_c_expand(state, "*(@S @M@N *)(@P)", &words);
}

static void put_converted(kit_c_state *state, hal_type type, const hal_ir_record *record,
                          const place *at)
{
    kit_c_put(state, state->dialect->convert);
    kit_c_put_type(state, type, at->width);
    kit_c_put(state, "(");
    put_access(state, record, at);
    kit_c_put(state, ")");
}

static bool put_loaded(kit_c_state *state, const hal_ir_record *record, const place *at)
{
    kit_c_words words;
    switch (at->type) {
    case HAL_TYPE_F16:
        fill_words(state, at, &words);
        if (!state->dialect->load_f16) {
            return false;
        }
        kit_c_expand(state, state->dialect->load_f16, &words);
        return true;
    case HAL_TYPE_BF16:
        if (at->width > 1 && state->dialect->load_bf16) {
            fill_words(state, at, &words);
            kit_c_expand(state, state->dialect->load_bf16, &words);
            return true;
        }
        kit_c_put(state, state->dialect->bit_cast[0]);
        kit_c_put_type(state, HAL_TYPE_F32, at->width);
        kit_c_put(state, state->dialect->bit_cast[1]);
        if (at->width > 1) {
            put_converted(state, HAL_TYPE_U32, record, at);
        } else {
            kit_c_put(state, "(");
            kit_c_put_type(state, HAL_TYPE_U32, 1);
            kit_c_put(state, ")");
            put_access(state, record, at);
        }
        kit_c_put(state, " << 16)");
        return true;
    default:
        break;
    }
    if (at->width > 1 && hal_type_size(at->type) < 4 && at->type != HAL_TYPE_BOOL) {
        put_converted(state, hal_type_of_value(at->type), record, at);
        return true;
    }
    put_access(state, record, at);
    kit_c_put(state, at->type == HAL_TYPE_BOOL && at->width == 1 ? " != 0" : "");
    return true;
}

/* "GUARD ? " ... " : 0" around scalars; vectors are set under an if, as a conditional expression of
 * vectors takes a vector for its condition. */
bool kit_c_load(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    const int guarded = record->b != HAL_IR_NONE;
    char guard[40] = "";
    place at;
    find_place(state, record, record->width, 1, &at);
    if (guarded) {
        kit_c_name(state, record->b, guard);
    }
    kit_c_declare(state, value, guarded && at.width > 1 ? "" : "const ");
    if (guarded && at.width == 1) {
        kit_c_put(state, guard);
        kit_c_put(state, at.type == HAL_TYPE_BOOL ? " && (" : " ? ");
    } else if (guarded) {
        kit_c_put(state, state->dialect->vector[0]);
        kit_c_put_type(state, record->type, at.width);
        kit_c_put(state, state->dialect->vector[1]);
        kit_c_put(state, "0); if (");
        kit_c_put(state, guard);
        kit_c_put(state, ") { v");
        kit_c_put_number(state, value);
        kit_c_put(state, " = ");
    }
    const int known = put_loaded(state, record, &at);
    if (guarded && at.width == 1) {
        kit_c_put(state, at.type == HAL_TYPE_BOOL ? ")" : " : 0");
    }
    kit_c_put(state, guarded && at.width > 1 ? "; }\n" : ";\n");
    return known;
}

/* Each element of a vector rounded to BF16. */
static void put_bf16(kit_c_state *state, const place *at, const char *name)
{
    kit_c_words words = {.type = HAL_TYPE_U32, .from = HAL_TYPE_F32};
    if (at->width > 1) {
        kit_c_put(state, state->dialect->vector[0]);
        kit_c_put(state, state->dialect->memory_types[HAL_TYPE_BF16]);
        kit_c_put_number(state, at->width);
        kit_c_put(state, state->dialect->vector[1]);
    }
    for (uint32_t i = 0; i < at->width; i++) {
        snprintf(words.operands[0], sizeof words.operands[0], "%.32s%s", name,
                 at->width > 1 ? state->dialect->elements[i] : "");
        words.element = state->dialect->memory_types[HAL_TYPE_BF16];
        kit_c_expand(state, i > 0 ? ", (@M)(" : "(@M)(", &words);
        kit_c_expand(state, kit_c_bits_of_bf16, &words);
        kit_c_put(state, ")");
    }
    kit_c_put(state, at->width > 1 ? ")" : "");
}

static void put_stored(kit_c_state *state, const place *at, hal_type from, const char *name)
{
    const char *type = state->dialect->memory_types[at->type];
    if (at->type == HAL_TYPE_BF16 && from == HAL_TYPE_F32) {
        put_bf16(state, at, name);
    } else if (hal_type_size(at->type) >= 4 || (at->type == HAL_TYPE_BOOL && at->width > 1)) {
        kit_c_put(state, name);
    } else if (at->width > 1) {
        kit_c_put(state, state->dialect->convert);
        kit_c_put(state, type);
        kit_c_put_number(state, at->width);
        kit_c_put(state, "(");
        kit_c_put(state, name);
        kit_c_put(state, ")");
    } else {
        kit_c_put(state, "(");
        kit_c_put(state, type);
        kit_c_put(state, ")");
        kit_c_put(state, name);
    }
}

bool kit_c_store(kit_c_state *state, const hal_ir_record *record)
{
    const hal_ir_record *stored = &state->ir->records[record->c];
    char name[40], guard[40];
    kit_c_words words;
    place at;
    find_place(state, record, stored->width, 0, &at);
    kit_c_name(state, record->c, name);
    kit_c_new_line(state);
    if (record->b != HAL_IR_NONE) {
        kit_c_name(state, record->b, guard);
        kit_c_put(state, "if (");
        kit_c_put(state, guard);
        kit_c_put(state, ") { ");
    }
    const char *pattern = at.type == HAL_TYPE_F16    ? state->dialect->store_f16
                          : at.type == HAL_TYPE_BF16 ? state->dialect->store_bf16
                                                     : NULL;
    if (at.type == HAL_TYPE_F16 && !pattern) {
        return false;
    }
    if (pattern) {
        fill_words(state, &at, &words);
        words.value = name;
        kit_c_expand(state, pattern, &words);
    } else {
        put_access(state, record, &at);
        kit_c_put(state, " = ");
        put_stored(state, &at, stored->type, name);
    }
    kit_c_put(state, record->b != HAL_IR_NONE ? "; }\n" : ";\n");
    return true;
}

bool kit_c_atomic(kit_c_state *state, hal_ir_value value)
{
    const hal_ir_record *record = &state->ir->records[value];
    const kit_c_dialect *dialect = state->dialect;
    const uint32_t wide = hal_type_size(record->type) == 8;
    const char *pattern = record->flags == HAL_IR_ATOMIC_COMPARE_EXCHANGE
                              ? dialect->compare_exchange[wide]
                              : dialect->atomic[wide];
    kit_c_words words = {.type = record->type, .from = record->type};
    char guard[40];
    place at;
    if (!pattern) {
        return false;
    }
    find_place(state, record, 1, 0, &at);
    fill_words(state, &at, &words);
    kit_c_name(state, record->c, words.operands[2]);
    if (record->d != HAL_IR_NONE) {
        kit_c_name(state, record->d, words.operands[3]);
    }
    words.operation = dialect->atomic_names[record->flags];
    kit_c_declare(state, value, "const ");
    if (record->b != HAL_IR_NONE) {
        kit_c_name(state, record->b, guard);
        kit_c_put(state, guard);
        kit_c_put(state, " ? ");
    }
    kit_c_expand(state, pattern, &words);
    kit_c_put(state, record->b != HAL_IR_NONE ? " : 0;\n" : ";\n");
    return true;
}

bool kit_c_async_copy(kit_c_state *state, const hal_ir_record *record)
{
    hal_ir_record source = *record;
    char guard[40];
    place to, from;
    if (!state->dialect->async_copy) {
        return false;
    }
    source.a = record->d;
    source.aux = (uint32_t)record->imm;
    source.imm = 0;
    find_place(state, &source, record->width, 1, &from);
    source.a = record->a;
    source.aux = record->aux;
    find_place(state, &source, record->width, 0, &to);
    kit_c_new_line(state);
    kit_c_put(state, state->dialect->async_copy);
    kit_c_put_number(state, record->width * hal_type_size(to.type));
    kit_c_put(state, "(");
    kit_c_put(state, to.pointer);
    kit_c_put(state, ", ");
    kit_c_put(state, from.pointer);
    if (record->b != HAL_IR_NONE) {
        kit_c_name(state, record->b, guard);
    }
    kit_c_put(state, ", ");
    kit_c_put(state, record->b != HAL_IR_NONE ? guard : "1");
    kit_c_put(state, ");\n");
    return true;
}
