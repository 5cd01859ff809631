/* Affine indices as numbers, and accesses whose elements are neither contiguous nor in rows:
 * gathers and scatters. jit/emission/indexed.c has their instructions. */
#include "jit/gather.h"

#include "jit/emission/access.h"
#include "jit/emission/indexed.h"
#include "jit/open.h"
#include "jit/registers/registers.h"

#include <stdlib.h>

/* Shorter rows are gathered: steps transpose the others in squares. */
enum { LEAST_ROW = 4 };

/* The ids of every lane, one dimension after the other; null without memory. */
static const uint32_t *lane_ids(jit_state *jit)
{
    const uint32_t n = jit->lower->n, *place = jit->lower->program->place;
    if (jit->output->lane_ids) {
        return jit->output->lane_ids;
    }
    uint32_t *ids = malloc((size_t)3 * n * sizeof(uint32_t));
    for (uint32_t lane = 0; lane < n && ids; lane++) {
        ids[lane] = lane % place[0];
        ids[n + lane] = lane / place[0] % place[1];
        ids[2 * n + lane] = lane / place[0] / place[1];
    }
    jit->output->lane_ids = ids;
    return ids;
}

/* The affine index of 32 bits of an access as a value. */
static jit_value affine_value(jit_state *jit, const cpu_access *access)
{
    const uint32_t which = JIT_OPEN_LANES;
    const hal_type type = access->index_type;
    jit->failed = jit->failed || !lane_ids(jit);
    jit_value factors[3] = {JIT_NONE, JIT_NONE, JIT_NONE};
    uint32_t ones = 0;
    for (uint32_t k = 0; k < 3; k++) {
        const cpu_constant_name *known = jit->facts.constants[access->factor[k]];
        if (jit->lower->program->place[k] == 1 || (known && known->bits == 0)) {
            continue;
        }
        if (known && known->bits == 1) {
            ones |= 1u << k;
        } else {
            factors[k] = jit_value_of(jit, which, access->factor[k], type);
        }
    }
    const jit_value base = jit_value_of(jit, which, access->base, type);
    const jit_value d =
        jit_operation(&jit->open.lanes, JIT_AFFINE, type, type, base, factors[0], factors[1]);
    jit_last(&jit->open.lanes)->a[3] = factors[2];
    jit_last(&jit->open.lanes)->aux = ones;
    return d;
}

bool jit_affine_append(jit_state *jit, const cpu_draft *draft)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    if (hal_type_size(access->index_type) != 4) {
        return false;
    }
    jit_program_choose(jit, draft->d);
    jit_references_note(jit, draft, JIT_OPEN_LANES);
    jit_name_define(jit, JIT_OPEN_LANES, draft->d, affine_value(jit, access));
    return true;
}

/* Whether the work-items of a row may be neighbours in memory: rows that follow each other are one
 * then, which steps find out. */
static bool may_be_contiguous(const jit_state *jit, const cpu_access *access)
{
    const cpu_constant_name *factor = jit->facts.constants[access->factor[0]];
    return factor && factor->bits == 1;
}

static bool is_supported(const jit_state *jit, const cpu_draft *draft, const cpu_access *access)
{
    const int64_t offset = (int64_t)access->offset * (int64_t)hal_type_size(access->type);
    return draft->access != CPU_NONE && access->width == 1 &&
           hal_type_size(access->index_type) == 4 && access->type != HAL_TYPE_BOOL &&
           offset <= INT32_MAX && offset >= INT32_MIN &&
           (access->index != CPU_NONE ||
            (jit->lower->program->place[0] < LEAST_ROW && !may_be_contiguous(jit, access) &&
             jit_access_form_of(jit, draft) == JIT_ACCESS_NONE));
}

bool jit_gather_is_wanted(const jit_state *jit, const cpu_draft *draft)
{
    return is_supported(jit, draft, &jit->lower->accesses[draft->access]);
}

bool jit_scatter_is_wanted(const jit_state *jit, const cpu_draft *draft)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    return hal_type_size(access->type) >= 4 && is_supported(jit, draft, access);
}

/* Before the loop: the address of index 0, and of narrow elements its distance from a multiple of 4
 * in the place of the skip. */
static uint32_t pointer_emit(jit_state *jit, const cpu_access *access)
{
    x86_code *code = &jit->code;
    const uint32_t pointer = jit->open.pointer_count++;
    const int64_t size = (int64_t)hal_type_size(access->type);
    const int64_t ahead =
        access->offset * size +
        (access->index_type == HAL_TYPE_U32 ? (int64_t)JIT_FLIPPED * size : INT64_C(0));
    jit->open.pointer_forms[pointer] = JIT_ACCESS_LANES;
    x86_general(code, X86_LOAD, true, X86_RDX,
                x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, memory)));
    x86_load_immediate(code, JIT_SCRATCH, (uint64_t)ahead);
    x86_general(code, X86_ADD, true, JIT_SCRATCH,
                x86_memory(X86_RDX, (int32_t)(8 * access->memory)));
    if (size < 4) {
        x86_general(code, X86_STORE, true, JIT_SCRATCH, x86_register(X86_RDX));
        x86_and_immediate(code, X86_RDX, 3);
        x86_general(code, X86_STORE, true, X86_RDX, jit_skip_of(pointer));
        x86_and_immediate(code, JIT_SCRATCH, -4);
    }
    x86_general(code, X86_STORE, true, JIT_SCRATCH,
                x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer)));
    return pointer;
}

/* The work-items that access memory; JIT_NONE: all. */
static jit_value active_value(jit_state *jit, const cpu_draft *draft)
{
    const uint32_t guard = jit->lower->accesses[draft->access].guard, mask = draft->mask;
    const jit_value x =
        guard == CPU_NONE ? JIT_NONE : jit_value_of(jit, JIT_OPEN_LANES, guard, HAL_TYPE_BOOL);
    const jit_value y =
        mask == CPU_NONE ? JIT_NONE : jit_value_of(jit, JIT_OPEN_LANES, mask, HAL_TYPE_BOOL);
    return x == JIT_NONE   ? y
           : y == JIT_NONE ? x
                           : jit_operation(&jit->open.lanes, HAL_IR_AND, HAL_TYPE_BOOL,
                                           HAL_TYPE_BOOL, x, y, JIT_NONE);
}

static jit_value index_value(jit_state *jit, const cpu_access *access)
{
    return access->index == CPU_NONE
               ? affine_value(jit, access)
               : jit_value_of(jit, JIT_OPEN_LANES, access->index, access->index_type);
}

/* The node that was appended last accesses memory at a pointer. */
static void place_set(jit_state *jit, const cpu_draft *draft, uint32_t pointer)
{
    jit_last(&jit->open.lanes)->aux = pointer;
    jit_last(&jit->open.lanes)->access = draft->access;
}

void jit_gather_append(jit_state *jit, const cpu_draft *draft)
{
    const cpu_step *step = jit_step_of(jit, draft);
    const cpu_access *access = &jit->lower->accesses[draft->access];
    const uint32_t name = access->values[0];
    const bool is_view = jit->lower->names[name].view;
    if (jit->open.writes_memory || jit->open.pointer_count >= JIT_LOOP_POINTERS ||
        jit_slot_is(jit->open.stored_by, jit, name) ||
        (is_view && jit_slot_is(jit->open.used_by, jit, name))) {
        jit_all_flush(jit);
    }
    if (is_view) {
        jit_private_emit(jit, step->access->values[0]);
    }
    const uint32_t pointer = pointer_emit(jit, access);
    jit_references_note(jit, draft, JIT_OPEN_LANES);
    const jit_value index = index_value(jit, access), active = active_value(jit, draft);
    const jit_value d = jit_operation(&jit->open.lanes, JIT_GATHER, access->type,
                                      hal_type_of_value(access->type), active, index, JIT_NONE);
    place_set(jit, draft, pointer);
    const bool writes_memory = jit->open.writes_memory;
    jit_name_define(jit, JIT_OPEN_LANES, name, d);
    jit->open.writes_memory = writes_memory; /* its slot is no view of memory */
}

void jit_scatter_append(jit_state *jit, const cpu_draft *draft)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    if (jit->open.pointer_count >= JIT_LOOP_POINTERS) {
        jit_all_flush(jit);
    }
    const uint32_t pointer = pointer_emit(jit, access);
    jit_references_note(jit, draft, JIT_OPEN_LANES);
    const jit_value value = jit_value_of(jit, JIT_OPEN_LANES, access->values[0], access->type);
    const jit_value index = index_value(jit, access), active = active_value(jit, draft);
    jit_operation(&jit->open.lanes, JIT_SCATTER, access->type, HAL_TYPE_NONE, active, index, value);
    place_set(jit, draft, pointer);
    jit->open.writes_memory = true;
}
