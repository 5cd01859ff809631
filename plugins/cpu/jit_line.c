/* Contiguous accesses under a mask, as the last group of an array has them: routines that all
 * kernels call, one for each type of memory. They are made at their first use and last as long as
 * the process. Called by jit_access.c, jit_cold.c and jit_open.c. */
#include "jit_state.h"

#include "code_memory.h"

#include <pthread.h>
#include <stdlib.h>

/* Operands of a routine: the values in lanes, the element of the first lane, two masks and the
 * number of lanes, a multiple of CPU_BLOCK. Where one of the masks is false, memory is not accessed
 * and a loaded value is 0. */
enum {
    LINE_VALUES = X86_RDI,
    LINE_MEMORY = X86_RSI,
    LINE_MASK = X86_RDX,
    LINE_GUARD = X86_R8,
    LINE_COUNT = X86_R9
};

/* Vector registers, and mask registers where there are some. */
enum { LINE_VALUE = 0, LINE_MASK_A = 1, LINE_MASK_B = 2 };

enum { TARGETS = 2 };

static pthread_mutex_t routines_lock = PTHREAD_MUTEX_INITIALIZER;
static void *routines[TARGETS][HAL_TYPE_COUNT][2];

static x86_operand lanes_at(uint32_t base, uint32_t bytes)
{
    x86_operand operand = x86_memory(base, 0);
    operand.index = JIT_LANE;
    operand.scale = (uint8_t)bytes;
    return operand;
}

static void routine_emit(jit_state *jit, hal_type type, bool stores)
{
    const jit_target *target = jit->target;
    x86_code *code = &jit->code;
    const hal_type value = hal_type_of_value(type);
    const x86_form form = jit_form(jit, value);
    const x86_operand memory = lanes_at(LINE_MEMORY, hal_type_size(type)),
                      values = lanes_at(LINE_VALUES, hal_type_size(value));
    const uint32_t again = x86_label(code), none = x86_label(code);
    x86_general(code, X86_XOR, false, JIT_LANE, x86_register(JIT_LANE));
    x86_bind(code, again);
    target->bool_load(jit, LINE_MASK_A, lanes_at(LINE_MASK, 1));
    target->bool_load(jit, LINE_MASK_B, lanes_at(LINE_GUARD, 1));
    target->bool_both(jit, LINE_MASK_A, LINE_MASK_A, LINE_MASK_B);
    if (!stores) {
        x86_vector(code, X86_PXORD, form, LINE_VALUE, LINE_VALUE, x86_register(LINE_VALUE));
    }
    target->bool_test(jit, LINE_MASK_A);
    x86_jump_if(code, X86_EQUAL, none);
    if (stores) {
        x86_vector(code, X86_MOVDQU32, form, LINE_VALUE, 0, values);
        jit_memory_store(jit, type, LINE_VALUE, memory, LINE_MASK_A, false);
    } else {
        jit_memory_load(jit, type, LINE_VALUE, memory, LINE_MASK_A);
    }
    x86_bind(code, none);
    if (!stores) {
        x86_vector(code, X86_MOVDQU32_STORE, form, LINE_VALUE, 0, values);
    }
    x86_add_immediate(code, JIT_LANE, (int32_t)jit_lanes(jit, jit->program));
    x86_general(code, X86_CMP, false, JIT_LANE, x86_register(LINE_COUNT));
    x86_jump_if(code, X86_BELOW, again);
    x86_return(code);
}

static void *routine_make(const jit_state *caller, hal_type type, bool stores)
{
    cpu_lower lower = {.lanes = caller->lower->lanes};
    jit_state *jit = calloc(1, sizeof(*jit));
    void *made = NULL;
    if (jit == NULL) {
        return NULL;
    }
    jit->lower = &lower;
    jit->target = caller->target;
    jit->code.vex = caller->code.vex;
    jit->program = &jit->lanes;
    jit->program->wide = hal_type_size(type) == 8;
    routine_emit(jit, type, stores);
    if (x86_finish(&jit->code) && !jit->failed) {
        made = cpu_code_create(jit->code.bytes, jit->code.count);
    }
    x86_code_release(&jit->code);
    free(jit);
    return made;
}

/* Null without memory. */
static void *routine_find(const jit_state *caller, hal_type type, bool stores)
{
    pthread_mutex_lock(&routines_lock);
    void **place = &routines[caller->target == &jit_avx512][type][stores];
    if (*place == NULL) {
        *place = routine_make(caller, type, stores);
    }
    void *found = *place;
    pthread_mutex_unlock(&routines_lock);
    return found;
}

static void slot_load(jit_state *jit, uint32_t reg, uint32_t slot)
{
    x86_general(&jit->code, X86_LOAD, true, reg, x86_memory(JIT_SLOTS, (int32_t)(8 * slot)));
}

static void mask_load(jit_state *jit, uint32_t reg, uint32_t slot)
{
    slot_load(jit, reg, slot == CPU_NONE ? (uint32_t)CPU_SLOT_FULL : slot);
}

/* Lanes that are no work-items are false in one of the masks: in the mask of all work-items, or in
 * every mask of a group of whole blocks. */
static bool masks_suffice(const jit_state *jit, const cpu_step *step)
{
    return jit->lower->kernel->items % CPU_BLOCK == 0 || step->mask == CPU_NONE ||
           step->access->guard == CPU_NONE;
}

static void routine_call(jit_state *jit, const cpu_step *step, void *routine)
{
    x86_code *code = &jit->code;
    const cpu_access *access = step->access;
    const uint32_t slot = access->values[0];
    const uint32_t otherwise = x86_label(code), done = x86_label(code);
    const bool is_view = step->run == jit->lower->lanes->view;
    jit_line_address(jit, access, otherwise);
    x86_general(code, X86_STORE, true, JIT_SCRATCH, x86_register(LINE_MEMORY));
    if (is_view) {
        jit_own_room_emit(jit, slot);
    }
    slot_load(jit, LINE_VALUES, slot);
    mask_load(jit, LINE_MASK, step->mask);
    mask_load(jit, LINE_GUARD, access->guard);
    x86_load_immediate(code, LINE_COUNT, jit->lower->n);
    x86_load_immediate(code, JIT_SCRATCH, (uint64_t)(uintptr_t)routine);
    x86_call(code, JIT_SCRATCH);
    x86_jump(code, done);
    x86_bind(code, otherwise);
    jit_call_step(jit, step);
    x86_bind(code, done);
}

bool jit_line_emit(jit_state *jit, const cpu_step *step)
{
    const cpu_lanes *lanes = jit->lower->lanes;
    const cpu_access *access = step->access;
    if (access == NULL || !jit_line_is_supported(access) || access->type == HAL_TYPE_BOOL) {
        return false;
    }
    if (step->run == lanes->address) {
        jit_own_room_emit(jit, access->values[0]);
        return true;
    }
    const bool stores = step->run == lanes->store[access->type];
    const bool loads = step->run == lanes->load[access->type] || step->run == lanes->view;
    if ((!stores && !loads) || !masks_suffice(jit, step) ||
        hal_type_size(access->type) < jit->target->mask_from) {
        return false;
    }
    void *routine = routine_find(jit, access->type, stores);
    if (routine != NULL) {
        routine_call(jit, step, routine);
    }
    return routine != NULL;
}
