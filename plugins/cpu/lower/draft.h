/* Drafts, names and values. After a failure the functions have no effect and return something
 * usable, so that callers check the status once at the end. */
#ifndef PLUGINS_CPU_LOWER_DRAFT_H
#define PLUGINS_CPU_LOWER_DRAFT_H

#include "lower/state.h"

/* Fails with "the cpu plugin does not support <what>"; the first failure counts. */
void cpu_unsupported(cpu_lower *lower, const char *what);
/* Makes room for one more element. Returns the array, moved or not. */
void *cpu_grow(cpu_lower *lower, void *array, uint32_t count, uint32_t *capacity, size_t size);
uint32_t cpu_new_name(cpu_lower *lower, hal_type type, bool uniform, bool view);
/* Adds a draft without operands; never null. */
cpu_draft *cpu_draft_add(cpu_lower *lower, uint32_t section, cpu_action action);
/* Adds a draft over all lanes to the group section. */
cpu_draft *cpu_draft_lanes(cpu_lower *lower, cpu_action action, uint32_t d, uint32_t a, uint32_t b);
/* Adds a copy of a value; `uniform`: of a uniform one to each lane. */
cpu_draft *cpu_draft_move(cpu_lower *lower, hal_type type, bool uniform, uint32_t d, uint32_t a);
cpu_quantity cpu_known(uint64_t bits);
/* The name that holds a quantity; of a constant where it is known. */
uint32_t cpu_quantity_name(cpu_lower *lower, cpu_quantity quantity, hal_type type);
/* The name of a value in all lanes; a uniform value is copied to each of them. */
uint32_t cpu_spread(cpu_lower *lower, const cpu_value *value);
void cpu_set_varying(cpu_lower *lower, hal_ir_value record, uint32_t name);

#endif
