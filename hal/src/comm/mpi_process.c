/* MPI in this process, see mpi_process.h. A library stays open until the process ends: MPI cannot
 * be started twice. */
#include "mpi_process.h"

#include "mpi_abi.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "base/status.h"

#include <dlfcn.h>
#include <hal/hal.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LAYER)
static hal_mpi state = {.next_tag = 1};
static bool (*before_exit)(hal_mpi *mpi);
static _Atomic pid_t owner; /* a forked child does not use MPI */
static int start_error;     /* of MPI that hal has started and cannot use */

hal_mpi *hal_mpi_lock(void)
{
    pthread_mutex_lock(&lock);
    return &state;
}

void hal_mpi_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void mpi_end(void)
{
    if (getpid() != atomic_load(&owner)) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (!state.call->is_finished() && before_exit(&state) && state.world.is_started) {
        state.call->finish();
    }
    pthread_mutex_unlock(&lock);
}

/* The module of a name in the folder halyard/mpi next to the library, or null with the reason. */
static const hal_mpi_entries *module_open(const char *name, char reason[256])
{
    HAL_UNCANCELLED;
    const char *(*const anchor)(void) = hal_version;
    void *address, *library = NULL, *symbol = NULL;
    hal_mpi_entries_function *get;
    Dl_info own;
    char *path = NULL;
    memcpy(&address, &anchor, sizeof address);
    char *whole = dladdr(address, &own) && own.dli_fname ? realpath(own.dli_fname, NULL) : NULL;
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash) {
        *slash = 0;
        path = asprintf(&path, "%s/halyard/mpi/%s.so", whole, name) < 0 ? NULL : path;
        library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
        symbol = library ? dlsym(library, HAL_MPI_ENTRIES_SYMBOL) : NULL;
    }
    const char *words = symbol || !path ? NULL : dlerror();
    snprintf(reason, 256, "%s", words ? words : "it is of another version of hal");
    free(path);
    free(whole);
    if (!symbol) {
        return NULL;
    }
    memcpy(&get, &symbol, sizeof get);
    const hal_mpi_entries *entries = get();
    return entries->version == HAL_MPI_ENTRIES_VERSION ? entries : NULL;
}

static const hal_mpi_entries *entries_open(const char *name, char reason[256])
{
    return strcmp(name, "abi") == 0 ? hal_mpi_abi_open(reason) : module_open(name, reason);
}

/* The library of the choice, or another one unless the user has named it. Null with a message. */
static const hal_mpi_entries *choice_open(hal_mpi_choice choice, const char *function)
{
    static const char *const names[] = {"mpi", "openmpi", "mpich", "abi"};
    char reason[256] = "", other[256];
    const hal_mpi_entries *found = choice.library ? entries_open(choice.library, reason) : NULL;
    for (size_t i = 0; !found && !choice.is_named && i < sizeof names / sizeof *names; i++) {
        found = entries_open(names[i], choice.library ? other : reason);
    }
    if (!found && choice.is_named) {
        hal_fail(HAL_ERROR_UNSUPPORTED,
                 "%s: HAL_COMM_TRANSPORT: expected a library that can be opened, got \"%s\": %s",
                 function, choice.library, reason);
    } else if (!found) {
        hal_fail(HAL_ERROR_UNSUPPORTED,
                 "%s: expected an MPI library for ranks on several hosts: libmpi_abi.so, or a "
                 "module in halyard/mpi next to the library, built where MPI was found; %s: %s",
                 function, choice.library ? choice.library : "abi", reason);
    }
    return found;
}

static hal_status start_fail(const hal_mpi_entries *call, int error, const char *function)
{
    char text[256];
    call->describe(error, text, sizeof text);
    return hal_fail(HAL_ERROR_IO, "%s: MPI: %s", function, text);
}

/* The caller holds the lock. */
static hal_status mpi_start_locked(hal_mpi_choice choice, const char *function)
{
    hal_mpi_world world = {0};
    const hal_mpi_entries *call = choice_open(choice, function);
    if (!call) {
        return HAL_ERROR_UNSUPPORTED;
    }
    const int error = call->start(&world);
    if (error == 0 || world.is_started) {
        state.call = call;
        state.world = world;
        start_error = error;
        atomic_store(&owner, getpid());
        atexit(mpi_end);
    }
    return error == 0 ? HAL_OK : start_fail(call, error, function);
}

hal_status hal_mpi_start(hal_mpi_choice choice, bool (*at_exit)(hal_mpi *mpi), const char *function)
{
    hal_status status = HAL_OK;
    const pid_t started = atomic_load(&owner);
    if (started != 0 && started != getpid()) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: MPI: expected the process that started MPI, got a fork of it",
                        function);
    }
    pthread_mutex_lock(&lock);
    before_exit = at_exit;
    if (!state.call) {
        status = mpi_start_locked(choice, function);
    } else if (start_error != 0) {
        status = start_fail(state.call, start_error, function);
    }
    if (status == HAL_OK && !state.world.is_serialized) {
        status = hal_fail(HAL_ERROR_UNSUPPORTED,
                          "%s: MPI: expected the thread level MPI_THREAD_SERIALIZED or "
                          "MPI_THREAD_MULTIPLE, got less; start MPI by MPI_Init_thread",
                          function);
    }
    pthread_mutex_unlock(&lock);
    return status;
}
