/* host_state.c: the state of the process. */
#include "hal/host_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "case/comma_locale.h"

#ifdef __WALL
enum { EVERY_CHILD = __WALL }; /* also those that end with another signal than SIGCHLD */
#else
enum { EVERY_CHILD = 0 };
#endif

static uint64_t variable_hash(const char *variable)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (; *variable; variable++) {
        hash = (hash ^ (uint8_t)*variable) * 1099511628211u;
    }
    return hash;
}

static void variables_read(uint64_t variables[HOST_VARIABLES])
{
    for (int i = 0; environ && environ[i] && i < HOST_VARIABLES; i++) {
        variables[i] = variable_hash(environ[i]);
    }
}

static bool variables_have(const uint64_t variables[HOST_VARIABLES], uint64_t hash)
{
    int i = 0;
    while (i < HOST_VARIABLES && variables[i] != hash) {
        i++;
    }
    return i < HOST_VARIABLES;
}

/* The variables are the same, in any order. */
static void variables_check(case_run *run, const host_state *now, const host_state *before,
                            const char *what)
{
    for (int i = 0; environ && environ[i] && i < HOST_VARIABLES; i++) {
        case_check(run, variables_have(before->variables, variable_hash(environ[i])),
                   "%s: the environment has %s, which was not there", what, environ[i]);
    }
    for (int i = 0; i < HOST_VARIABLES; i++) {
        case_check(run,
                   !before->variables[i] || variables_have(now->variables, before->variables[i]),
                   "%s: an environment variable was changed or removed", what);
    }
}

static const char *const attribute_names[HOST_ATTRIBUTES] = {
    "whether it can be dumped",   "the signal of its parent's end",
    "the adoption of orphans",    "the slack of timers",
    "no new privileges",          "large pages",
    "the keeping of capabilities"};

/* Attributes that the system keeps of a process or a thread. */
static void attributes_read(int attributes[HOST_ATTRIBUTES])
{
#ifdef __linux__
    attributes[0] = prctl(PR_GET_DUMPABLE);
    prctl(PR_GET_PDEATHSIG, &attributes[1]);
    prctl(PR_GET_CHILD_SUBREAPER, &attributes[2]);
    attributes[3] = prctl(PR_GET_TIMERSLACK);
    attributes[4] = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    attributes[5] = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    attributes[6] = prctl(PR_GET_KEEPCAPS);
#else
    memset(attributes, 0, HOST_ATTRIBUTES * sizeof *attributes);
#endif
}

static void files_read(file_state files[HOST_FILES])
{
    for (int i = 0; i < HOST_FILES; i++) {
        struct stat file;
        if (fstat(i, &file) == 0) {
            files[i] = (file_state){file.st_dev, file.st_ino, fcntl(i, F_GETFD), fcntl(i, F_GETFL)};
        }
    }
}

/* The state of rand and random, in memory of the case from the first call on. */
static void numbers_read(char numbers[HOST_NUMBERS])
{
    static char state[HOST_NUMBERS];
    static bool is_set;
    if (!is_set) {
        initstate(4711, state, sizeof state);
        is_set = true;
    }
    memcpy(numbers, state, sizeof state);
}

void host_state_read(host_state *state)
{
    static const int timers[HOST_TIMERS] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    memset(state, 0, sizeof *state);
    fegetenv(&state->environment);
    state->rounding = fegetround();
#ifdef __GLIBC__
    state->traps = fegetexcept();
#endif
    state->raised = fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID);
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("fnstcw %0" : "=m"(state->x87_control));
#endif
    volatile float smallest = FLT_MIN;
    smallest /= 2;
    state->has_denormals = smallest != 0;
    for (int i = 1; i <= HOST_SIGNALS; i++) {
        sigaction(i, NULL, &state->handlers[i]);
    }
    pthread_sigmask(SIG_BLOCK, NULL, &state->mask);
    sigaltstack(NULL, &state->alternate);
    snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(state->folder, sizeof state->folder)) {
        state->folder[0] = 0;
    }
    state->mask_of_files = umask(0);
    umask(state->mask_of_files);
    state->priority = getpriority(PRIO_PROCESS, 0);
    sched_getaffinity(0, sizeof state->processors, &state->processors);
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        getrlimit(i, &state->limits[i]);
    }
    for (int i = 0; i < HOST_TIMERS; i++) {
        getitimer(timers[i], &state->timers[i]);
    }
    files_read(state->files);
    attributes_read(state->attributes);
    state->locale_of_thread = uselocale((locale_t)0);
    state->policy = sched_getscheduler(0);
    state->session = getsid(0);
    state->group = getpgrp();
    pthread_getname_np(pthread_self(), state->thread, sizeof state->thread);
    variables_read(state->variables);
    numbers_read(state->numbers);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state->cancel_state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &state->cancel_type);
}

static void state_write(const host_state *state)
{
    fesetenv(&state->environment);
    for (int i = 1; i <= HOST_SIGNALS; i++) {
        sigaction(i, &state->handlers[i], NULL);
    }
    pthread_sigmask(SIG_SETMASK, &state->mask, NULL);
    sigaltstack(&state->alternate, NULL);
    uselocale(state->locale_of_thread);
    setlocale(LC_ALL, state->locale);
    if (state->folder[0] && chdir(state->folder) != 0) {
        return; /* the folder is gone */
    }
}

/* What was open is open, and what it was. */
static void files_check(case_run *run, const host_state *now, const host_state *before,
                        const char *what)
{
    for (int i = 0; i < HOST_FILES; i++) {
        const file_state *old = &before->files[i], *new = &now->files[i];
        const bool was_open = old->number != 0 || old->device != 0;
        case_check(run, !was_open || (old->number == new->number && old->device == new->device),
                   "%s: descriptor %d was closed, or is another file now", what, i);
        case_check(run, !was_open || (old->flags == new->flags && old->status == new->status),
                   "%s: the flags of descriptor %d have changed", what, i);
    }
}

static void attributes_check(case_run *run, const host_state *now, const host_state *before,
                             const char *what)
{
    for (int i = 0; i < HOST_ATTRIBUTES; i++) {
        case_check(run, now->attributes[i] == before->attributes[i],
                   "%s: %s, an attribute of the process, is %d instead of %d", what,
                   attribute_names[i], now->attributes[i], before->attributes[i]);
    }
    case_check(run, now->policy == before->policy, "%s: the thread's scheduler is %d instead of %d",
               what, now->policy, before->policy);
    case_check(run, now->session == before->session && now->group == before->group,
               "%s: the process has left its session or group", what);
    case_check(run, now->cancel_type == before->cancel_type,
               "%s: the type of the thread's cancellation was switched", what);
}

/* The same of what belongs to the process. */
static void surroundings_check(case_run *run, const host_state *now, const host_state *before,
                               const char *what)
{
    case_check(run, now->mask_of_files == before->mask_of_files, "%s: the umask is %03o, not %03o",
               what, (unsigned)now->mask_of_files, (unsigned)before->mask_of_files);
    case_check(run, now->priority == before->priority, "%s: the priority is %d instead of %d", what,
               now->priority, before->priority);
    case_check(run, CPU_EQUAL(&now->processors, &before->processors),
               "%s: the thread may run on %d processors instead of %d, or on others", what,
               CPU_COUNT(&now->processors), CPU_COUNT(&before->processors));
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        case_check(run, now->limits[i].rlim_cur == before->limits[i].rlim_cur,
                   "%s: the limit of resource %d is %llu instead of %llu", what, i,
                   (unsigned long long)now->limits[i].rlim_cur,
                   (unsigned long long)before->limits[i].rlim_cur);
        case_check(run, now->limits[i].rlim_max == before->limits[i].rlim_max,
                   "%s: the hard limit of resource %d is %llu instead of %llu", what, i,
                   (unsigned long long)now->limits[i].rlim_max,
                   (unsigned long long)before->limits[i].rlim_max);
    }
    for (int i = 0; i < HOST_TIMERS; i++) {
        case_check(run, now->timers[i].it_value.tv_sec == 0 || before->timers[i].it_value.tv_sec,
                   "%s: a timer of the process runs", what);
    }
    case_check(run, strcmp(now->thread, before->thread) == 0,
               "%s: the thread's name is %s instead of %s", what, now->thread, before->thread);
    variables_check(run, now, before, what);
    case_check(run, memcmp(now->numbers, before->numbers, sizeof now->numbers) == 0,
               "%s: the program's next number of rand is another one", what);
    errno = 0;
    case_check(run, waitpid(-1, NULL, WNOHANG | EVERY_CHILD) < 0 && errno == ECHILD,
               "%s: a process that nobody waits for is left", what);
}

/* A handler of the case. */
static void arrived(int signal)
{
    (void)signal;
}

/* Without the one that the C library sets when a handler is put back. */
static int own_flags(const struct sigaction *handler)
{
    enum { RESTORER = 0x04000000 };
    return handler->sa_flags & ~RESTORER;
}

/* Reports what differs from `before` after the calls that `what` names. */
void host_state_check(case_run *run, const host_state *before, const char *what)
{
    host_state now;
    host_state_read(&now);
    for (int i = 1; i <= HOST_SIGNALS; i++) {
        case_check(run, now.handlers[i].sa_handler == before->handlers[i].sa_handler,
                   "%s: the handler of signal %d was replaced", what, i);
        case_check(run, own_flags(&now.handlers[i]) == own_flags(&before->handlers[i]),
                   "%s: the flags of the handler of signal %d have changed", what, i);
        case_check(run, sigismember(&now.mask, i) == sigismember(&before->mask, i),
                   "%s: signal %d is %s", what, i,
                   sigismember(&now.mask, i) ? "blocked" : "no longer blocked");
    }
    case_check(run, now.alternate.ss_sp == before->alternate.ss_sp,
               "%s: the alternate stack was replaced", what);
    case_check(run, strcmp(now.locale, before->locale) == 0, "%s: the locale is %s instead of %s",
               what, now.locale, before->locale);
    case_check(run, now.locale_of_thread == before->locale_of_thread,
               "%s: the thread-local locale (uselocale) is another one", what);
    case_check(run, strcmp(now.folder, before->folder) == 0,
               "%s: the working folder is %s instead of %s", what, now.folder, before->folder);
    case_check(run, now.rounding == before->rounding, "%s: the rounding mode is %d instead of %d",
               what, now.rounding, before->rounding);
    case_check(run, now.x87_control == before->x87_control,
               "%s: the control word of the x87 unit is %#x instead of %#x", what, now.x87_control,
               before->x87_control);
    case_check(run, now.raised == before->raised,
               "%s: the raised floating-point exceptions are %#x instead of %#x", what,
               (unsigned)now.raised, (unsigned)before->raised);
    case_check(run, now.traps == before->traps, "%s: the traps are %#x instead of %#x", what,
               (unsigned)now.traps, (unsigned)before->traps);
    case_check(run, now.has_denormals == before->has_denormals, "%s: denormals are %s", what,
               now.has_denormals ? "kept" : "flushed");
    case_check(run, now.cancel_state == before->cancel_state,
               "%s: cancellation of the thread was switched", what);
    surroundings_check(run, &now, before, what);
    files_check(run, &now, before, what);
    attributes_check(run, &now, before, what);
}

static locale_t own_locale; /* of the thread */
static char own_folder[32]; /* for temporary files */

/* Removes the folder for temporary files. Returns the name of a file that was left there, or "". */
static const char *own_folder_remove(void)
{
    static char left[256];
    left[0] = 0;
    DIR *folder = opendir(own_folder);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[sizeof own_folder + sizeof left];
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(left, sizeof left, "%s", entry->d_name);
            snprintf(path, sizeof path, "%s/%s", own_folder, left);
            if (unlink(path) != 0) {
                rmdir(path);
            }
        }
    }
    if (folder) {
        closedir(folder);
    }
    rmdir(own_folder);
    return left;
}

void host_state_make(void)
{
    static const int own[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE, SIGWINCH};
    sigset_t blocked;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigaction(own[i], &(struct sigaction){.sa_handler = arrived}, NULL);
    }
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGURG);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    comma_locale_set();
    own_locale = duplocale(LC_GLOBAL_LOCALE);
    uselocale(own_locale ? own_locale : LC_GLOBAL_LOCALE);
    strcpy(own_folder, "/tmp/conformance-XXXXXX");
    if (mkdtemp(own_folder)) {
        setenv("TMPDIR", own_folder, 1);
    }
    if (chdir("/usr") != 0 && chdir("/tmp") != 0) {
        return; /* the folder of before is as good */
    }
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
}

void host_state_check_folder(case_run *run)
{
    const char *left = own_folder_remove();
    case_check(run, left[0] == 0, "the temporary file %s was left", left);
}

void host_state_with(case_run *run, case_function steps, const void *parameters)
{
    host_state before;
    host_state_read(&before);
    case_execute(run, steps, parameters);
    own_folder_remove();
    state_write(&before);
    if (own_locale) {
        freelocale(own_locale);
        own_locale = (locale_t)0;
    }
    case_end_reported(run);
}
