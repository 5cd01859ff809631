/* Contiguous accesses under a mask, as the last group of an array has them: routines that all
 * kernels call, one for each type of memory. They are made at their first use and last as long as
 * the process. */
#include "jit/emission/line.h"

#include "jit/emission/access.h"
#include "jit/emission/operation.h"
#include "jit/registers/registers.h"
#include "jit/emission/routine.h"

#include <kit/fork.h>
#include <pthread.h>
#include <string.h>

/* The values in lanes, the element of the first lane, two masks and the number of lanes, a multiple
 * of CPU_BLOCK. Where one of the masks is false, memory is not accessed and a loaded value is 0. */
typedef void line_routine(void *values, void *memory, const uint8_t *mask, const uint8_t *guard,
                          uint64_t lanes);
enum {
    LINE_VALUES = X86_RDI,
    LINE_MEMORY = X86_RSI,
    LINE_MASK = X86_RDX,
    LINE_COUNT = X86_R8,
    LINE_GUARD = X86_R9 /* from rcx, which has the lane */
};

/* Vector registers, and mask registers where there are some. */
enum { LINE_VALUE = 0, LINE_MASK_A = 1, LINE_MASK_B = 2 };

enum { TARGETS = 2 };

static pthread_mutex_t routines_lock = PTHREAD_MUTEX_INITIALIZER;
static line_routine *routines[TARGETS][HAL_TYPE_COUNT][2];

static void routines_reset(void)
{
    memset(routines, 0, sizeof(routines));
}
KIT_FORK_RESET(routines_lock, routines_reset)

static x86_operand lanes_at(uint32_t base, uint32_t bytes)
{
    x86_operand operand = x86_memory(base, 0);
    operand.index = JIT_LANE;
    operand.scale = (uint8_t)bytes;
    return operand;
}

/* What a routine does. */
typedef struct line_form {
    hal_type type;
    bool stores;
} line_form;

static void routine_emit(jit_state *jit, const void *what)
{
    const line_form *line = what;
    const hal_type type = line->type;
    const bool stores = line->stores;
    const jit_target *target = jit->target;
    x86_code *code = &jit->code;
    const hal_type value = hal_type_of_value(type);
    const x86_form form = jit_form(jit, value);
    const x86_operand memory = lanes_at(LINE_MEMORY, hal_type_size(type)),
                      values = lanes_at(LINE_VALUES, hal_type_size(value));
    const uint32_t again = x86_label(code), none = x86_label(code);
    x86_add_immediate(code, X86_RSP, -(int32_t)JIT_FRAME_VECTORS);
    x86_general(code, X86_STORE, true, JIT_LANE, x86_register(LINE_GUARD));
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
    x86_add_immediate(code, JIT_LANE, (int32_t)jit_lanes(jit, jit->loop.program));
    x86_general(code, X86_CMP, false, JIT_LANE, x86_register(LINE_COUNT));
    x86_jump_if(code, X86_BELOW, again);
    x86_add_immediate(code, X86_RSP, JIT_FRAME_VECTORS);
    x86_zero_upper(code);
    x86_return(code);
}

/* Null without memory. */
static line_routine *routine_find(const jit_state *caller, hal_type type, bool stores)
{
    pthread_mutex_lock(&routines_lock);
    line_routine **place = &routines[caller->target == &jit_avx512][type][stores];
    if (!*place) {
        const line_form what = {type, stores};
        *place = (line_routine *)(uintptr_t)jit_routine_make(caller, hal_type_size(type) == 8,
                                                             routine_emit, &what);
    }
    line_routine *found = *place;
    pthread_mutex_unlock(&routines_lock);
    return found;
}

static const uint8_t *mask_in(const cpu_worker *worker, uint32_t slot)
{
    return worker->slots[slot == CPU_NONE ? (uint32_t)CPU_SLOT_FULL : slot];
}

/* Called by compiled code in the place of a step, which it calls where the index wraps around. */
static void line_run(cpu_worker *worker, const cpu_step *step, line_routine *routine)
{
    const cpu_access *access = step->access;
    const void *base = worker->slots[access->base];
    const int64_t index = access->index_type == HAL_TYPE_I32   ? *(const int32_t *)base
                          : access->index_type == HAL_TYPE_U32 ? *(const uint32_t *)base
                                                               : *(const int64_t *)base;
    if (index > jit_greatest_index(access->index_type) - (int64_t)worker->items) {
        step->run(worker, step);
        return;
    }
    const uint8_t *mask = mask_in(worker, step->mask), *guard = mask_in(worker, access->guard);
    if (step->mask != CPU_NONE && access->guard != CPU_NONE) {
        /* One of the masks has to be false for lanes that are no work-items. */
        const uint8_t *full = worker->slots[CPU_SLOT_FULL];
        for (uint32_t lane = 0; lane < step->n; lane++) {
            worker->chosen[lane] = mask[lane] & full[lane];
        }
        mask = worker->chosen;
    }
    routine(worker->slots[access->values[0]],
            (char *)worker->memory[access->memory] +
                (index + access->offset) * (int64_t)hal_type_size(access->type),
            mask, guard, step->n);
}

static void line_run_view(cpu_worker *worker, const cpu_step *step, line_routine *routine)
{
    const uint32_t slot = step->access->values[0];
    worker->slots[slot] = worker->slots[slot + 1];
    line_run(worker, step, routine);
}

/* What runs in the place of a step of slow paths, if that is such an access. */
static void line_find(jit_state *jit, jit_slow *slow)
{
    const cpu_step_class class = slow->draft->action.class;
    const cpu_access *access = jit_step_of(jit, slow->draft)->access;
    if (!access || !jit_line_is_supported(access) || access->type == HAL_TYPE_BOOL) {
        return;
    }
    if (class == CPU_STEP_ADDRESS) {
        slow->is_private = true;
        return;
    }
    const bool stores = class == CPU_STEP_STORE;
    const bool loads = class == CPU_STEP_LOAD || class == CPU_STEP_VIEW;
    if ((!stores && !loads) || hal_type_size(access->type) < jit->target->mask_from) {
        return;
    }
    slow->routine = (const void *)(uintptr_t)routine_find(jit, access->type, stores);
    slow->line_run = class == CPU_STEP_VIEW ? (uintptr_t)line_run_view : (uintptr_t)line_run;
}

void jit_lines_find(jit_state *jit)
{
    for (uint32_t i = 0; i < jit->slow_count; i++) {
        if (jit->slow_paths[i].draft) {
            line_find(jit, &jit->slow_paths[i]);
        }
    }
}
