/* The control groups of this process, of version 1 and 2. */
#ifndef PLUGINS_CPU_THREADS_CONTROL_GROUP_H
#define PLUGINS_CPU_THREADS_CONTROL_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Calls `visit` with the folder of the process's group for a controller such as "cpu", and with
 * those of all groups above it, up to the root of the hierarchy; `version` is 1 or 2. The group of
 * a container is often not visible under its path, but its files are at the root. `root`: "", or a
 * folder that looks like a system's. Threads: any. */
void cpu_control_group_visit(const char *root, const char *controller,
                             void (*visit)(const char *folder, int version, void *user),
                             void *user);

/* Bytes of memory that the groups grant: the least limit, and the least that one of them leaves;
 * UINT64_MAX without a limit. Threads: any. */
void cpu_control_group_memory(const char *root, uint64_t *limit, uint64_t *left);

/* Reads the first line of a file of a group. Returns whether there is one. */
bool cpu_control_group_read(const char *folder, const char *file, char *line, int bytes);

#endif
