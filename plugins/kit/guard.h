/* Entries of a plugin that leave the process as they found it. */
#ifndef PLUGINS_KIT_GUARD_H
#define PLUGINS_KIT_GUARD_H

#include "tables.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the entries of the plugin's tables by ones that call them. All of these run in the
 * default floating-point environment, without cancellation, and with the host of their instance as
 * kit_host(). Those that open a driver, compile or start threads run in the locale "C" and restore
 * the thread's signal mask, alternate stack and affinity; opening, and compiling until it succeeded
 * once, also restore signal handlers, locale and working folder. enumerate, device_open and
 * device_close of all instances run one at a time.
 * Repeated calls do nothing. Threads: one at a time. */
void kit_guard_plugin(kit_plugin *plugin);

/* Called before the first instance: submit and wait disable cancellation themselves, where they
 * block, and wait computes nothing and has no message. For plugins without a driver, whose submits
 * are shorter than that. */
void kit_guard_waits_alone(void);

#ifdef __cplusplus
}
#endif
#endif
