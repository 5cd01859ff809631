/* Translates a lane program into a loop over the vectors of a group, and the cold code at the end
 * of a kernel. Called by jit.c. */
#include "jit_state.h"

#include <stdlib.h>
#include <string.h>

/* Registers for the addresses that a loop needs; the rest is loaded at each use. */
static const uint8_t pointer_registers[JIT_POINTER_REGISTERS] = {
    X86_RDX, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11, X86_R12, X86_R14, X86_R15};

static void pointer_add(jit_state *jit, uint32_t key)
{
    for (uint32_t i = 0; i < jit->loop_pointers; i++) {
        if (jit->pointers[i].key == key) {
            return;
        }
    }
    if (jit->loop_pointers < JIT_POINTER_REGISTERS) {
        const uint8_t reg = pointer_registers[jit->loop_pointers];
        const x86_operand place =
            key & JIT_POINTER_ACCESS
                ? x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * (key & 0xffff)))
                : x86_memory(JIT_SLOTS, (int32_t)(8 * key));
        x86_general(&jit->code, X86_LOAD, true, reg, place);
        jit->pointers[jit->loop_pointers++] = (jit_pointer){.key = key, .reg = reg};
    }
}

static void pointers_load(jit_state *jit, const jit_program *program)
{
    jit->loop_pointers = 0;
    for (uint32_t i = 0; i < program->value_count; i++) {
        const jit_entry *entry = &program->values[i];
        if (entry->name != JIT_NONE && jit->lower->names[entry->name].view &&
            (entry->kind != JIT_TEMPORARY || entry->keep)) {
            pointer_add(jit, jit->lower->names[entry->name].slot);
        }
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        const uint32_t opcode = program->nodes[i].opcode;
        if (opcode == JIT_LOAD || opcode == JIT_STORE) {
            pointer_add(jit, JIT_POINTER_ACCESS + program->nodes[i].aux);
        }
    }
}

void jit_loop_emit(jit_state *jit, jit_program *program, bool is_uniform)
{
    if (program->node_count == 0) {
        return;
    }
    x86_code *code = &jit->code;
    const uint32_t step = program->wide ? 8 : 16, lanes = is_uniform ? step : jit->lower->n;
    jit->program = program;
    jit->is_uniform = is_uniform;
    jit->in_loop = lanes > step;
    jit_program_finish(program);
    jit_registers_clear(jit);
    pointers_load(jit, program);
    const uint32_t again = x86_label(code);
    if (jit->in_loop) {
        x86_general(code, 0x33, false, JIT_LANE, x86_register(JIT_LANE)); /* xor */
        x86_bind(code, again);
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        jit_node_emit(jit, &program->nodes[i]);
    }
    if (jit->in_loop) {
        x86_add_immediate(code, JIT_LANE, (int32_t)step);
        x86_compare_immediate(code, JIT_LANE, (int32_t)lanes);
        x86_jump_if(code, X86_BELOW, again);
    }
    jit->operations += program->node_count;
    jit->failed = jit->failed || program->failed || jit->frame_vectors > 4096;
}

jit_cold *jit_cold_add(jit_state *jit)
{
    if (jit->cold_count == jit->cold_capacity) {
        const uint32_t wanted = jit->cold_capacity == 0 ? 32 : jit->cold_capacity * 2;
        jit_cold *grown = realloc(jit->colds, wanted * sizeof(jit_cold));
        if (grown == NULL) {
            jit->failed = true;
            return NULL;
        }
        jit->colds = grown;
        jit->cold_capacity = wanted;
    }
    jit_cold *cold = &jit->colds[jit->cold_count++];
    *cold = (jit_cold){.label = x86_label(&jit->code),
                       .back = x86_label(&jit->code),
                       .pointer = JIT_NONE};
    return cold;
}

/* Called by compiled code: runs a step of a function on one block of lanes. */
static void function_run(cpu_run *run, void *d, void *x, void *y)
{
    void *slots[3] = {d, x, y};
    cpu_worker worker = {.slots = slots, .items = CPU_BLOCK};
    const cpu_step step = {.run = run, .d = 0, .a = 1, .b = 2, .n = CPU_BLOCK, .mask = CPU_NONE};
    run(&worker, &step);
}

static const uint8_t saved_general[] = {X86_RCX, X86_RDX, X86_RSI, X86_RDI,
                                        X86_R8,  X86_R9,  X86_R10, X86_R11};
enum { SAVED_GENERAL = sizeof(saved_general) };

/* What a C function may overwrite, to the frame or back. `base`: bytes between rsp and the frame. */
static void registers_move(x86_code *code, int32_t base, bool save)
{
    const x86_form form = {.length = X86_ZMM};
    for (uint32_t i = 0; i < JIT_VECTORS; i++) {
        x86_vector(code, save ? X86_MOVDQU32_STORE : X86_MOVDQU32, form, i, 0,
                   x86_memory(X86_RSP, base + (int32_t)(JIT_FRAME_VECTORS + 64 * i)));
    }
    for (uint32_t i = 1; i < JIT_MASKS; i++) {
        const x86_operand place = x86_memory(X86_RSP, base + (int32_t)(JIT_FRAME_MASKS + 8 * i));
        if (save) {
            x86_mask_store(code, place, i);
        } else {
            x86_mask_move(code, i, place);
        }
    }
    for (uint32_t i = 0; i < SAVED_GENERAL; i++) {
        x86_general(code, save ? X86_STORE : X86_LOAD, true, saved_general[i],
                    x86_memory(X86_RSP, base + (int32_t)(JIT_FRAME_GENERAL + 8 * i)));
    }
}

/* The routine that does a function again: rax has the step's function, the frame its operands. */
static void again_emit(jit_state *jit)
{
    x86_code *code = &jit->code;
    const int32_t base = 64; /* the return address and padding */
    x86_bind(code, jit->again);
    x86_add_immediate(code, X86_RSP, -(base - 8));
    registers_move(code, base, true);
    x86_general(code, X86_STORE, true, JIT_SCRATCH, x86_register(X86_RDI));
    x86_general(code, X86_LEA, true, X86_RSI, x86_memory(X86_RSP, base + JIT_FRAME_D));
    x86_general(code, X86_LEA, true, X86_RDX, x86_memory(X86_RSP, base + JIT_FRAME_X));
    x86_general(code, X86_LEA, true, X86_RCX, x86_memory(X86_RSP, base + JIT_FRAME_Y));
    x86_zero_upper(code);
    x86_load_immediate(code, JIT_SCRATCH, (uint64_t)(uintptr_t)function_run);
    x86_call(code, JIT_SCRATCH);
    registers_move(code, base, false);
    x86_add_immediate(code, X86_RSP, base - 8);
    x86_return(code);
}

static void cold_emit(jit_state *jit, const jit_cold *cold)
{
    x86_code *code = &jit->code;
    x86_bind(code, cold->label);
    if (cold->step != NULL) {
        jit_call_step(jit, cold->step);
        if (cold->pointer != JIT_NONE) {
            x86_general(code, 0x33, false, JIT_SCRATCH, x86_register(JIT_SCRATCH));
            x86_general(code, X86_STORE, true, JIT_SCRATCH,
                        x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * cold->pointer)));
        }
    } else if (cold->run == NULL) {
        x86_general(code, 0x33, false, JIT_SCRATCH, x86_register(JIT_SCRATCH));
        x86_general(code, X86_STORE, true, JIT_SCRATCH,
                    x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * cold->pointer)));
    } else {
        const x86_form form = {.length = cold->length};
        x86_vector(code, X86_MOVDQU32_STORE, form, cold->x, 0,
                   x86_memory(X86_RSP, JIT_FRAME_X));
        x86_vector(code, X86_MOVDQU32_STORE, form, cold->y, 0,
                   x86_memory(X86_RSP, JIT_FRAME_Y));
        x86_load_immediate(code, JIT_SCRATCH, (uint64_t)(uintptr_t)cold->run);
        x86_call_label(code, jit->again);
        x86_vector(code, X86_MOVDQU32, form, cold->d, 0, x86_memory(X86_RSP, JIT_FRAME_D));
    }
    x86_jump(code, cold->back);
}

void jit_colds_emit(jit_state *jit)
{
    bool functions = false;
    jit->again = x86_label(&jit->code);
    for (uint32_t i = 0; i < jit->cold_count; i++) {
        const jit_cold cold = jit->colds[i];
        functions = functions || (cold.step == NULL && cold.run != NULL);
        cold_emit(jit, &cold);
    }
    if (functions) {
        again_emit(jit);
    } else {
        x86_bind(&jit->code, jit->again);
    }
}
