/* Barriers and subgroups. */
#ifndef PLUGINS_VULKAN_LOWER_SUBGROUP_H
#define PLUGINS_VULKAN_LOWER_SUBGROUP_H

#include "lower/types.h"

#include <stdbool.h>

void lower_find_communication(lower *l); /* sets private_access */
bool lower_needs_subgroups(const hal_ir_kernel *ir);
void lower_barrier(lower *l);
uint32_t lower_subgroup(lower *l, const hal_ir_record *record);

#endif
