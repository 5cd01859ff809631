/* Lane programs: values and operations, see jit_program.h. */
#include "jit/program/program.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_NODES = 6 };

void jit_program_clear(jit_program *program)
{
    program->value_count = program->node_count = 0;
    program->wide = program->narrow = false;
}

void jit_program_release(jit_program *program)
{
    free(program->values);
    free(program->nodes);
    memset(program, 0, sizeof(*program));
}

static void *program_grow(jit_program *program, void *array, uint32_t count, uint32_t *capacity,
                          size_t size)
{
    if (count < *capacity) {
        return array;
    }
    const uint32_t wanted = *capacity == 0 ? 128 : *capacity * 2;
    void *grown = realloc(array, wanted * size);
    if (!grown) {
        program->failed = true;
        return array;
    }
    *capacity = wanted;
    return grown;
}

static jit_value value_add(jit_program *program, jit_kind kind, hal_type type, uint32_t name)
{
    program->values = program_grow(program, program->values, program->value_count,
                                   &program->value_capacity, sizeof(jit_entry));
    jit_entry *entry = &program->discarded_value;
    if (!program->failed) {
        entry = &program->values[program->value_count++];
    }
    *entry = (jit_entry){.kind = kind,
                         .type = type,
                         .saved = kind != JIT_TEMPORARY,
                         .reg = JIT_NO_REGISTER,
                         .name = name,
                         .frame = JIT_NONE,
                         .next = JIT_NONE};
    program->wide = program->wide || hal_type_size(type) == 8;
    return program->failed ? 0 : program->value_count - 1;
}

/* Zeros and the normal numbers of f16; what else it has is rarely a constant. */
static bool bits_are_f16(uint64_t bits)
{
    const uint64_t exponent = bits >> 23 & 0xff;
    return (bits & 0x7fffffff) == 0 || ((bits & 0x1fff) == 0 && exponent >= 113 && exponent <= 142);
}

jit_value jit_constant(jit_program *program, hal_type type, uint64_t bits)
{
    const jit_value value = value_add(program, JIT_CONSTANT, type, JIT_NONE);
    if (!program->failed) {
        program->values[value].bits = bits;
        program->values[value].is_bf16 = type == HAL_TYPE_F32 && (bits & 0xffff) == 0;
        program->values[value].is_f16 = type == HAL_TYPE_F32 && bits_are_f16(bits);
    }
    return value;
}

jit_value jit_named(jit_program *program, jit_kind kind, hal_type type, uint32_t name)
{
    return value_add(program, kind, type, name);
}

jit_node *jit_last(jit_program *program)
{
    return program->failed ? &program->discarded_node : &program->nodes[program->node_count - 1];
}

/* Whether a value needs no rounding to `narrow`, F16 or BF16. */
static bool value_is_rounded(const jit_program *program, jit_value value, hal_type narrow)
{
    return value != JIT_NONE && (narrow == HAL_TYPE_F16 ? program->values[value].is_f16
                                                        : program->values[value].is_bf16);
}

/* Whether the f32 that a node gives needs no rounding to `narrow`. */
static bool node_is_rounded(const jit_program *program, const jit_node *node, hal_type narrow)
{
    const bool first = value_is_rounded(program, node->a[0], narrow),
               second = value_is_rounded(program, node->a[1], narrow);
    switch (node->opcode) {
    case JIT_LOAD:
    case JIT_ELEMENT:
    case JIT_GATHER:
    case HAL_IR_NARROW:
        return node->type == narrow;
    case JIT_MOVE:
    case HAL_IR_NEG:
    case HAL_IR_ABS:
        return node->type == HAL_TYPE_F32 && first;
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        return node->type == HAL_TYPE_F32 && first && second;
    case HAL_IR_SELECT:
    case JIT_BLEND:
        return node->type == HAL_TYPE_F32 && second &&
               value_is_rounded(program, node->a[2], narrow);
    default:
        return false;
    }
}

/* Whether a node is a function or depends on one. */
static bool node_follows(const jit_program *program, const jit_node *node)
{
    bool follows = node->opcode == JIT_FUNCTION;
    for (uint32_t k = 0; k < JIT_OPERANDS && !follows; k++) {
        follows = node->a[k] != JIT_NONE && program->values[node->a[k]].follows;
    }
    return follows;
}

jit_value jit_operation(jit_program *program, uint32_t opcode, hal_type type, hal_type result,
                        jit_value a, jit_value b, jit_value c)
{
    const jit_value d =
        result == HAL_TYPE_NONE ? JIT_NONE : value_add(program, JIT_TEMPORARY, result, JIT_NONE);
    program->nodes = program_grow(program, program->nodes, program->node_count,
                                  &program->node_capacity, sizeof(jit_node));
    if (!program->failed) {
        program->nodes[program->node_count++] =
            (jit_node){.opcode = (uint16_t)opcode, .type = type, .d = d, .a = {a, b, c, JIT_NONE}};
        if (d != JIT_NONE) {
            const jit_node *node = jit_last(program);
            program->values[d].is_bf16 = node_is_rounded(program, node, HAL_TYPE_BF16);
            program->values[d].is_f16 = node_is_rounded(program, node, HAL_TYPE_F16);
            program->values[d].follows = node_follows(program, node);
        }
    }
    return d;
}

static bool is_held(const jit_entry *entry)
{
    return entry->kind == JIT_TEMPORARY || entry->kind == JIT_LANES;
}

uint32_t jit_program_parts(const jit_program *program, uint32_t vectors, uint32_t masks,
                           uint32_t most)
{
    uint32_t held[2] = {0, 0}, greatest[2] = {1, 1};
    bool *used = calloc(program->value_count + 1, sizeof(bool));
    uint32_t *first_use = calloc(program->value_count + 1, sizeof(uint32_t));
    if (!used || !first_use) {
        free(used);
        free(first_use);
        return 1;
    }
    for (uint32_t i = program->node_count; i-- > 0;) {
        for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
            const jit_value a = program->nodes[i].a[k];
            first_use[a == JIT_NONE ? program->value_count : a] = i;
        }
    }
    for (uint32_t i = program->node_count; i-- > 0;) {
        const jit_node *node = &program->nodes[i];
        if (node->d != JIT_NONE && used[node->d]) {
            held[masks > 0 && program->values[node->d].type == HAL_TYPE_BOOL]--;
        }
        for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
            const jit_value a = node->a[k];
            if (a != JIT_NONE && !used[a] && is_held(&program->values[a])) {
                used[a] = true;
                held[masks > 0 && program->values[a].type == HAL_TYPE_BOOL]++;
            }
        }
        for (uint32_t k = 0; k < 2; k++) {
            greatest[k] = held[k] > greatest[k] ? held[k] : greatest[k];
        }
        for (uint32_t k = 0; k < JIT_OPERANDS; k++) { /* in memory before its first use */
            const jit_value a = node->a[k];
            if (a != JIT_NONE && used[a] && first_use[a] == i &&
                program->values[a].kind == JIT_LANES) {
                used[a] = false;
                held[masks > 0 && program->values[a].type == HAL_TYPE_BOOL]--;
            }
        }
    }
    free(used);
    free(first_use);
    uint32_t parts = most;
    while (parts > 1 &&
           (greatest[0] * parts > vectors || (masks > 0 && greatest[1] * parts > masks))) {
        parts /= 2;
    }
    return parts;
}

bool jit_is_vector_load(const jit_program *program, uint32_t node)
{
    return program->nodes[node].opcode == JIT_LOAD && program->nodes[node].type != HAL_TYPE_BOOL;
}

/* A choice is made for all vectors together. */
static void choice_unroll(jit_program *program, const jit_node *choice, uint32_t parts)
{
    jit_value all = choice->a[0];
    for (uint32_t part = 1; part < parts; part++) {
        all = jit_operation(program, HAL_IR_OR, HAL_TYPE_BOOL, HAL_TYPE_BOOL, all,
                            choice->a[0] + part, JIT_NONE);
    }
    jit_operation(program, JIT_CHOICE, HAL_TYPE_BOOL, HAL_TYPE_NONE, all, JIT_NONE, JIT_NONE);
}

static bool is_joint(uint32_t opcode)
{
    return opcode >= JIT_DECLARE && opcode <= JIT_FUNCTION;
}

/* The end of the nodes from `first` on that each part does in one piece: loads, if the parts are
 * rows; from a condition to its last use, if that is near, as there are few masks. */
static uint32_t piece_end(const jit_program *program, const uint32_t *last_use, uint32_t first,
                          bool are_rows)
{
    uint32_t end = first + 1;
    if (are_rows && jit_is_vector_load(program, first)) {
        while (end < program->node_count && jit_is_vector_load(program, end)) {
            end++;
        }
        return end;
    }
    for (uint32_t i = first; i < end; i++) {
        const jit_node *node = &program->nodes[i];
        if (is_joint(node->opcode)) {
            return first + 1;
        }
        if (node->d != JIT_NONE && program->values[node->d].type == HAL_TYPE_BOOL) {
            if (last_use[node->d] >= first + PIECE_NODES) {
                return first + 1;
            }
            end = last_use[node->d] >= end ? last_use[node->d] + 1 : end;
        }
    }
    return end;
}

/* A node for one part: its own values, or those that serve all parts. */
static void node_unroll(jit_program *result, const jit_node *node, uint32_t parts, uint32_t part)
{
    result->nodes = program_grow(result, result->nodes, result->node_count, &result->node_capacity,
                                 sizeof(jit_node));
    if (result->failed) {
        return;
    }
    jit_node *added = &result->nodes[result->node_count++];
    *added = *node;
    added->part = (uint8_t)part;
    for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
        if (node->a[k] != JIT_NONE) {
            added->a[k] = node->a[k] * parts;
            added->a[k] += is_held(&result->values[added->a[k]]) ? part : 0;
        }
    }
    added->d = node->d == JIT_NONE ? JIT_NONE : node->d * parts + part;
}

static void nodes_unroll(jit_program *result, const jit_program *program, const uint32_t *last_use,
                         uint32_t parts, bool are_rows)
{
    for (uint32_t i = 0; i < program->node_count && !result->failed;) {
        const jit_node *node = &program->nodes[i];
        const uint32_t end = piece_end(program, last_use, i, are_rows);
        const bool once = node->opcode == JIT_OTHERWISE || node->opcode == JIT_JOIN;
        if (node->opcode == JIT_CHOICE) {
            jit_node choice = *node;
            choice.a[0] *= parts;
            choice_unroll(result, &choice, parts);
        } else {
            for (uint32_t part = 0; part < (once ? 1 : parts); part++) {
                for (uint32_t k = i; k < end; k++) {
                    node_unroll(result, &program->nodes[k], parts, part);
                }
            }
        }
        i = end;
    }
}

/* The values of the parts are neighbours; constants and uniform values serve all of them. */
void jit_program_unroll(jit_program *program, uint32_t parts, bool are_rows)
{
    jit_program result = {.wide = program->wide};
    const uint32_t values = program->value_count * parts;
    uint32_t *last_use = calloc(program->value_count + 1, sizeof(uint32_t));
    result.values = malloc((values + 1) * sizeof(jit_entry));
    result.value_count = result.value_capacity = values;
    result.failed = program->failed || !result.values || !last_use;
    for (uint32_t i = 0; i < values && !result.failed; i++) {
        result.values[i] = program->values[i / parts];
        result.values[i].part = (uint8_t)(i % parts);
    }
    for (uint32_t i = 0; i < program->node_count && !result.failed; i++) {
        for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
            if (program->nodes[i].a[k] != JIT_NONE) {
                last_use[program->nodes[i].a[k]] = i;
            }
        }
    }
    nodes_unroll(&result, program, last_use, parts, are_rows);
    free(last_use);
    jit_program_release(program);
    *program = result;
}

/* What a kept value's slot has is also read by others. */
void jit_program_round_once(jit_program *program)
{
    enum { ANY = UINT8_MAX };
    /* Of each value: the type that stores give it, or ANY if something else needs it. */
    uint8_t *uses = calloc(program->value_count + 1, sizeof(uint8_t));
    for (uint32_t i = !uses ? 0 : program->node_count; i-- > 0;) {
        jit_node *node = &program->nodes[i];
        if (node->opcode == HAL_IR_NARROW && node->type != HAL_TYPE_BOOL &&
            uses[node->d] == node->type && !program->values[node->d].keep) {
            node->opcode = JIT_MOVE;
            node->type = hal_type_of_value(node->type);
            program->values[node->d].is_bf16 = program->values[node->a[0]].is_bf16;
            program->values[node->d].is_f16 = program->values[node->a[0]].is_f16;
        }
        for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
            if (node->a[k] != JIT_NONE) {
                const bool is_stored = node->opcode == JIT_STORE && k == 0;
                uint8_t *use = &uses[node->a[k]];
                *use = is_stored && (*use == 0 || *use == node->type) ? (uint8_t)node->type : ANY;
            }
        }
    }
    free(uses);
}

/* Backwards. Of an operand that a node has twice, the first one's `next` is the later use. */
void jit_program_finish(jit_program *program)
{
    for (uint32_t i = program->node_count; i-- > 0;) {
        jit_node *node = &program->nodes[i];
        if (node->d != JIT_NONE) {
            node->next_d = program->values[node->d].next;
            program->values[node->d].next = JIT_NONE;
        }
        for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
            if (node->a[k] != JIT_NONE) {
                node->next[k] = program->values[node->a[k]].next;
                program->values[node->a[k]].next = i;
            }
        }
    }
}
