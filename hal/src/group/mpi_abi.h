/* The table for MPI libraries with the standard binary interface of MPI 5 (libmpi_abi). Used by
 * mpi_process.c. */
#ifndef HAL_SRC_GROUP_MPI_ABI_H
#define HAL_SRC_GROUP_MPI_ABI_H

#include "mpi_entries.h"

/* Opens the library; returns null with the reason if there is none. Threads: one at a time. */
const hal_mpi_entries *hal_mpi_abi_open(char reason[256]);

#endif
