/* Facts about records, found before the lowering. */
#ifndef PLUGINS_CPU_LOWER_PLAN_H
#define PLUGINS_CPU_LOWER_PLAN_H

#include "lower/state.h"

bool cpu_plan_records(cpu_lower *lower);

#endif
