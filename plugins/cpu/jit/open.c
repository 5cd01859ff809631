/* The open programs: which values they have for names, and their end. */
#include "jit/open.h"

#include "jit/registers/slow.h"
#include "jit/emission/loop.h"
#include "jit/emission/split.h"
#include "lower/slots.h"

jit_program *jit_program_of(jit_state *jit, uint32_t which)
{
    return which == JIT_OPEN_UNIFORM ? &jit->open.uniform : &jit->open.lanes;
}

/* What the open program knows of a name. */
jit_name *jit_name_in(jit_state *jit, uint32_t which, uint32_t name)
{
    jit_name *known = &jit->open.names[which][name];
    if (known->generation != jit->open.generation[which]) {
        *known = (jit_name){.generation = jit->open.generation[which], .value = JIT_NONE};
    }
    return known;
}

/* Values that the program makes last for a name are kept if something else refers to the name. */
static void program_keep(jit_state *jit, uint32_t which)
{
    jit_program *program = jit_program_of(jit, which);
    for (uint32_t i = 0; i < program->value_count; i++) {
        jit_entry *entry = &program->values[i];
        if (entry->kind != JIT_TEMPORARY || entry->name == JIT_NONE) {
            continue;
        }
        const jit_name *known = jit_name_in(jit, which, entry->name);
        entry->keep =
            known->value == i &&
            (known->read_first || known->references != jit->facts.references[entry->name] ||
             jit->lower->names[entry->name].lasting);
    }
}

void jit_program_flush(jit_state *jit, uint32_t which)
{
    jit_program *program = jit_program_of(jit, which);
    if (program->node_count > 0) {
        program_keep(jit, which);
        jit_program_round_once(program);
        if (which == JIT_OPEN_UNIFORM || !jit_split_emit(jit, program)) {
            jit_loop_emit(jit, program, which == JIT_OPEN_UNIFORM);
        }
    }
    jit_program_clear(program);
    jit->open.generation[which]++;
}

/* Stores that the loop has not done. */
static void deferred_stores_emit(jit_state *jit)
{
    x86_code *code = &jit->code;
    for (uint32_t i = 0; i < jit->open.store_count; i++) {
        const jit_deferred_store *store = &jit->open.stores[i];
        jit_slow *slow = jit_slow_add(jit);
        if (!slow) {
            break;
        }
        slow->draft = store->draft;
        if (store->pointer == JIT_NONE) {
            const int32_t slot = (int32_t)(8 * jit_step_of(jit, store->draft)->access->values[0]);
            x86_general(code, X86_LOAD, true, JIT_SCRATCH, x86_memory(JIT_SLOTS, slot));
            x86_general(code, X86_CMP, true, JIT_SCRATCH, x86_memory(JIT_SLOTS, slot + 8));
        } else {
            x86_general(code, X86_LOAD, true, JIT_SCRATCH,
                        x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * store->pointer)));
            x86_general(code, X86_TEST, true, JIT_SCRATCH, x86_register(JIT_SCRATCH));
        }
        x86_jump_if(code, X86_EQUAL, slow->label);
        x86_bind(code, slow->back);
    }
    jit->open.store_count = 0;
}

/* Ends the open programs. */
void jit_all_flush(jit_state *jit)
{
    jit_program_flush(jit, JIT_OPEN_UNIFORM);
    jit_program_flush(jit, JIT_OPEN_LANES);
    deferred_stores_emit(jit);
    jit->open.leader.known = false;
    jit->open.chosen_last = 0;
    jit->open.pointer_count = 0;
    jit->open.writes_memory = false;
}

static uint32_t slot_of_name(const jit_state *jit, uint32_t name)
{
    return name == CPU_NONE ? CPU_NONE : jit->lower->names[name].slot;
}

bool jit_slot_is(const uint32_t *marks, const jit_state *jit, uint32_t name)
{
    const uint32_t slot = slot_of_name(jit, name);
    return slot != CPU_NONE && marks[slot] == jit->open.generation[JIT_OPEN_LANES];
}

void jit_slot_mark(const jit_state *jit, uint32_t *marks, uint32_t name)
{
    const uint32_t slot = slot_of_name(jit, name);
    if (slot != CPU_NONE) {
        marks[slot] = jit->open.generation[JIT_OPEN_LANES];
    }
}

/* The value of a name in an open program. */
jit_value jit_value_of(jit_state *jit, uint32_t which, uint32_t name, hal_type type)
{
    jit_program *program = jit_program_of(jit, which);
    jit_name *known = jit_name_in(jit, which, name);
    const cpu_constant_name *constant = jit->facts.constants[name];
    if (constant) {
        return jit_constant(program, type, constant->bits);
    }
    if (which == JIT_OPEN_LANES) {
        jit_slot_mark(jit, jit->open.used_by, name);
    }
    if (known->value == JIT_NONE) {
        known->value = jit_named(program, jit->lower->names[name].uniform ? JIT_UNIFORM : JIT_LANES,
                                 type, name);
        known->read_first = true;
    }
    return known->value;
}

void jit_name_define(jit_state *jit, uint32_t which, uint32_t name, jit_value value)
{
    jit_program *program = jit_program_of(jit, which);
    jit_name_in(jit, which, name)->value = value;
    if (!program->failed) {
        program->values[value].name = name;
    }
    if (which == JIT_OPEN_LANES) {
        jit_slot_mark(jit, jit->open.used_by, name);
        jit_slot_mark(jit, jit->open.written_by, name);
        jit->open.writes_memory = jit->open.writes_memory || jit->lower->names[name].view;
    }
}

/* Whether the open lane program computes a name from the result of a function. */
static bool name_follows(jit_state *jit, uint32_t name)
{
    const jit_value value =
        name == CPU_NONE ? JIT_NONE : jit_name_in(jit, JIT_OPEN_LANES, name)->value;
    return value != JIT_NONE && jit->open.lanes.values[value].follows;
}

void jit_references_note(jit_state *jit, const cpu_draft *draft, uint32_t which)
{
    uint32_t names[CPU_REFERENCES];
    for (uint32_t pass = 0; pass < 2; pass++) {
        const uint32_t count = pass == 0 ? cpu_names_written(jit->lower, draft, names)
                                         : cpu_names_read(jit->lower, draft, names);
        for (uint32_t k = 0; k < count; k++) {
            if (names[k] != CPU_NONE) {
                jit_name_in(jit, which, names[k])->references++;
            }
        }
    }
}

uint32_t jit_program_choose(jit_state *jit, uint32_t name)
{
    const uint32_t which = jit->lower->names[name].uniform ? JIT_OPEN_UNIFORM : JIT_OPEN_LANES;
    if (jit_slot_is(which == JIT_OPEN_UNIFORM ? jit->open.used_by : jit->open.stored_by, jit,
                    name)) {
        jit_all_flush(jit);
    }
    return which;
}

void jit_functions_part(jit_state *jit, const cpu_draft *draft)
{
    const bool has_iterations = jit->lower->n > jit->target->lanes * jit->target->most_parts;
    if (has_iterations && !jit->lower->names[draft->d].uniform &&
        (name_follows(jit, draft->a) || name_follows(jit, draft->b))) {
        jit_all_flush(jit);
    }
}
