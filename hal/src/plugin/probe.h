/* Abilities that a device claims and its driver gets wrong. Known-answer kernels run once per
 * driver in a child process (tools/hal_probe.c), and the verdict is kept in the compile cache.
 * Called by core/device_lifecycle.c. */
#ifndef HAL_SRC_PLUGIN_PROBE_H
#define HAL_SRC_PLUGIN_PROBE_H

#include "cache.h"
#include "loader.h"

/* A probe that runs while the device is opened. */
typedef struct hal_probe hal_probe;

/* Clears in `info` what the driver is known to get wrong, and sets *findings to a line "ability:
 * reason" for each, which is null or the caller's to free. Where nothing is known yet, starts
 * hal-probe and returns what hal_probe_end ends; null otherwise. `module` and `scope` live until
 * then. Processors and software devices are not probed: they have no vendor's driver. Nor is any
 * device without a compile cache, which would repeat the work in each process, or with
 * HAL_PROBE=off. Threads: under the registry's lock. */
hal_probe *hal_probe_begin(const hal_module *module, uint32_t index, const hal_cache_scope *scope,
                           hal_device_info *info, char **findings);

/* Waits for the verdict and keeps it; for `info` and *findings see hal_probe_begin. Destroys
 * `probe`, which may be null. */
void hal_probe_end(hal_probe *probe, hal_device_info *info, char **findings);

#endif
