/* MPI in this process: the library that was opened, the lock of all calls, and the world's ranks.
 * */
#ifndef HAL_SRC_COMM_MPI_PROCESS_H
#define HAL_SRC_COMM_MPI_PROCESS_H

#include "mpi_entries.h"

#include <hal/status.h>
#include <stdbool.h>

typedef struct hal_mpi {
    const hal_mpi_entries *call; /* null until MPI is started */
    hal_mpi_world world;
    uint64_t joins;    /* communicators of all processes that were created */
    uint32_t next_tag; /* number of the next communicator, from 1 */
} hal_mpi;

/* The library to be opened: "openmpi", "mpich", "abi"; null: any. */
typedef struct hal_mpi_choice {
    const char *library;
    bool is_named; /* by the user: no other library does; else another one is tried */
} hal_mpi_choice;

/* Starts MPI at the first call. Waits for all processes of the job, without a time limit; MPI has
 * none. Unless the program has ended MPI when the process ends, `at_exit` is called with the lock
 * held; MPI that hal has started is ended if it returns nonzero.
 * Threads: any. Errors: UNSUPPORTED with what was tried, or in a fork of the process that started
 * MPI, IO with MPI's words. */
hal_status hal_mpi_start(hal_mpi_choice choice, bool (*at_exit)(hal_mpi *mpi),
                         const char *function);

/* Locks MPI. All calls of `call` and all state of transports need it. */
hal_mpi *hal_mpi_lock(void);
void hal_mpi_unlock(void);

#endif
