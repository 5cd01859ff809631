/* Features that a device claims and its driver gets wrong. Known-answer kernels run once per
 * driver in a child process (tools/hal_probe.c), and the verdict is kept in the compile cache. */
#ifndef HAL_SRC_PLUGIN_PROBE_H
#define HAL_SRC_PLUGIN_PROBE_H

#include "cache.h"
#include "loader.h"

/* Verdicts are found in the compile cache and in the folder halyard/verdicts next to the library.
 *
 * Clears in `info` what the driver gets wrong, or sets its types in wrong_constants, and adds a
 * line "feature: reason" for each to *findings, which is null or the caller's to free. Processors
 * are asked about constants only, and where a driver compiles for them. No device is asked without
 * a compile cache, which would repeat the work in each process, or with HAL_PROBE=off. Threads:
 * under the registry's lock. */
void hal_probe_device(const hal_module *module, uint32_t index, const hal_cache_scope *scope,
                      hal_device_info *info, char **findings);

#endif
