/* The processors that the process may use. */
#ifndef PLUGINS_CPU_THREADS_PROCESSORS_H
#define PLUGINS_CPU_THREADS_PROCESSORS_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the processors that the process may run on (at least 1). */
uint32_t cpu_processors_allowed(void);

/* Returns the processors' worth of time that the control groups of the process grant, rounded up;
 * UINT32_MAX without a quota. Reads proc/self/cgroup and sys/fs/cgroup (version 1 and 2) under the
 * folder `root`, which is "" except in tests. */
uint32_t cpu_processors_quota(const char *root);

/* The processors that a thread may use (0: the caller), in a set of *bytes bytes however many the
 * system has. The caller releases it by CPU_FREE. Null: the system does not tell, or no memory. */
cpu_set_t *cpu_processors_set(pid_t thread, size_t *bytes);

#endif
