/* Code that rarely runs, after the rest of a function: does a transcendental function again, calls
 * a step where an access has no short form. */
#include "jit/emission/slow_emit.h"

#include "jit/emission/access.h"
#include "jit/registers/registers.h"

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

/* Vectors and masks in use, to the frame or back: a C function may overwrite them. */
static void vectors_move(jit_state *jit, const jit_slow *slow, bool save)
{
    x86_code *code = &jit->code;
    const x86_form form = {.length = jit->target->length};
    for (uint32_t i = 0; i < JIT_VECTORS; i++) {
        if (slow->vectors >> i & 1) {
            x86_vector(code, save ? X86_MOVDQU32_STORE : X86_MOVDQU32, form, i, 0,
                       x86_memory(X86_RSP, (int32_t)(JIT_FRAME_VECTORS + 64 * i)));
        }
    }
    for (uint32_t i = 1; i < JIT_MASKS; i++) {
        const x86_operand place = x86_memory(X86_RSP, (int32_t)(JIT_FRAME_MASKS + 8 * i));
        if ((slow->masks >> i & 1) && save) {
            x86_mask_store(code, place, i);
        } else if (slow->masks >> i & 1) {
            x86_mask_move(code, i, place);
        }
    }
}

/* The same for other registers. `base`: bytes between rsp and the frame. */
static void registers_move(x86_code *code, int32_t base, bool save)
{
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

/* Null, and stays so from row to row. */
static void pointer_clear(x86_code *code, uint32_t pointer)
{
    x86_general(code, X86_XOR, false, JIT_SCRATCH, x86_register(JIT_SCRATCH));
    x86_general(code, X86_STORE, true, JIT_SCRATCH,
                x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer)));
    x86_general(code, X86_STORE, true, JIT_SCRATCH, jit_skip_of(pointer));
}

/* Calls the step, or what runs in its place. */
static void step_replace(jit_state *jit, const jit_slow *slow)
{
    x86_code *code = &jit->code;
    if (slow->is_private) {
        jit_private_emit(jit, jit_step_of(jit, slow->draft)->access->values[0]);
    } else if (!slow->routine) {
        jit_call_step(jit, slow->draft);
    } else {
        x86_zero_upper(code);
        x86_general(code, X86_STORE, true, JIT_WORKER, x86_register(X86_RDI));
        x86_load_immediate(code, X86_RSI, (uint64_t)(uintptr_t)jit_step_of(jit, slow->draft));
        x86_load_immediate(code, X86_RDX, (uint64_t)(uintptr_t)slow->routine);
        x86_load_immediate(code, JIT_SCRATCH, slow->line_run);
        x86_call(code, JIT_SCRATCH);
    }
}

static void path_emit(jit_state *jit, const jit_slow *slow)
{
    x86_code *code = &jit->code;
    x86_bind(code, slow->label);
    if (slow->draft) {
        step_replace(jit, slow);
        if (slow->pointer != JIT_NONE) {
            pointer_clear(code, slow->pointer);
        }
    } else if (!slow->run) {
        pointer_clear(code, slow->pointer);
    } else {
        const x86_form form = {.length = slow->length};
        x86_vector(code, X86_MOVDQU32_STORE, form, slow->x, 0, x86_memory(X86_RSP, JIT_FRAME_X));
        x86_vector(code, X86_MOVDQU32_STORE, form, slow->y, 0, x86_memory(X86_RSP, JIT_FRAME_Y));
        vectors_move(jit, slow, true);
        x86_load_immediate(code, JIT_SCRATCH, (uint64_t)(uintptr_t)slow->run);
        x86_call_label(code, jit->again);
        vectors_move(jit, slow, false);
        x86_vector(code, X86_MOVDQU32, form, slow->d, 0, x86_memory(X86_RSP, JIT_FRAME_D));
    }
    x86_jump(code, slow->back);
}

void jit_slow_emit(jit_state *jit)
{
    bool functions = false;
    jit->again = x86_label(&jit->code);
    for (uint32_t i = 0; i < jit->slow_count; i++) {
        const jit_slow slow = jit->slow_paths[i];
        functions = functions || (!slow.draft && slow.run != NULL);
        path_emit(jit, &slow);
    }
    if (functions) {
        again_emit(jit);
    } else {
        x86_bind(&jit->code, jit->again);
    }
}
