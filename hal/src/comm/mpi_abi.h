/* The table for MPI libraries with the standard binary interface of MPI 5 (libmpi_abi). */
#ifndef HAL_SRC_COMM_MPI_ABI_H
#define HAL_SRC_COMM_MPI_ABI_H

#include "mpi_entries.h"

/* Opens the library. Returns null and writes the reason if it cannot be opened. Not thread-safe. */
const hal_mpi_entries *hal_mpi_abi_open(char reason[256]);

#endif
