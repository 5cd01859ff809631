/* Lane programs: values and operations, see jit_program.h. */
#include "jit_program.h"

#include <stdlib.h>
#include <string.h>

void jit_program_clear(jit_program *program)
{
    program->value_count = program->node_count = 0;
    program->wide = false;
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
    if (grown == NULL) {
        program->failed = true;
        return array;
    }
    *capacity = wanted;
    return grown;
}

static jit_value value_add(jit_program *program, jit_kind kind, hal_type type, uint32_t name)
{
    static _Thread_local jit_entry discarded[1];
    program->values = program_grow(program, program->values, program->value_count,
                                   &program->value_capacity, sizeof(jit_entry));
    jit_entry *entry = discarded;
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

jit_value jit_constant(jit_program *program, hal_type type, uint64_t bits)
{
    const jit_value value = value_add(program, JIT_CONSTANT, type, JIT_NONE);
    if (!program->failed) {
        program->values[value].bits = bits;
    }
    return value;
}

jit_value jit_named(jit_program *program, jit_kind kind, hal_type type, uint32_t name)
{
    return value_add(program, kind, type, name);
}

jit_value jit_operation(jit_program *program, uint32_t opcode, hal_type type, hal_type result,
                        jit_value a, jit_value b, jit_value c)
{
    const jit_value d =
        result == HAL_TYPE_NONE ? JIT_NONE : value_add(program, JIT_TEMPORARY, result, JIT_NONE);
    program->nodes = program_grow(program, program->nodes, program->node_count,
                                  &program->node_capacity, sizeof(jit_node));
    if (!program->failed) {
        program->nodes[program->node_count++] = (jit_node){
            .opcode = (uint16_t)opcode, .type = type, .d = d, .a = {a, b, c, JIT_NONE}};
    }
    return d;
}

jit_node *jit_last(jit_program *program)
{
    static _Thread_local jit_node discarded;
    return program->failed ? &discarded : &program->nodes[program->node_count - 1];
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
