/* Translates a lane program into a loop over the vectors of a group. */
#include "jit/emission/loop.h"

#include "jit/emission/ahead.h"
#include "jit/emission/function.h"
#include "jit/emission/operation.h"
#include "jit/registers/registers.h"

/* Registers for the addresses that a loop needs; the rest is loaded at each use. */
static const uint8_t pointer_registers[JIT_POINTER_REGISTERS] = {
    X86_RDX, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11, X86_R12, X86_R14, X86_R15};

/* Programs of this many nodes compute several vectors together; shorter ones need no help to
 * overlap. */
enum { UNROLL_FROM = 20, FUNCTION_NODES = 24 };

static void pointer_add(jit_state *jit, uint32_t key)
{
    for (uint32_t i = 0; i < jit->registers.loop_pointers; i++) {
        if (jit->registers.pointers[i].key == key) {
            return;
        }
    }
    if (jit->registers.loop_pointers < JIT_POINTER_REGISTERS) {
        const uint8_t reg = pointer_registers[jit->registers.loop_pointers];
        const x86_operand place =
            key & JIT_POINTER_ACCESS
                ? x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * (key & 0xffff)))
                : x86_memory(JIT_SLOTS, (int32_t)(8 * key));
        x86_general(&jit->code, X86_LOAD, true, reg, place);
        jit->registers.pointers[jit->registers.loop_pointers++] =
            (jit_pointer){.key = key, .reg = reg};
    }
}

static void pointers_load(jit_state *jit, const jit_program *program)
{
    jit->registers.loop_pointers = 0;
    for (uint32_t i = 0; i < program->value_count; i++) {
        const jit_entry *entry = &program->values[i];
        if (entry->name != JIT_NONE && jit->lower->names[entry->name].view &&
            (entry->kind != JIT_TEMPORARY || entry->keep)) {
            pointer_add(jit, jit->lower->names[entry->name].slot);
        }
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        const uint32_t opcode = program->nodes[i].opcode;
        if (opcode == JIT_LOAD || opcode == JIT_STORE || opcode == JIT_GATHER ||
            opcode == JIT_SCATTER) {
            pointer_add(jit, JIT_POINTER_ACCESS + program->nodes[i].aux);
        }
    }
}

/* At the end of a step of the loop: pointers of rows go to the next row, or the next ones. */
static void rows_next(jit_state *jit, const jit_program *program, uint32_t step)
{
    x86_code *code = &jit->code;
    const uint32_t row = jit->lower->program->place[0], within = x86_label(code);
    bool any = false;
    uint64_t moved = 0; /* pointers, as bits: a program may have several accesses at one */
    for (uint32_t i = 0; i < program->node_count; i++) {
        const jit_node *node = &program->nodes[i];
        if ((node->opcode != JIT_LOAD && node->opcode != JIT_STORE) ||
            jit->open.pointer_forms[node->aux] == JIT_ACCESS_LINE || (moved >> node->aux & 1)) {
            continue;
        }
        if (!any && row > step) {
            x86_load_immediate(code, JIT_SCRATCH, row - 1);
            x86_general(code, X86_TEST, false, JIT_SCRATCH, x86_register(JIT_LANE));
            x86_jump_if(code, X86_NOT_EQUAL, within);
        }
        any = true;
        moved |= UINT64_C(1) << node->aux;
        const x86_operand place =
            x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * node->aux));
        uint32_t reg = JIT_SCRATCH;
        for (uint32_t k = 0; k < jit->registers.loop_pointers; k++) {
            reg = jit->registers.pointers[k].key == JIT_POINTER_ACCESS + node->aux
                      ? jit->registers.pointers[k].reg
                      : reg;
        }
        if (reg == JIT_SCRATCH) {
            x86_general(code, X86_LOAD, true, reg, place);
        }
        for (uint32_t first = 0; first < step; first += row) {
            x86_general(code, X86_ADD, true, reg, jit_skip_of(node->aux));
        }
        if (reg == JIT_SCRATCH) {
            x86_general(code, X86_STORE, true, reg, place);
        }
    }
    x86_bind(code, within);
}

/* Operations, about; those of functions count. */
static uint32_t program_length(const jit_program *program)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < program->node_count; i++) {
        length += program->nodes[i].opcode == JIT_FUNCTION ? FUNCTION_NODES : 1;
    }
    return length;
}

void jit_loop_emit(jit_state *jit, jit_program *program, bool is_uniform)
{
    jit->failed = jit->failed || program->failed;
    if (program->node_count == 0 || jit->failed) {
        return;
    }
    x86_code *code = &jit->code;
    const jit_target *target = jit->target;
    const uint32_t width = jit_lanes(jit, program), lanes = is_uniform ? width : jit->lower->n;
    uint32_t step = width;
    jit->loop.is_long = program->is_part || program_length(program) >= UNROLL_FROM;
    if (jit->loop.is_long && !is_uniform) {
        /* Functions put the other values into memory anyway. */
        const bool functions = program_length(program) > program->node_count;
        const uint32_t vectors = functions ? 2u * target->vectors : target->vectors - 1u;
        const uint32_t masks = functions ? 2u * target->masks : target->masks;
        const uint32_t parts = jit_program_parts(program, vectors, masks, target->most_parts);
        while (step < width * parts && lanes % (2 * step) == 0) {
            step *= 2;
        }
        if (step > width) {
            jit_program_unroll(program, step / width, jit->lower->program->place[0] <= width);
        }
    }
    if (program->failed) {
        jit->failed = true;
        return;
    }
    jit->loop.parts = step / width;
    jit->loop.program = program;
    jit->loop.is_uniform = is_uniform;
    jit->loop.in_loop = lanes > step;
    jit->loop.aside_count = 0;
    jit_program_finish(program);
    jit_registers_clear(jit);
    pointers_load(jit, program);
    jit_ahead_begin(jit, program);
    const uint32_t again = x86_label(code);
    if (jit->loop.in_loop) {
        x86_general(code, X86_XOR, false, JIT_LANE, x86_register(JIT_LANE));
        x86_bind(code, again);
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (program->nodes[i].opcode == JIT_FUNCTION) {
            jit_function_emit(jit, &program->nodes[i]);
            i += jit->loop.parts - 1;
        } else if (program->nodes[i].opcode == JIT_LOAD) {
            const uint32_t count = jit_loads_count(jit, program, i);
            jit_loads_emit(jit, &program->nodes[i], count);
            i += count - 1;
        } else {
            jit_node_emit(jit, &program->nodes[i]);
        }
    }
    if (jit->loop.in_loop) {
        x86_add_immediate(code, JIT_LANE, (int32_t)step);
        rows_next(jit, program, step);
        x86_compare_immediate(code, JIT_LANE, (int32_t)lanes);
        x86_jump_if(code, X86_BELOW, again);
    }
    jit_asides_emit(jit);
    jit->operations += program->node_count;
    jit->failed = jit->failed || jit->registers.frame_vectors > 4096;
}
