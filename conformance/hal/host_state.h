/* host_state.h: what a process has of handlers, locale, folder, descriptors, variables, limits and
 * more: to be compared after each call of a plugin, and put back. */
#ifndef CONFORMANCE_HAL_HOST_STATE_H
#define CONFORMANCE_HAL_HOST_STATE_H

#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "case/case.h"

enum {
    HOST_SIGNALS = 64,
    HOST_FILES = 64,
    HOST_ATTRIBUTES = 7,
    HOST_TIMERS = 3,
    HOST_VARIABLES = 1024,
    HOST_NUMBERS = 128
};

/* What a descriptor names; zeros: it is closed. */
typedef struct file_state {
    dev_t device;
    ino_t number;
    int flags, status; /* of the descriptor, and of what it names */
} file_state;

/* What the case changes, to be put back: a report may end it anywhere. */
typedef struct host_state {
    struct sigaction handlers[HOST_SIGNALS + 1];
    sigset_t mask;
    stack_t alternate;
    char locale[128], folder[PATH_MAX];
    fenv_t environment;
    int rounding, traps, raised, cancel_state;
    uint16_t x87_control;
    bool has_denormals;
    mode_t mask_of_files;
    int priority;
    cpu_set_t processors; /* of the thread */
    struct rlimit limits[RLIM_NLIMITS];
    struct itimerval timers[HOST_TIMERS];
    file_state files[HOST_FILES];
    locale_t locale_of_thread;
    int policy, cancel_type, attributes[HOST_ATTRIBUTES];
    pid_t session, group;
    char thread[16];
    uint64_t variables[HOST_VARIABLES]; /* hashes of the environment; 0: no more */
    char numbers[HOST_NUMBERS];         /* the state of rand */
} host_state;

/* Sets a state that no plugin sets by chance. */
void host_state_make(void);

void host_state_read(host_state *state);

/* Reports, with `what` was called, the first thing that is not as before. */
void host_state_check(case_run *run, const host_state *before, const char *what);

/* Reports a temporary file that was left since host_state_make. */
void host_state_check_folder(case_run *run);

/* Runs the steps, then puts the state back, then reports. */
void host_state_with(case_run *run, case_function steps, const void *parameters);

#endif
