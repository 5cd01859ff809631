/* Entries of a plugin that leave the process as they found it. */
#ifndef PLUGINS_KIT_GUARD_H
#define PLUGINS_KIT_GUARD_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the entries of the plugin's table by ones that call them. All of these run in the
 * default floating-point environment, without cancellation. Those that open a driver, compile or
 * start threads run in the locale "C" and restore the thread's signal mask, alternate stack and
 * affinity; opening, and compiling until it succeeded once, also restore signal handlers, locale
 * and working folder.
 * Repeated calls do nothing. */
void kit_guard_table(hal_plugin *table);

/* Called before the first query: submit and wait disable cancellation themselves where they block,
 * and wait computes nothing. For plugins without a driver. */
void kit_guard_waits_alone(void);

#ifdef __cplusplus
}
#endif

#endif
