/* Calls of steps, and the addresses of accesses. */
#ifndef PLUGINS_CPU_JIT_EMISSION_ACCESS_H
#define PLUGINS_CPU_JIT_EMISSION_ACCESS_H

#include "jit/registers/state.h"

/* An operand in the slot of a uniform value. */
x86_operand jit_block(const jit_state *jit, uint32_t slot);
/* Calls a step. */
void jit_call_step(jit_state *jit, const cpu_draft *draft);
/* How the access of a draft can go through memory. */
jit_access_form jit_access_form_of(const jit_state *jit, const cpu_draft *draft);
/* Before a loop: computes the address of an access in rows, with its skip, into the pointer
 * `pointer`. Where an index might wrap around or work-items are masked, `calls` calls the step, and
 * the pointer becomes null. The guard is up to the loop if that has it. */
void jit_rows_emit(jit_state *jit, const cpu_draft *draft, jit_access_form form, uint32_t pointer,
                   bool calls);
/* Whether a loop decides about the guard of an access in rows. */
bool jit_guard_is_in_loop(const jit_state *jit, const cpu_access *access, jit_access_form form,
                          bool loads);
/* The slot of a view that the program computes points to its private buffer. */
void jit_private_emit(jit_state *jit, uint32_t slot);
int64_t jit_greatest_index(hal_type type);
/* Whether an access is contiguous. */
bool jit_line_is_supported(const cpu_access *access);
/* Before a loop: computes the address of a contiguous access into the slot of its view, or into the
 * pointer `pointer`. Where it is not contiguous `calls` calls the step, and the pointer becomes
 * null. False, without code: the access has no such form. */
bool jit_access_emit(jit_state *jit, const cpu_draft *draft, uint32_t pointer, bool calls);
/* Whether a uniform load has code; the address of its element, in JIT_SCRATCH, by rcx. The access
 * is a draft's. */
bool jit_uniform_is_supported(const cpu_access *access);
void jit_uniform_emit(jit_state *jit, const cpu_access *access);
/* An affine index compared with a bound, where all work-items are on the true side; else a call. */
bool jit_bound_emit(jit_state *jit, const cpu_draft *draft);
/* Two masks together, where both are all work-items; else a call. */
bool jit_both_emit(jit_state *jit, const cpu_draft *draft);
/* Notes whether the result of a draft that makes a mask is the same for all lanes of a row. */
void jit_of_rows_note(jit_state *jit, const cpu_draft *draft);
/* All work-items or none, as a uniform condition says. */
void jit_choose_emit(jit_state *jit, const cpu_draft *draft);
/* The address of an access at a distance from the leader; `pointer` as in jit_access_emit: false,
 * without code, if it is not. Makes an access the leader. */
bool jit_follow_emit(jit_state *jit, const cpu_draft *draft, jit_access_form form, bool calls,
                     jit_place *place);
void jit_leader_set(jit_state *jit, const cpu_draft *draft, jit_access_form form, bool is_view,
                    uint32_t pointer);
/* Whether a work-item accesses other elements by one access than by the other: at one index, and
 * different distances from it. */
bool jit_accesses_differ(const jit_state *jit, const cpu_access *x, const cpu_access *y);

#endif
