/* Probes plugins in a child process, so that one that crashes, hangs or exits when it is loaded or
 * asked for its devices becomes a line of a report. */
#ifndef HAL_TOOLS_PLUGIN_PROBE_H
#define HAL_TOOLS_PLUGIN_PROBE_H

#include <hal/hal.h>

/* Loads all plugins in a child process, again and again without those that end it, which are
 * excluded from this process's registry. Called before the process has threads or plugins.
 * Errors: IO where no child can be made. */
hal_status plugin_probe(void);

#endif
