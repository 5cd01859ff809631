/* child.h: processes of our own that may crash, hang, print or fork without harm, and what they
 * send back. */
#ifndef CONFORMANCE_CASE_CHILD_H
#define CONFORMANCE_CASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid; /* 0: none */
    int fd;    /* what the child writes can be read here */
    bool killed;
} child;

/* Starts `body` in a process and a process group of its own, which ends with it (by exit, so that
 * leak checkers run); `fd` is where it writes. Its standard output is a file in memory, see
 * child_printed. False with errno. */
typedef void (*child_body)(void *user, int fd);
bool child_start(child *started, child_body body, void *user);

/* A file without a name that ends with its last descriptor; -1 with errno. */
int child_unnamed_file(void);

/* In the child: what was printed to standard output since the last call, its beginning; "" when
 * nothing was. Nobody but the program itself may print there. All of it goes to standard error. */
void child_printed(char *text, size_t bytes);

/* Whether the child has ended. Then `text` says how: "ended by signal 11 (Segmentation fault)",
 * "ended with status 3"; "" for status 0. Processes that it left behind are ended; what it wrote
 * can still be read until child_close. */
bool child_has_ended(child *ended, char *text, size_t bytes);
void child_close(child *ended);

/* Waits for the end, but not for long: ends a child that takes more than `seconds`. Closes it. */
void child_finish(child *ended, double seconds, char *text, size_t bytes);

/* Ends a child that hangs, and what it started; to be finished afterwards. */
void child_kill(child *hung);

/* Write and read all of it; false at an error or the end. child_read_within also gives up after
 * some seconds. */
bool child_write(int fd, const void *data, size_t bytes);
bool child_read(int fd, void *data, size_t bytes);
bool child_read_within(int fd, double seconds, void *data, size_t bytes);

/* Seconds of a clock that parent and child share. */
double child_now(void);

/* Processor seconds of this process and of those that it has waited for: of a compiler that runs
 * in either, whatever else the machine does. */
double child_processor_seconds(void);

#endif
