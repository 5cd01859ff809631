/* Where the values of a lane program are: registers, slots, the frame. */
#ifndef PLUGINS_CPU_JIT_REGISTERS_REGISTERS_H
#define PLUGINS_CPU_JIT_REGISTERS_REGISTERS_H

#include "jit/registers/state.h"

/* The place of a pointer's skip. */
static inline x86_operand jit_skip_of(uint32_t pointer)
{
    return x86_memory(X86_RSP, (int32_t)(JIT_FRAME_SKIPS + 8 * pointer));
}

/* The lanes of a vector in this program. */
static inline uint32_t jit_lanes(const jit_state *jit, const jit_program *program)
{
    return program->wide ? jit->target->lanes / 2u : jit->target->lanes;
}

/* By how many elements a row's lanes are apart in memory: 0 where that is not known, or neither 1
 * nor what the instruction set loads. */
uint32_t jit_apart_of(const jit_state *jit, const cpu_access *access);
/* The vector length of a type in this program. */
x86_form jit_form(const jit_state *jit, hal_type type);
/* Memory at a pointer of the program, in elements of `bytes` that belong to the vector's lanes; of
 * JIT_ACCESS_ROW_ELEMENT the row's element. */
x86_operand jit_pointed(jit_state *jit, uint32_t key, uint32_t bytes, uint32_t part);
/* A mask of the vector's lanes that are work-items, in a register that lasts for one access; 0: all
 * are, in every vector. */
uint32_t jit_items_mask(jit_state *jit, uint32_t part);
/* The register of a pointer's address; JIT_SCRATCH: loaded. */
uint32_t jit_pointer_register(jit_state *jit, uint32_t key);
/* The register of an operand, loaded if need be; the register or memory of an operand. */
uint32_t jit_use(jit_state *jit, const jit_node *node, uint32_t k);
x86_operand jit_source(jit_state *jit, const jit_node *node, uint32_t k);
/* A register for the result. */
uint32_t jit_result(jit_state *jit, const jit_node *node);
/* Of a function: moves its operands to where it expects them, and what it overwrites elsewhere. */
void jit_arguments(jit_state *jit, const jit_node *nodes);
/* Says that a register has a value; empties a register. */
void jit_register_set(jit_state *jit, jit_value value, uint32_t reg);
void jit_register_empty(jit_state *jit, uint32_t reg);
/* A register for the result: that of operand k if nothing else needs it. */
uint32_t jit_result_over(jit_state *jit, const jit_node *node, uint32_t k);
/* After a node: stores a result that is kept and frees what is used no more. */
void jit_release(jit_state *jit, const jit_node *node);
void jit_registers_clear(jit_state *jit);
/* A choice: vectors that are used now keep their values on both sides, masks go to memory; forgets
 * what a side has in other registers. */
void jit_registers_lock(jit_state *jit);
void jit_registers_restore(jit_state *jit);
/* Memory with an operand that is in its slot, as the lanes have it that are `apart` from this
 * part's first one: a multiple of a vector's lanes. The lane changes until jit_elsewhere_end. */
x86_operand jit_elsewhere(jit_state *jit, const jit_node *node, uint32_t apart);
void jit_elsewhere_end(jit_state *jit, uint32_t apart);
/* The registers in use, as bits. */
void jit_registers_used(const jit_state *jit, uint32_t *vectors, uint32_t *masks);
/* Stores a value in its slot. */
void jit_store_home(jit_state *jit, jit_value value);
void jit_load_home(jit_state *jit, jit_value value, uint32_t reg);

#endif
