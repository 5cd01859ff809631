/* Allowed processors and quotas of control groups, see processors.h. Files that are missing or
 * have unknown text grant no limit. */
#include "threads/processors.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, MAX_PROCESSORS = 1 << 20 };

static bool line_read(const char *path, char *line, int bytes)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    const bool found = fgets(line, bytes, file) != NULL;
    fclose(file);
    return found;
}

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
    char path[PATH_BYTES + 32], line[64];
    long long quota = 0, period = 0;
    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    if (!line_read(path, line, sizeof(line)) || sscanf(line, "%lld %lld", &quota, &period) != 2) {
        return UINT32_MAX;
    }
    return processors_of(quota, period);
}

/* Quota of one group of version 1; -1 is no limit. */
static uint32_t quota_of_group1(const char *folder)
{
    char path[PATH_BYTES + 32], line[64];
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
    const long long quota = line_read(path, line, sizeof(line)) ? strtoll(line, NULL, 10) : -1;
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    const long long period = line_read(path, line, sizeof(line)) ? strtoll(line, NULL, 10) : -1;
    return processors_of(quota, period);
}

/* The least quota of a group and of those above it, up to the root of the hierarchy. The group of
 * a container is often not visible under its path, but its files are at the root. */
static uint32_t quota_of_path(const char *hierarchy, const char *group,
                              uint32_t (*quota_of)(const char *folder))
{
    char folder[PATH_BYTES];
    const size_t root = strlen(hierarchy);
    uint32_t least = UINT32_MAX;
    if ((size_t)snprintf(folder, sizeof(folder), "%s%s", hierarchy, group) >= sizeof(folder)) {
        return least;
    }
    for (;;) {
        const uint32_t quota = quota_of(folder);
        least = quota < least ? quota : least;
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + root) {
            return least;
        }
        *slash = '\0';
    }
}

/* Whether the comma-separated list of controllers has "cpu". */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == 3 && strncmp(at, "cpu", 3) == 0) {
            return true;
        }
    }
    return false;
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
    char path[PATH_BYTES], line[PATH_BYTES];
    uint32_t least = UINT32_MAX;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        /* ID:CONTROLLERS:PATH; the list is empty in version 2. */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        uint32_t quota = UINT32_MAX;
        if (!group) {
            continue;
        }
        *group++ = '\0';
        if (*++controllers == '\0') {
            snprintf(path, sizeof(path), "%s/sys/fs/cgroup", root);
            quota = quota_of_path(path, group, quota_of_group2);
        } else if (has_cpu(controllers)) {
            snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", root, controllers);
            quota = quota_of_path(path, group, quota_of_group1);
        }
        least = quota < least ? quota : least;
    }
    if (file) {
        fclose(file);
    }
    return least;
}
