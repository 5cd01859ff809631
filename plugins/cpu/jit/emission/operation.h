/* Instructions of operations and accesses of memory. */
#ifndef PLUGINS_CPU_JIT_EMISSION_OPERATION_H
#define PLUGINS_CPU_JIT_EMISSION_OPERATION_H

#include "jit/registers/state.h"

/* Whether an operation has instructions. */
bool jit_is_supported(const jit_target *target, uint32_t opcode, hal_type type, hal_type result);
void jit_node_emit(jit_state *jit, const jit_node *node);
/* Between a register and memory of `type`, where the mask is true unless that is 0; lanes that are
 * not loaded become 0. `is_bf16`: the value needs no rounding to bf16. */
void jit_memory_load(jit_state *jit, hal_type type, uint32_t d, x86_operand from, uint32_t mask);
void jit_memory_store(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask,
                      bool is_bf16);
/* How many nodes from a LOAD on are emitted together: loads at one pointer, under one guard. */
uint32_t jit_loads_count(const jit_state *jit, const jit_program *program, uint32_t first);
void jit_loads_emit(jit_state *jit, const jit_node *nodes, uint32_t count);
/* After a loop: the asides of its accesses. */
void jit_asides_emit(jit_state *jit);

#endif
