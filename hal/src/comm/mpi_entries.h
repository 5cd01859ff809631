/* The functions of an MPI library that hal calls. The libraries differ in their binary interfaces,
 * so a table of functions stands between: one is in hal, for libraries with the standard interface
 * of MPI 5 (mpi_abi.c), others are modules that are built with the headers of a library (hal/mpi).
 *
 * Functions return MPI_SUCCESS, which is 0, or an error of MPI. Threads: one at a time. */
#ifndef HAL_SRC_COMM_MPI_ENTRIES_H
#define HAL_SRC_COMM_MPI_ENTRIES_H

#include <stdint.h>

#define HAL_MPI_ENTRIES_VERSION 3u
#define HAL_MPI_ENTRIES_SYMBOL "hal_mpi_entries_get"
#define HAL_MPI_ANY UINT32_MAX /* source: every rank */

/* A message in flight. */
typedef union hal_mpi_request {
    uint64_t bits;
    void *pointer;
    int number;
} hal_mpi_request;

typedef struct hal_mpi_world {
    uint32_t rank, count;
    uint32_t tag_limit; /* highest tag */
    int is_started;     /* hal started MPI and has to end it */
    int is_serialized;  /* threads may call MPI one at a time */
    char library[128];  /* its name and version */
} hal_mpi_world;

typedef struct hal_mpi_entries {
    uint32_t version;
    /* Starts MPI unless the program has done so, and makes a communicator of all processes. */
    int (*start)(hal_mpi_world *world);
    int (*is_finished)(void); /* the program has ended MPI */
    void (*finish)(void);
    int (*send)(const void *data, uint32_t bytes, uint32_t rank, uint32_t tag,
                hal_mpi_request *request);
    int (*receive)(void *data, uint32_t bytes, uint32_t rank, uint32_t tag,
                   hal_mpi_request *request);
    int (*test)(hal_mpi_request *request, int *done);
    void (*cancel)(hal_mpi_request *request); /* a receive ends unless it is matched; test tells */
    void (*forget)(hal_mpi_request *request); /* continues without the caller */
    void (*describe)(int error, char *text, uint32_t bytes);
} hal_mpi_entries;

typedef const hal_mpi_entries *hal_mpi_entries_function(void);

#endif
