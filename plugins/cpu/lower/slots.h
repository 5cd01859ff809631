/* From drafts to steps: slots, and the arrays of the program. */
#ifndef PLUGINS_CPU_LOWER_SLOTS_H
#define PLUGINS_CPU_LOWER_SLOTS_H

#include "lower/state.h"

/* The names that a draft writes, and those that it reads; CPU_NONE among them. Returns how
 * many. */
enum { CPU_REFERENCES = 24 };
uint32_t cpu_names_written(const cpu_lower *lower, const cpu_draft *draft,
                           uint32_t names[CPU_REFERENCES]);
uint32_t cpu_names_read(const cpu_lower *lower, const cpu_draft *draft,
                        uint32_t names[CPU_REFERENCES]);
void cpu_assign_slots(cpu_lower *lower);

#endif
