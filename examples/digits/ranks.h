/* The ranks of a training program: devices of this process with a thread each, or processes that a
 * launcher started. Used by main.c of digits and mlp. */
#ifndef EXAMPLES_DIGITS_RANKS_H
#define EXAMPLES_DIGITS_RANKS_H

#include <ops/ops.h>

#define RANKS_MAX 64

typedef struct ranks_program {
    const char *name;   /* for messages */
    const char *device; /* as in HAL_BACKEND, which it overrides; null: HAL_BACKEND */
    int ranks;          /* within the process; 0: this process is one rank of the launcher's */
    /* Called for each rank of the process, by its thread. Prints its failures and returns 0, or 1.
     * The context and the communicator are not its own. */
    int (*rank_run)(void *user, ops_context *context, hal_comm *comm);
    void *user; /* the same for all ranks */
} ranks_program;

/* Opens the devices and runs the program on all ranks of this process. Returns 1 if none failed, or
 * 0 after a message. */
int ranks_run(const ranks_program *program);

/* Prints that something failed, with hal's message. Returns 0. */
int ranks_fail(const ranks_program *program, const char *what);

#endif
