/* The table of an MPI library for hal: this module is built with the library's headers, and opened
 * at run time by hal/src/comm/mpi_process.c. */
#include "mpi_entries.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(hal_mpi_request), "a request has its place");

#define REQUEST_OF(request) ((MPI_Request *)(void *)(request))

#include "mpi_calls.inl"

__attribute__((visibility("default"))) hal_mpi_entries_function hal_mpi_entries_get;

const hal_mpi_entries *hal_mpi_entries_get(void)
{
    return &entries;
}
