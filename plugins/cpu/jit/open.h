/* The open programs: which values they have for names, and their end. */
#ifndef PLUGINS_CPU_JIT_OPEN_H
#define PLUGINS_CPU_JIT_OPEN_H

#include "jit/registers/state.h"

jit_program *jit_program_of(jit_state *jit, uint32_t which);
/* What an open program knows of a name; its value there; says that it has made the value. */
jit_name *jit_name_in(jit_state *jit, uint32_t which, uint32_t name);
jit_value jit_value_of(jit_state *jit, uint32_t which, uint32_t name, hal_type type);
void jit_name_define(jit_state *jit, uint32_t which, uint32_t name, jit_value value);
/* Marks of slots (used_by, written_by, stored_by) for the open lane program. */
bool jit_slot_is(const uint32_t *marks, const jit_state *jit, uint32_t name);
void jit_slot_mark(const jit_state *jit, uint32_t *marks, uint32_t name);
/* Counts the names that a draft refers to as known in a program. */
void jit_references_note(jit_state *jit, const cpu_draft *draft, uint32_t which);
/* The program that a draft with result `name` belongs to; other programs end if it would change
 * what they need. */
uint32_t jit_program_choose(jit_state *jit, uint32_t name);
/* Ends a program; ends both, with the stores after them. */
void jit_program_flush(jit_state *jit, uint32_t which);
void jit_all_flush(jit_state *jit);
/* Before a transcendental function is appended: ends the programs if an operand depends on another
 * function of the lane program. A loop with functions one after the other waits for each result;
 * of a loop with one, the processor computes several iterations at a time. */
void jit_functions_part(jit_state *jit, const cpu_draft *draft);

#endif
