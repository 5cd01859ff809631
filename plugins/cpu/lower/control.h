/* Branches and loops. */
#ifndef PLUGINS_CPU_LOWER_CONTROL_H
#define PLUGINS_CPU_LOWER_CONTROL_H

#include "lower/state.h"

void cpu_lower_control(cpu_lower *lower, hal_ir_value record);

#endif
