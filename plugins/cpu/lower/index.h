/* Uniform quantities, and values that are affine in the ids of a work-item. */
#ifndef PLUGINS_CPU_LOWER_INDEX_H
#define PLUGINS_CPU_LOWER_INDEX_H

#include "lower/state.h"

bool cpu_lower_affine(cpu_lower *lower, hal_ir_value record);
bool cpu_lower_bound(cpu_lower *lower, hal_ir_value record);
void cpu_lower_local_id(cpu_lower *lower, hal_ir_value record);
void cpu_choose_places(cpu_lower *lower);
uint32_t cpu_access_of_index(cpu_lower *lower, const cpu_value *index);

#endif
