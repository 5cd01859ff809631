/* Allowed processors and quotas of control groups, see processors.h. Files that are missing or
 * have unknown text grant no limit. */
#include "threads/processors.h"

#include "threads/control_group.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PROCESSORS = 1 << 20 };

static uint32_t processors_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) {
        return UINT32_MAX;
    }
    const long long count = quota / period + (quota % period != 0);
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Quota of one group of version 2: "max PERIOD" or "QUOTA PERIOD". */
static uint32_t quota_of_group2(const char *folder)
{
    char line[64];
    long long quota = 0, period = 0;
    return cpu_control_group_read(folder, "cpu.max", line, sizeof(line)) &&
                   sscanf(line, "%lld %lld", &quota, &period) == 2
               ? processors_of(quota, period)
               : UINT32_MAX;
}

static long long number_of(const char *folder, const char *file)
{
    char line[64];
    return cpu_control_group_read(folder, file, line, sizeof(line)) ? strtoll(line, NULL, 10) : -1;
}

/* Quota of one group of version 1; -1 is no limit. */
static uint32_t quota_of_group1(const char *folder)
{
    return processors_of(number_of(folder, "cpu.cfs_quota_us"),
                         number_of(folder, "cpu.cfs_period_us"));
}

static void quota_visit(const char *folder, int version, void *user)
{
    uint32_t *least = user;
    const uint32_t quota = version == 2 ? quota_of_group2(folder) : quota_of_group1(folder);
    *least = quota < *least ? quota : *least;
}

/* The system refuses sets of fewer processors than it could have. */
cpu_set_t *cpu_processors_set(pid_t thread, size_t *bytes)
{
    for (size_t processors = CPU_SETSIZE; processors <= MAX_PROCESSORS; processors *= 2) {
        cpu_set_t *set = CPU_ALLOC(processors);
        *bytes = CPU_ALLOC_SIZE(processors);
        if (!set || sched_getaffinity(thread, *bytes, set) == 0) {
            return set;
        }
        CPU_FREE(set);
        if (errno != EINVAL) {
            return NULL;
        }
    }
    return NULL;
}

uint32_t cpu_processors_allowed(void)
{
    size_t bytes = 0;
    cpu_set_t *set = cpu_processors_set(0, &bytes);
    const long count = set ? CPU_COUNT_S(bytes, set) : sysconf(_SC_NPROCESSORS_ONLN);
    if (set) {
        CPU_FREE(set);
    }
    return count < 1 ? 1 : (uint32_t)count;
}

uint32_t cpu_processors_quota(const char *root)
{
    uint32_t least = UINT32_MAX;
    cpu_control_group_visit(root, "cpu", quota_visit, &least);
    return least;
}
