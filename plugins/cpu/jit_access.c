/* Calls of steps, and the addresses of contiguous accesses. Code for the usual case: the whole
 * group is active and the index does not wrap; everything else calls the step, which knows all
 * cases. Called by jit.c. */
#include "jit_state.h"

void jit_call_step(jit_state *jit, const cpu_step *step)
{
    x86_code *code = &jit->code;
    x86_zero_upper(code);
    x86_general(code, X86_STORE, true, JIT_WORKER, x86_register(X86_RDI));
    x86_load_immediate(code, X86_RSI, (uint64_t)(uintptr_t)step);
    x86_load_immediate(code, JIT_SCRATCH, (uint64_t)(uintptr_t)step->run);
    x86_call(code, JIT_SCRATCH);
}

x86_operand jit_block(const jit_state *jit, uint32_t slot)
{
    return x86_memory(JIT_ARENA, (int32_t)jit->lower->kernel->slot_offset[slot]);
}

static x86_operand slot_pointer(uint32_t slot)
{
    return x86_memory(JIT_SLOTS, (int32_t)(8 * slot));
}

/* A uniform index, as the interpreter reads it, to a register. */
static void index_load(jit_state *jit, uint32_t slot, hal_type type, uint32_t reg)
{
    const x86_operand from = jit_block(jit, slot);
    if (type == HAL_TYPE_I32) {
        x86_general(&jit->code, X86_SIGN_EXTEND, true, reg, from);
    } else {
        x86_general(&jit->code, X86_LOAD, hal_type_size(type) == 8, reg, from);
    }
}

static void mask_require_full(jit_state *jit, uint32_t slot, uint32_t otherwise)
{
    if (slot != CPU_NONE) {
        x86_general(&jit->code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(slot));
        x86_general(&jit->code, X86_CMP, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_FULL));
        x86_jump_if(&jit->code, X86_NOT_EQUAL, otherwise);
    }
}

static uint32_t shift_of(hal_type type)
{
    const uint32_t size = hal_type_size(type);
    return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
}

static int64_t greatest_index(hal_type type)
{
    return type == HAL_TYPE_I32 ? INT32_MAX : type == HAL_TYPE_U32 ? UINT32_MAX : INT64_MAX;
}

bool jit_access_emit(jit_state *jit, const cpu_step *step, uint32_t pointer, bool calls)
{
    const cpu_access *access = step->access;
    const uint32_t items = jit->lower->kernel->items, shift = shift_of(access->type);
    const int64_t offset = (int64_t)access->offset * (int64_t)hal_type_size(access->type);
    if (access->run != 1 || access->width != 1 || offset > INT32_MAX || offset < INT32_MIN) {
        return false;
    }
    if (items % CPU_BLOCK != 0 &&
        (pointer == JIT_NONE || access->type == HAL_TYPE_BOOL ||
         hal_type_size(access->type) < jit->target->mask_from)) { /* no mask of the work-items */
        return false;
    }
    x86_code *code = &jit->code;
    jit_cold *cold = jit_cold_add(jit);
    if (cold == NULL) {
        return false;
    }
    cold->step = calls ? step : NULL;
    cold->pointer = pointer;
    const uint32_t otherwise = cold->label, back = cold->back;
    mask_require_full(jit, step->mask, otherwise);
    mask_require_full(jit, access->guard, otherwise);
    index_load(jit, access->base, access->index_type, JIT_SCRATCH);
    x86_load_immediate(code, X86_RCX, (uint64_t)(greatest_index(access->index_type) - items));
    x86_general(code, X86_CMP, true, JIT_SCRATCH, x86_register(X86_RCX));
    x86_jump_if(code, X86_GREATER, otherwise);
    x86_general(code, X86_LOAD, true, X86_RDX,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, memory)));
    if (shift != 0) {
        x86_shift_left(code, JIT_SCRATCH, shift);
    }
    x86_general(code, X86_ADD, true, JIT_SCRATCH,
                x86_memory(X86_RDX, (int32_t)(8 * access->memory)));
    if (offset != 0) {
        x86_add_immediate(code, JIT_SCRATCH, (int32_t)offset);
    }
    x86_general(code, X86_STORE, true, JIT_SCRATCH,
                pointer == JIT_NONE
                    ? slot_pointer(access->values[0])
                    : x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer)));
    x86_bind(code, back);
    return true;
}

bool jit_uniform_emit(jit_state *jit, const cpu_access *access)
{
    const uint32_t shift = shift_of(access->type);
    const int64_t offset = (int64_t)access->offset * (int64_t)hal_type_size(access->type);
    if (access->width != 1 || access->guard != CPU_NONE || offset > INT32_MAX ||
        offset < INT32_MIN) {
        return false;
    }
    x86_code *code = &jit->code;
    index_load(jit, access->base, access->index_type, JIT_SCRATCH);
    if (shift != 0) {
        x86_shift_left(code, JIT_SCRATCH, shift);
    }
    x86_general(code, X86_LOAD, true, X86_RDX,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, memory)));
    x86_general(code, X86_ADD, true, JIT_SCRATCH,
                x86_memory(X86_RDX, (int32_t)(8 * access->memory)));
    if (offset != 0) {
        x86_add_immediate(code, JIT_SCRATCH, (int32_t)offset);
    }
    return true;
}

void jit_choose_emit(jit_state *jit, const cpu_step *step)
{
    x86_code *code = &jit->code;
    const uint32_t chosen = x86_label(code);
    x86_general(code, X86_LOAD, false, X86_RCX, jit_block(jit, step->a));
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_FULL));
    x86_general(code, X86_TEST, false, X86_RCX, x86_register(X86_RCX));
    x86_jump_if(code, X86_NOT_EQUAL, chosen);
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_EMPTY));
    x86_bind(code, chosen);
    x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(step->d));
}

bool jit_bound_emit(jit_state *jit, const cpu_step *step)
{
    const cpu_access *access = step->access;
    const hal_type type = access->index_type;
    const cpu_lanes *lanes = jit->lower->lanes;
    const bool within = step->run == lanes->within[CPU_I32] || step->run == lanes->within[CPU_U32];
    if (access->run != 1 || hal_type_size(type) != 4) {
        return false;
    }
    x86_code *code = &jit->code;
    jit_cold *cold = jit_cold_add(jit);
    if (cold == NULL) {
        return false;
    }
    cold->step = step;
    const uint32_t otherwise = cold->label, back = cold->back;
    index_load(jit, step->a, type, JIT_SCRATCH);
    index_load(jit, access->base, type, X86_RDX);
    x86_general(code, X86_LEA, true, X86_RSI,
                x86_memory(X86_RDX, (int32_t)(jit->lower->kernel->items - 1)));
    x86_load_immediate(code, X86_RCX, (uint64_t)greatest_index(type));
    x86_general(code, X86_CMP, true, X86_RSI, x86_register(X86_RCX));
    x86_jump_if(code, X86_GREATER, otherwise);
    /* index < bound: greatest < bound; bound < index: bound < least; or equal where aux is 1. */
    x86_general(code, X86_CMP, true, JIT_SCRATCH, x86_register(within ? X86_RSI : X86_RDX));
    x86_jump_if(code,
                within ? (step->aux ? X86_LESS : X86_LESS_EQUAL)
                       : (step->aux ? X86_GREATER : X86_GREATER_EQUAL),
                otherwise);
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, slot_pointer(CPU_SLOT_FULL));
    x86_general(code, X86_STORE, true, JIT_SCRATCH, slot_pointer(step->d));
    x86_bind(code, back);
    return true;
}
