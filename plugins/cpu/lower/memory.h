/* Loads, stores, atomics, asynchronous copies and their checks. */
#ifndef PLUGINS_CPU_LOWER_MEMORY_H
#define PLUGINS_CPU_LOWER_MEMORY_H

#include "lower/state.h"

/* A condition in lanes; a uniform one becomes all or none. */
uint32_t cpu_mask_of(cpu_lower *lower, const cpu_value *value);

void cpu_lower_load(cpu_lower *lower, hal_ir_value record);
void cpu_lower_store(cpu_lower *lower, hal_ir_value record);
void cpu_lower_atomic(cpu_lower *lower, hal_ir_value record);
void cpu_lower_async_copy(cpu_lower *lower, hal_ir_value record);
uint32_t cpu_lower_address(cpu_lower *lower, hal_ir_value store);
/* In checked kernels: adds a step that checks an access, and whose result guards it. */
void cpu_lower_check(cpu_lower *lower, hal_ir_value record, uint32_t access, bool uniform);

#endif
