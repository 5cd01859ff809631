/* The processors that the process may use. */
#ifndef HALYARD_CPU_PROCESSORS_H
#define HALYARD_CPU_PROCESSORS_H

#include <stdint.h>

/* Returns the processors that the process may run on (at least 1). */
uint32_t cpu_processors_allowed(void);

/* Returns the processors' worth of time that the control groups of the process grant, rounded up;
 * UINT32_MAX without a quota. Reads proc/self/cgroup and sys/fs/cgroup (version 1 and 2) under the
 * folder `root`, which is "" but for tests. */
uint32_t cpu_processors_quota(const char *root);

#endif
