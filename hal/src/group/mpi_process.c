/* MPI in this process, see mpi_process.h. A library stays open until the process ends: MPI cannot
 * be started twice. Called by link.c. */
#include "mpi_process.h"

#include "mpi_abi.h"

#include "base/status.h"

#include <dlfcn.h>
#include <hal/hal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hal_mpi state = {.next_tag = 1};
static int (*before_exit)(hal_mpi *mpi);
static pid_t owner; /* a forked child does not end MPI */

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
    if (getpid() != owner) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (!state.call->is_finished() && before_exit(&state) && state.world.is_started) {
        state.call->finish();
    }
    pthread_mutex_unlock(&lock);
}

/* The module of a name in the folder halyard/mpi next to the library, or null. */
static const hal_mpi_entries *module_open(const char *name)
{
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
    free(path);
    free(whole);
    if (!symbol) {
        return NULL;
    }
    memcpy(&get, &symbol, sizeof get);
    const hal_mpi_entries *entries = get();
    return entries->version == HAL_MPI_ENTRIES_VERSION ? entries : NULL;
}

static const hal_mpi_entries *entries_open(const char *preferred)
{
    static const char *const names[] = {"mpi", "openmpi", "mpich"};
    if (preferred && strcmp(preferred, "abi") != 0) {
        return module_open(preferred);
    }
    const hal_mpi_entries *found = preferred ? hal_mpi_abi_open() : NULL;
    for (size_t i = 0; !preferred && !found && i < sizeof names / sizeof *names; i++) {
        found = module_open(names[i]);
    }
    return found || preferred ? found : hal_mpi_abi_open();
}

/* The caller holds the lock. */
static hal_status mpi_start_locked(const char *preferred, const char *function)
{
    hal_mpi_world world = {0};
    const hal_mpi_entries *call = entries_open(preferred);
    if (!call && preferred) {
        call = entries_open(NULL);
    }
    if (!call) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "%s: expected an MPI library for ranks on several hosts: libmpi_abi.so, or "
                        "a module in halyard/mpi next to the library, built where MPI was found",
                        function);
    }
    const int error = call->start(&world);
    if (error != 0) {
        char text[256];
        call->describe(error, text, sizeof text);
        return hal_fail(HAL_ERROR_IO, "%s: MPI: %s", function, text);
    }
    state.call = call;
    state.world = world;
    owner = getpid();
    atexit(mpi_end);
    return HAL_OK;
}

hal_status hal_mpi_start(const char *preferred, int (*at_exit)(hal_mpi *mpi), const char *function)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&lock);
    before_exit = at_exit;
    if (!state.call) {
        status = mpi_start_locked(preferred, function);
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
