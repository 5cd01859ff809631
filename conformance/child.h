/* child.h: processes of our own that may crash or hang without harm, and what they send back.
 * Called by runner.c for the groups of cases and by inspect.c for the first look at the device. */
#ifndef HAL_CONFORMANCE_CHILD_H
#define HAL_CONFORMANCE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid; /* 0: none */
    int fd;    /* what the child writes can be read here */
} child;

/* Starts `body` in a process of its own, which ends with it (by exit, so that leak checkers run);
 * `fd` is where it writes. False with errno. */
typedef void (*child_body)(void *user, int fd);
bool child_start(child *started, child_body body, void *user);

/* Waits for the end and says how it was in words: "ended by signal 11 (Segmentation fault)",
 * "ended with status 3"; "" for status 0. */
void child_finish(child *ended, char *text, size_t bytes);

/* Ends a child that hangs; to be finished afterwards. */
void child_kill(child *hung);

/* Write and read all of it; false at an error or the end. */
bool child_write(int fd, const void *data, size_t bytes);
bool child_read(int fd, void *data, size_t bytes);

#endif
