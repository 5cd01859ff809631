/* Makes machine code of drafts. Operations in lanes are collected in a lane program, which becomes
 * one loop; uniform operations in another one, which precedes it. Steps that prepare accesses go
 * before the open lane program if they do not touch its slots; all others end it. */
#include "jit/walk.h"

#include "jit/emission/access.h"
#include "jit/gather.h"
#include "jit/open.h"
#include "jit/emission/operation.h"
#include "jit/registers/stream.h"
#include "lower/slots.h"

#include <stdio.h>
#include <string.h>

/* Makes it possible to put the draft's step before the open lane program: ends that if it writes
 * what the step reads, or uses what the step writes. A store's values are not read before. */
static void step_advance(jit_walk *walk, bool reads_memory)
{
    jit_state *jit = &walk->state;
    uint32_t names[CPU_REFERENCES];
    bool conflict = reads_memory && jit->open.writes_memory;
    uint32_t count = cpu_names_written(jit->lower, walk->draft, names);
    for (uint32_t k = 0; k < count; k++) {
        conflict = conflict || jit_slot_is(jit->open.used_by, jit, names[k]);
    }
    cpu_draft draft = *walk->draft;
    draft.stores = false;
    count = cpu_names_read(jit->lower, &draft, names);
    for (uint32_t k = 0; k < count && !conflict; k++) {
        conflict = jit_slot_is(jit->open.written_by, jit, names[k]);
    }
    if (conflict) {
        jit_all_flush(jit);
    } else {
        jit_program_flush(jit, JIT_OPEN_UNIFORM);
    }
}

static void operation_append(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    const cpu_draft *names = walk->draft;
    if (walk->action.class == CPU_STEP_OPERATION && hal_ir_is_math(walk->action.opcode)) {
        jit_functions_part(jit, names);
    }
    const uint32_t which = jit_program_choose(jit, names->d);
    jit_program *program = jit_program_of(jit, which);
    const hal_type type = walk->action.type;
    const hal_type operand = walk->action.opcode == HAL_IR_NARROW ? hal_type_of_value(type) : type;
    const bool select =
        walk->action.class == CPU_STEP_OPERATION && walk->action.opcode == HAL_IR_SELECT;
    jit_references_note(jit, walk->draft, which);
    jit_value a = jit_value_of(jit, which, names->a, select ? (hal_type)HAL_TYPE_BOOL : operand);
    jit_value b = names->b != CPU_NONE ? jit_value_of(jit, which, names->b, operand) : JIT_NONE;
    jit_value c = names->c != CPU_NONE ? jit_value_of(jit, which, names->c, operand) : JIT_NONE;
    uint32_t opcode = walk->action.opcode;
    if (walk->action.class == CPU_STEP_BLEND) {
        const jit_value mask = jit_value_of(jit, which, names->mask, HAL_TYPE_BOOL);
        c = jit_value_of(jit, which, names->d, type);
        b = a;
        a = mask;
        opcode = JIT_BLEND;
    } else if (walk->action.class == CPU_STEP_MOVE) {
        opcode = JIT_MOVE;
    }
    jit_value d;
    if (hal_ir_is_math(opcode)) {
        d = jit_operation(program, JIT_FUNCTION, type, type, a, b, JIT_NONE);
        jit_last(program)->aux = opcode;
    } else {
        d = jit_operation(program, opcode, type, walk->action.result, a, b, c);
    }
    jit_name_define(jit, which, names->d, d);
}

/* Lanes near each other exchange values in a register; the others read the slot of the operand,
 * which the program must not write before or after. False: not in lanes of a slot, or the last
 * subgroup lacks lanes. */
static bool exchange_append(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    const cpu_draft *names = walk->draft;
    const cpu_name *operand = &jit->lower->names[names->a];
    const hal_type type = walk->action.type;
    const uint32_t apart = names->aux & (CPU_BLOCK - 1);
    const bool wide = jit->open.lanes.wide || hal_type_size(type) == 8;
    const bool near = apart < jit->target->lanes / (wide ? 2u : 1u);
    if (type == HAL_TYPE_BOOL || operand->uniform || (operand->view && !near) ||
        jit->lower->program->items % CPU_BLOCK != 0) {
        return false;
    }
    jit_program_choose(jit, names->d);
    if (!near && jit_slot_is(jit->open.written_by, jit, names->a)) {
        jit_all_flush(jit);
    }
    jit_references_note(jit, walk->draft, JIT_OPEN_LANES);
    const jit_value a = jit_value_of(jit, JIT_OPEN_LANES, names->a, type);
    const jit_value d = jit_operation(&jit->open.lanes, near ? HAL_IR_SHUFFLE_XOR : JIT_EXCHANGE,
                                      type, type, a, JIT_NONE, JIT_NONE);
    jit_last(&jit->open.lanes)->aux = apart;
    jit->open.lanes.narrow = jit->open.lanes.narrow || (near && apart >= jit->target->lanes / 2u);
    if (!near) {
        jit_slot_mark(jit, jit->open.stored_by, names->a);
    }
    jit_name_define(jit, JIT_OPEN_LANES, names->d, d);
    return true;
}

/* ---- steps that are neither lanes nor control ---- */

/* What a called step does, for the log. */
static void call_describe(const jit_walk *walk, char *text, size_t size)
{
    const cpu_access *access = walk->step->access;
    static const char *const classes[CPU_STEP_CLASS_COUNT] = {
        [CPU_STEP_OPERATION] = "operation", [CPU_STEP_LOAD] = "load",
        [CPU_STEP_STORE] = "store",         [CPU_STEP_VIEW] = "view",
        [CPU_STEP_ADDRESS] = "address",     [CPU_STEP_AFFINE] = "affine",
        [CPU_STEP_WITHIN] = "bound",        [CPU_STEP_BEYOND] = "bound",
        [CPU_STEP_BOTH] = "both",           [CPU_STEP_CHOOSE] = "choose",
        [CPU_STEP_EXCHANGE] = "exchange",   [CPU_STEP_IF] = "if",
        [CPU_STEP_ELSE] = "else",           [CPU_STEP_MASK_BEGIN] = "for",
        [CPU_STEP_MASK_NEXT] = "for_next"};
    const char *name = classes[walk->action.class];
    name = name ? name : "subgroup_or_atomic";
    if (walk->action.class == CPU_STEP_OPERATION) {
        snprintf(text, size, " operation_%u_of_type_%u", (unsigned)walk->action.opcode,
                 (unsigned)walk->action.type);
    } else if (access) {
        snprintf(text, size, " %s_%s_of_%u", access->index != CPU_NONE ? "indexed" : "affine", name,
                 (unsigned)access->width);
    } else {
        snprintf(text, size, " %s", name);
    }
}

static void step_call(jit_walk *walk)
{
    char text[64];
    const size_t length = strlen(walk->called);
    jit_call_step(&walk->state, walk->draft);
    walk->state.calls++;
    call_describe(walk, text, sizeof(text));
    if (!strstr(walk->called, text)) {
        snprintf(walk->called + length, sizeof(walk->called) - length, "%s", text);
    }
}

/* Stores vector register 0 in all of a block. */
static void block_store(jit_walk *walk, uint32_t slot, uint32_t bytes)
{
    const x86_form form = {.length = walk->state.target->length};
    x86_operand to = jit_block(&walk->state, slot);
    for (uint32_t at = 0; at < CPU_BLOCK * bytes; at += 16u << form.length) {
        x86_vector(&walk->state.code, X86_MOVDQU32_STORE, form, 0, 0, to);
        to.disp += 16 << form.length;
    }
}

/* Broadcasts a word of memory to a block. */
static void block_fill(jit_walk *walk, x86_operand from, uint32_t slot, uint32_t bytes)
{
    const x86_form form = {.length = walk->state.target->length};
    x86_vector(&walk->state.code, bytes == 8 ? X86_PBROADCASTQ : X86_PBROADCASTD, form, 0, 0, from);
    block_store(walk, slot, bytes);
}

/* A uniform load becomes part of the uniform program, which precedes the lane program: that must
 * not write memory. False: it has no such form. */
static bool element_append(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    if (walk->action.opcode != HAL_IR_LOAD || !jit_uniform_is_supported(walk->step->access)) {
        return false;
    }
    const cpu_access *access = &jit->lower->accesses[walk->draft->access];
    if (jit->open.writes_memory) {
        jit_all_flush(jit);
    }
    jit_program_choose(jit, access->values[0]);
    const jit_value base = jit_name_in(jit, JIT_OPEN_UNIFORM, access->base)->value;
    if (base != JIT_NONE && jit->open.uniform.values[base].kind == JIT_TEMPORARY) {
        jit_program_flush(jit, JIT_OPEN_UNIFORM); /* the address is computed from its block */
    }
    jit_references_note(jit, walk->draft, JIT_OPEN_UNIFORM);
    const jit_value guard = access->guard == CPU_NONE
                                ? JIT_NONE
                                : jit_value_of(jit, JIT_OPEN_UNIFORM, access->guard, HAL_TYPE_BOOL);
    const jit_value d = jit_operation(&jit->open.uniform, JIT_ELEMENT, access->type,
                                      hal_type_of_value(access->type), guard, JIT_NONE, JIT_NONE);
    jit_last(&jit->open.uniform)->aux = walk->draft->access;
    jit_name_define(jit, JIT_OPEN_UNIFORM, access->values[0], d);
    return true;
}

/* Scalars, group ids and counts: true if the step has code. */
static bool input_emit(jit_walk *walk)
{
    const cpu_step *step = walk->step;
    const uint32_t bytes = hal_type_size(walk->action.type);
    x86_operand from;
    switch (walk->action.opcode) {
    case HAL_IR_GROUP_ID:
        from = x86_memory(JIT_WORKER, (int32_t)(offsetof(cpu_worker, group) + 4 * step->aux));
        break;
    case HAL_IR_GROUP_COUNT:
        from = x86_memory(JIT_WORKER, (int32_t)(offsetof(cpu_worker, grid) + 4 * step->aux));
        break;
    case HAL_IR_SCALAR:
        if (bytes < 4) {
            return false;
        }
        x86_general(&walk->state.code, X86_LOAD, true, JIT_SCRATCH,
                    x86_memory(JIT_WORKER, (int32_t)offsetof(cpu_worker, scalars)));
        from = x86_memory(JIT_SCRATCH, (int32_t)step->aux);
        break;
    default:
        return false;
    }
    block_fill(walk, from, step->d, bytes);
    return true;
}

/* The guard of an access in rows, as a value of the open program; others need none. */
static jit_value guard_value(jit_walk *walk, jit_access_form form, bool loads)
{
    jit_state *jit = &walk->state;
    const cpu_access *access = &jit->lower->accesses[walk->draft->access];
    return jit_guard_is_in_loop(jit, access, form, loads)
               ? jit_value_of(jit, JIT_OPEN_LANES, access->guard, HAL_TYPE_BOOL)
               : JIT_NONE;
}

/* The address of an access, before the open program. False: it has no such form. */
static bool address_emit(jit_walk *walk, jit_access_form form, bool calls, jit_place *place)
{
    jit_state *jit = &walk->state;
    if (jit_follow_emit(jit, walk->draft, form, calls, place)) {
        return true;
    }
    *place = (jit_place){.pointer = jit->open.pointer_count};
    if (jit_is_of_rows(form)) {
        jit_rows_emit(jit, walk->draft, form, place->pointer, calls);
    } else if (form != JIT_ACCESS_LINE ||
               !jit_access_emit(jit, walk->draft, place->pointer, calls)) {
        return false;
    }
    jit->open.pointer_count++;
    jit_leader_set(jit, walk->draft, form, false, place->pointer);
    return true;
}

/* The operation that was appended last accesses memory there. */
static void place_set(jit_walk *walk, jit_place place)
{
    jit_node *node = jit_last(&walk->state.open.lanes);
    node->access = walk->draft->access;
    node->aux = place.pointer;
    node->distance = place.distance;
}

static void load_append(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    const cpu_access *access = &jit->lower->accesses[walk->draft->access];
    const uint32_t name = access->values[0];
    const jit_access_form form = jit_access_form_of(jit, walk->draft);
    jit_place place;
    if (jit_gather_is_wanted(jit, walk->draft)) {
        jit_gather_append(jit, walk->draft);
        return;
    }
    step_advance(walk, true);
    if (walk->step->access->width == 1 && jit_is_of_rows(form) && jit->lower->names[name].view) {
        jit_private_emit(jit, walk->step->access->values[0]);
    }
    if (walk->step->access->width != 1 || jit_slot_is(jit->open.stored_by, jit, name) ||
        jit->open.pointer_count >= JIT_LOOP_POINTERS || !address_emit(walk, form, true, &place)) {
        step_call(walk);
        return;
    }
    jit_references_note(jit, walk->draft, JIT_OPEN_LANES);
    const jit_value guard = guard_value(walk, form, true);
    const jit_value d = jit_operation(&jit->open.lanes, JIT_LOAD, access->type,
                                      hal_type_of_value(access->type), guard, JIT_NONE, JIT_NONE);
    place_set(walk, place);
    const bool writes_memory = jit->open.writes_memory;
    jit_name_define(jit, JIT_OPEN_LANES, name, d);
    jit->open.writes_memory = writes_memory; /* its slot is no view of memory */
}

static void deferred_store_add(jit_walk *walk, uint32_t pointer)
{
    jit_state *jit = &walk->state;
    uint32_t names[CPU_REFERENCES];
    const uint32_t count = cpu_names_read(jit->lower, walk->draft, names);
    for (uint32_t k = 0; k < count; k++) {
        jit_slot_mark(jit, jit->open.stored_by, names[k]);
        jit_slot_mark(jit, jit->open.used_by, names[k]);
    }
    jit->open.stores[jit->open.store_count++] =
        (jit_deferred_store){.draft = walk->draft, .pointer = pointer};
    jit->open.writes_memory = true;
}

/* Stores to one memory stay in order: a step that is still to come would overwrite what the loop
 * writes. */
static void deferred_stores_precede(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    const cpu_access *access = &jit->lower->accesses[walk->draft->access];
    bool earlier = false;
    for (uint32_t i = 0; i < jit->open.store_count; i++) {
        const cpu_access *other = &jit->lower->accesses[jit->open.stores[i].draft->access];
        earlier = earlier ||
                  (other->memory == access->memory && !jit_accesses_differ(jit, access, other));
    }
    if (earlier) {
        jit_all_flush(jit);
    }
}

static void store_append(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    const uint32_t name = jit->lower->accesses[walk->draft->access].values[0];
    deferred_stores_precede(walk);
    jit_place place;
    if (jit_scatter_is_wanted(jit, walk->draft)) {
        jit_scatter_append(jit, walk->draft);
        return;
    }
    if (jit->open.store_count >= JIT_MAX_POINTERS || jit->open.pointer_count >= JIT_LOOP_POINTERS) {
        jit_all_flush(jit);
    }
    const jit_access_form form = jit_access_form_of(jit, walk->draft);
    if (walk->step->aux && !jit_is_of_rows(form)) {
        deferred_store_add(walk, JIT_NONE);
        return;
    }
    step_advance(walk, false);
    if (walk->step->access->width != 1 || !address_emit(walk, form, false, &place)) {
        jit_all_flush(jit);
        step_call(walk);
        return;
    }
    const hal_type value = hal_type_of_value(walk->action.type);
    jit_references_note(jit, walk->draft, JIT_OPEN_LANES);
    const jit_value a = jit_value_of(jit, JIT_OPEN_LANES, name, value),
                    guard = guard_value(walk, form, false);
    jit_operation(&jit->open.lanes, JIT_STORE, walk->action.type, HAL_TYPE_NONE, a, guard,
                  JIT_NONE);
    place_set(walk, place);
    deferred_store_add(walk, place.pointer);
}

/* Rows and single elements are no view of memory: they are loaded, and stored by their store. */
static void rows_view(jit_walk *walk, bool is_load)
{
    jit_state *jit = &walk->state;
    if (is_load) {
        load_append(walk);
        return;
    }
    step_advance(walk, false);
    jit_references_note(jit, walk->draft, JIT_OPEN_LANES);
    jit_private_emit(jit, walk->step->access->values[0]);
}

/* ---- control ---- */

static void loop_emit(jit_walk *walk, uint32_t target)
{
    jit_state *jit = &walk->state;
    x86_code *code = &jit->code;
    const cpu_step *step = walk->step;
    const bool is_signed = hal_type_is_signed((hal_type)step->aux);
    const bool begins = walk->action.class == CPU_STEP_LOOP_BEGIN;
    x86_general(code, X86_LOAD, false, JIT_SCRATCH, jit_block(jit, begins ? step->a : step->d));
    if (!begins) {
        x86_general(code, X86_ADD, false, JIT_SCRATCH, jit_block(jit, step->c));
    }
    jit->target->general_broadcast(jit, 0, JIT_SCRATCH);
    block_store(walk, step->d, 4);
    x86_general(code, X86_CMP, false, JIT_SCRATCH, jit_block(jit, step->b));
    const uint32_t outside = is_signed ? X86_GREATER_EQUAL : X86_ABOVE_EQUAL;
    const uint32_t inside = is_signed ? X86_LESS : X86_BELOW;
    x86_jump_if(code, begins ? outside : inside, target);
}

/* True if the draft is control and has code. */
static bool control_emit(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    x86_code *code = &jit->code;
    const cpu_step *step = walk->step;
    if (walk->action.class == CPU_STEP_END) {
        jit_all_flush(jit);
        x86_jump(code, jit->leave);
        return true;
    }
    if (walk->draft->target == CPU_NONE) {
        return false;
    }
    jit_all_flush(jit);
    const uint32_t target = jit->step_labels[walk->draft->index + (uint32_t)step->jump];
    if (walk->action.class == CPU_STEP_JUMP) {
        x86_jump(code, target);
    } else if (walk->action.class == CPU_STEP_BRANCH) {
        x86_general(code, X86_LOAD, false, JIT_SCRATCH, jit_block(jit, step->a));
        x86_general(code, X86_TEST, false, JIT_SCRATCH, x86_register(JIT_SCRATCH));
        x86_jump_if(code, X86_EQUAL, target);
    } else if (walk->action.class == CPU_STEP_LOOP_BEGIN ||
               walk->action.class == CPU_STEP_LOOP_NEXT) {
        loop_emit(walk, target);
    } else { /* the step decides between the next one and the target */
        step_call(walk);
        x86_load_immediate(code, X86_RCX, (uint64_t)(uintptr_t)(step + 1));
        x86_general(code, X86_CMP, true, JIT_SCRATCH, x86_register(X86_RCX));
        x86_jump_if(code, X86_NOT_EQUAL, target);
    }
    return true;
}

/* ---- a kernel ---- */

/* Whether a draft has values of 64 bits. */
static bool draft_is_wide(const jit_walk *walk)
{
    const cpu_lower *lower = walk->state.lower;
    uint32_t names[2 * CPU_REFERENCES];
    uint32_t count = cpu_names_written(lower, walk->draft, names);
    count += cpu_names_read(lower, walk->draft, names + count);
    for (uint32_t k = 0; k < count; k++) {
        if (names[k] != CPU_NONE && lower->names[names[k]].bytes == 8) {
            return true;
        }
    }
    return false;
}

/* A view of memory, or the address where a stored value is computed. */
static void view_emit(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    const bool is_view = walk->action.class == CPU_STEP_VIEW;
    const jit_access_form form = jit_access_form_of(jit, walk->draft);
    if (jit_is_of_rows(form) || (is_view ? jit_gather_is_wanted(jit, walk->draft)
                                         : jit_scatter_is_wanted(jit, walk->draft))) {
        rows_view(walk, is_view);
        return;
    }
    deferred_stores_precede(walk);
    step_advance(walk, is_view);
    for (uint32_t k = 0; k < walk->step->access->width; k++) {
        jit->facts.viewed[jit->lower->accesses[walk->draft->access].values[k]] =
            1 + walk->draft->access;
    }
    if (jit_follow_emit(jit, walk->draft, JIT_ACCESS_LINE, true, NULL)) {
        return;
    }
    if (jit_access_emit(jit, walk->draft, JIT_NONE, true)) {
        jit_leader_set(jit, walk->draft, JIT_ACCESS_LINE, true, JIT_VIEW_POINTER);
    } else {
        jit_stream_give_up(jit, walk->step->access);
        step_call(walk);
    }
}

static void operation_emit(jit_walk *walk)
{
    const cpu_action *action = &walk->action;
    if (jit_is_supported(walk->state.target, action->opcode, action->type, action->result)) {
        operation_append(walk);
    } else if (!element_append(walk)) {
        step_advance(walk, true);
        if (!input_emit(walk)) {
            step_call(walk);
        }
    }
}

/* Masks. */
static void mask_emit(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    step_advance(walk, false);
    jit_of_rows_note(jit, walk->draft);
    bool has_code = true;
    switch (walk->action.class) {
    case CPU_STEP_CHOOSE:
        jit_choose_emit(jit, walk->draft);
        break;
    case CPU_STEP_BOTH:
        has_code = jit_both_emit(jit, walk->draft);
        break;
    default:
        has_code = jit_bound_emit(jit, walk->draft);
    }
    if (!has_code) {
        step_call(walk);
    }
}

void jit_draft_emit(jit_walk *walk)
{
    jit_state *jit = &walk->state;
    if (control_emit(walk)) {
        return;
    }
    if (jit->open.lanes.narrow && draft_is_wide(walk)) {
        jit_all_flush(jit);
    }
    switch (walk->action.class) {
    case CPU_STEP_OPERATION:
        operation_emit(walk);
        break;
    case CPU_STEP_MOVE:
    case CPU_STEP_BLEND:
        operation_append(walk);
        break;
    case CPU_STEP_VIEW:
    case CPU_STEP_ADDRESS:
        view_emit(walk);
        break;
    case CPU_STEP_LOAD:
        load_append(walk);
        break;
    case CPU_STEP_STORE:
        store_append(walk);
        break;
    case CPU_STEP_WITHIN:
    case CPU_STEP_BEYOND:
    case CPU_STEP_BOTH:
    case CPU_STEP_CHOOSE:
        mask_emit(walk);
        break;
    case CPU_STEP_AFFINE:
        if (!jit_affine_append(jit, walk->draft)) {
            step_advance(walk, false);
            jit_of_rows_note(jit, walk->draft);
            step_call(walk);
        }
        break;
    case CPU_STEP_EXCHANGE:
        if (!exchange_append(walk)) {
            jit_all_flush(jit);
            step_call(walk);
        }
        break;
    default:
        jit_all_flush(jit);
        step_call(walk);
    }
}
