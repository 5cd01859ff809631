/* MPI libraries with the standard binary interface, see mpi_abi.h. Types, constants and signatures
 * are those of chapter 20 and appendix A of the MPI 5.0 standard. */
#include "mpi_abi.h"

#include "base/cancel.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_Status MPI_Status;

#define MPI_SUCCESS 0
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_BYTE ((MPI_Datatype)0x247)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x143)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_ANY_SOURCE (-1)
#define MPI_TAG_UB 501
#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_LIBRARY_VERSION_STRING 8192
#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_SERIALIZED 2048
#define MPI_THREAD_MULTIPLE 4096

#define ABI_FUNCTIONS(X)                                                               \
    X(MPI_Cancel, (MPI_Request *))                                                     \
    X(MPI_Comm_dup, (MPI_Comm, MPI_Comm *))                                            \
    X(MPI_Comm_get_attr, (MPI_Comm, int, void *, int *))                               \
    X(MPI_Comm_rank, (MPI_Comm, int *))                                                \
    X(MPI_Comm_set_errhandler, (MPI_Comm, MPI_Errhandler))                             \
    X(MPI_Comm_size, (MPI_Comm, int *))                                                \
    X(MPI_Error_string, (int, char *, int *))                                          \
    X(MPI_Finalize, (void))                                                            \
    X(MPI_Finalized, (int *))                                                          \
    X(MPI_Get_library_version, (char *, int *))                                        \
    X(MPI_Init_thread, (int *, char ***, int, int *))                                  \
    X(MPI_Initialized, (int *))                                                        \
    X(MPI_Irecv, (void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))       \
    X(MPI_Isend, (const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *)) \
    X(MPI_Query_thread, (int *))                                                       \
    X(MPI_Request_free, (MPI_Request *))                                               \
    X(MPI_Test, (MPI_Request *, int *, MPI_Status *))

#define DECLARE(name, parameters) static int(*name) parameters;
ABI_FUNCTIONS(DECLARE)

#define REQUEST_OF(request) ((MPI_Request *)(void *)(request))

#include "mpi_calls.inl"

const hal_mpi_entries *hal_mpi_abi_open(char reason[256])
{
    HAL_UNCANCELLED;
    static const char *const names[] = {"libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so"};
    void *library = NULL, *symbol = NULL;
    bool missing = false;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    if (!library) {
        const char *words = dlerror();
        snprintf(reason, 256, "%s", words ? words : "it cannot be opened");
        return NULL;
    }
#define RESOLVE(name, parameters)   \
    symbol = dlsym(library, #name); \
    missing |= !symbol;             \
    memcpy(&name, &symbol, sizeof symbol);
    ABI_FUNCTIONS(RESOLVE)
    if (missing) {
        snprintf(reason, 256, "libmpi_abi.so lacks functions of the standard interface");
    }
    return missing ? NULL : &entries;
}
