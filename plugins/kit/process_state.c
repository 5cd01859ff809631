/* See process_state.h. What cannot be read is not restored: no call fails for it. */
#include "process_state.h"

#include "fork.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined __linux__
#include <sys/syscall.h>
#endif

#if defined __linux__
static void affinity_keep(kit_thread_state *state)
{
    state->affinity_bytes =
        syscall(SYS_sched_getaffinity, 0, sizeof state->affinity, state->affinity);
}

static void affinity_restore(const kit_thread_state *state)
{
    uint64_t now[KIT_AFFINITY_BYTES / sizeof(uint64_t)];
    if (state->affinity_bytes <= 0) {
        return;
    }
    const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof now, now);
    if (bytes == state->affinity_bytes && memcmp(now, state->affinity, (size_t)bytes) != 0) {
        syscall(SYS_sched_setaffinity, 0, (size_t)bytes, state->affinity);
    }
}

enum { FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };
#else
static void affinity_keep(kit_thread_state *state)
{
    state->affinity_bytes = 0;
}

static void affinity_restore(const kit_thread_state *state)
{
    (void)state;
}

enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
#endif

/* Never freed: a thread may use it while the library is unloaded. */
static locale_t c_locale;

static void c_locale_make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

void kit_thread_state_keep(kit_thread_state *state, bool blocks_signals)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked;
    sigemptyset(&blocked);
    if (blocks_signals) {
        sigfillset(&blocked);
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            sigdelset(&blocked, faults[i]);
        }
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &state->mask);
    sigaltstack(NULL, &state->alternate_stack);
    affinity_keep(state);
    pthread_once(&once, c_locale_make);
    state->locale = c_locale ? uselocale(c_locale) : (locale_t)0;
}

static void alternate_stack_restore(const kit_thread_state *state)
{
    stack_t now = {0};
    const stack_t *before = &state->alternate_stack;
    if (sigaltstack(NULL, &now) == 0 &&
        (now.ss_sp != before->ss_sp || now.ss_flags != before->ss_flags)) {
        sigaltstack(before, NULL);
    }
}

void kit_thread_state_restore(kit_thread_state *state)
{
    if (state->locale) {
        uselocale(state->locale);
    }
    affinity_restore(state);
    alternate_stack_restore(state);
    pthread_sigmask(SIG_SETMASK, &state->mask, NULL);
}

kit_process_state *kit_process_state_keep(void)
{
    kit_process_state *state = malloc(sizeof *state); /* too large for small stacks */
    if (!state) {
        return NULL;
    }
    for (int i = 1; i <= KIT_SIGNALS; i++) {
        state->is_kept[i] = sigaction(i, NULL, &state->handlers[i]) == 0;
    }
    const char *locale = setlocale(LC_ALL, NULL);
    state->locale = locale ? strdup(locale) : NULL;
    state->folder = open(".", FOLDER_FLAGS);
    return state;
}

static void handler_restore(int signal, const struct sigaction *before)
{
    struct sigaction now;
    if (sigaction(signal, NULL, &now) == 0 &&
        (now.sa_handler != before->sa_handler || now.sa_flags != before->sa_flags)) {
        sigaction(signal, before, NULL);
    }
}

static void folder_restore(int before)
{
    struct stat was, is;
    if (fstat(before, &was) == 0 &&
        (stat(".", &is) != 0 || was.st_dev != is.st_dev || was.st_ino != is.st_ino) &&
        fchdir(before) != 0) {
        return; /* nothing else names a folder that is gone */
    }
}

void kit_process_state_restore(kit_process_state *state)
{
    if (!state) {
        return;
    }
    for (int i = 1; i <= KIT_SIGNALS; i++) {
        if (state->is_kept[i]) {
            handler_restore(i, &state->handlers[i]);
        }
    }
    const char *locale = setlocale(LC_ALL, NULL);
    if (state->locale && locale && strcmp(locale, state->locale) != 0) {
        setlocale(LC_ALL, state->locale);
    }
    free(state->locale);
    if (state->folder >= 0) {
        folder_restore(state->folder);
        close(state->folder);
    }
    free(state);
}

/* Of all calls that are under way the first one keeps the program's numbers, and the last one
 * restores them, so that no state is in use after its call. */
static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t numbers_users;
static char *numbers_before;

static void numbers_reset(void)
{
    numbers_users = 0;
}
KIT_FORK_RESET(numbers_lock, numbers_reset)

void kit_numbers_keep(void)
{
    static char others[128];
    pthread_mutex_lock(&numbers_lock);
    if (numbers_users++ == 0) {
        numbers_before = initstate(1, others, sizeof others);
    }
    pthread_mutex_unlock(&numbers_lock);
}

void kit_numbers_restore(void)
{
    pthread_mutex_lock(&numbers_lock);
    if (numbers_users > 0 && --numbers_users == 0) {
        setstate(numbers_before);
    }
    pthread_mutex_unlock(&numbers_lock);
}
