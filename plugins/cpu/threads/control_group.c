/* Control groups by /proc/self/cgroup, see control_group.h. */
#include "threads/control_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

typedef struct memory_grant {
    uint64_t limit, left;
} memory_grant;

/* Whether the comma-separated list of controllers has the one. */
static bool has_controller(const char *controllers, const char *controller)
{
    for (const char *at = controllers; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == strlen(controller) &&
            strncmp(at, controller, strlen(controller)) == 0) {
            return true;
        }
    }
    return false;
}

static void path_visit(const char *hierarchy, const char *group, int version,
                       void (*visit)(const char *folder, int version, void *user), void *user)
{
    char folder[PATH_BYTES];
    const size_t root = strlen(hierarchy);
    if ((size_t)snprintf(folder, sizeof(folder), "%s%s", hierarchy, group) >= sizeof(folder)) {
        return;
    }
    for (;;) {
        visit(folder, version, user);
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + root) {
            return;
        }
        *slash = '\0';
    }
}

bool cpu_control_group_read(const char *folder, const char *file, char *line, int bytes)
{
    char path[PATH_BYTES + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    FILE *opened = fopen(path, "re");
    if (!opened) {
        return false;
    }
    const bool found = fgets(line, bytes, opened) != NULL;
    fclose(opened);
    return found;
}

void cpu_control_group_visit(const char *root, const char *controller,
                             void (*visit)(const char *folder, int version, void *user),
                             void *user)
{
    char path[PATH_BYTES], line[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        /* ID:CONTROLLERS:PATH; the list is empty in version 2. */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *group++ = '\0';
        if (*++controllers == '\0') {
            snprintf(path, sizeof(path), "%s/sys/fs/cgroup", root);
            path_visit(path, group, 2, visit, user);
        } else if (has_controller(controllers, controller)) {
            snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", root, controllers);
            path_visit(path, group, 1, visit, user);
        }
    }
    if (file) {
        fclose(file);
    }
}

/* "max", which is no number, is no limit. */
static uint64_t bytes_of(const char *folder, const char *file, uint64_t otherwise)
{
    char line[64];
    char *end = line;
    const bool found = cpu_control_group_read(folder, file, line, sizeof(line));
    const unsigned long long bytes = found ? strtoull(line, &end, 10) : 0;
    return found && end != line ? bytes : otherwise;
}

static void memory_visit(const char *folder, int version, void *user)
{
    memory_grant *grant = user;
    const uint64_t limit = bytes_of(
        folder, version == 2 ? "memory.max" : "memory.limit_in_bytes", UINT64_MAX);
    const uint64_t used =
        bytes_of(folder, version == 2 ? "memory.current" : "memory.usage_in_bytes", 0);
    const uint64_t left = limit > used ? limit - used : 0;
    if (limit != UINT64_MAX) {
        grant->limit = limit < grant->limit ? limit : grant->limit;
        grant->left = left < grant->left ? left : grant->left;
    }
}

void cpu_control_group_memory(const char *root, uint64_t *limit, uint64_t *left)
{
    memory_grant grant = {UINT64_MAX, UINT64_MAX};
    cpu_control_group_visit(root, "memory", memory_visit, &grant);
    *limit = grant.limit;
    *left = grant.left;
}
