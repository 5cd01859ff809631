/* worker.h: what runs in a child process: the cases of a group one after the other, and those that
 * fail again with smaller sizes; and the messages that it sends. */
#ifndef CONFORMANCE_RUNNER_WORKER_H
#define CONFORMANCE_RUNNER_WORKER_H

#include "runner/options.h"
#include "runner/shrink.h"

/* A message and the bytes of its detail are one write, so that they never mix with others. */
typedef enum message_kind {
    MESSAGE_BEGIN,  /* of a case */
    MESSAGE_RESULT, /* of the case */
    MESSAGE_TRY,    /* the next smaller sizes of the case that failed */
    MESSAGE_TRIED,  /* what came of them */
    MESSAGE_ANEW,   /* the rest needs another process: the device cannot be opened here any more */
    MESSAGE_FORKED  /* from a copy of the child that a call came back in */
} message_kind;

typedef struct message {
    uint32_t kind;
    uint32_t index; /* in the results */
    uint32_t status;
    uint32_t detail_bytes;
    double seconds; /* of the case; BEGIN: of the opening of the device */
} message;

/* Results [next, end) are still to be run. The child works on a copy of the runner's. */
typedef struct worker_task {
    const runner_options *options;
    const report_result *results;
    size_t next, end;
    size_t shrunk;                     /* the result that `search` is about */
    shrink search;                     /* without a family: inactive */
    double shrink_began, shrink_until; /* by child_now */
    double shrink_spent;               /* on earlier cases of the group, in seconds */
} worker_task;

/* The body of the child; `user` is the task. */
void worker_run(void *user, int fd);

/* Begins the search for smaller sizes of a case that has failed, if its family has any, it was not
 * expected to fail, and the group's time for it is not used up. */
bool worker_begin_shrink(worker_task *task, size_t index);
void worker_end_shrink(worker_task *task);

#endif
