/* NCCL's interface, as far as the plugin uses it: types, constants and the table of its functions,
 * declared here without a header of the vendor. The library is opened when the first communicator
 * is created. */
#ifndef PLUGINS_CUDA_COLLECTIVES_NCCL_H
#define PLUGINS_CUDA_COLLECTIVES_NCCL_H

#include "driver.h"

typedef struct ncclComm *nccl_comm;
typedef int nccl_result;

enum { /* nccl_result */
       NCCL_SUCCESS = 0,
       NCCL_SYSTEM_ERROR = 2,
       NCCL_REMOTE_ERROR = 6,
       NCCL_IN_PROGRESS = 7
};

enum { /* types of elements */
       NCCL_I8 = 0,
       NCCL_U8 = 1,
       NCCL_I32 = 2,
       NCCL_U32 = 3,
       NCCL_I64 = 4,
       NCCL_U64 = 5,
       NCCL_F16 = 6,
       NCCL_F32 = 7,
       NCCL_F64 = 8,
       NCCL_BF16 = 9
};

enum { /* reductions */
       NCCL_SUM = 0,
       NCCL_MAX = 2,
       NCCL_MIN = 3,
       NCCL_MEAN = 4
};

typedef struct nccl_id {
    char bytes[128];
} nccl_id;

/* The configuration of version 2.14, which all later ones take: they have defaults for the rest.
 * `padding` is a field of later versions, where this value means that it is not set. */
typedef struct nccl_config {
    size_t size;
    unsigned magic;   /* NCCL_CONFIG_MAGIC */
    unsigned version; /* NCCL_CONFIG_VERSION */
    int is_blocking;
    int padding; /* INT_MIN */
} nccl_config;

#define NCCL_CONFIG_MAGIC 0xcafebeefu
#define NCCL_CONFIG_VERSION 21400u

typedef struct nccl_library {
#define SYMBOL(name, parameters) nccl_result(*name) parameters;
#define TEXT(name, parameters) const char *(*name)parameters;
#include "collectives/nccl_symbols.inl"
#undef SYMBOL
#undef TEXT
} nccl_library;

/* Opens the library once it is needed. Threads: any.
 * Errors: LIBRARY_MISSING, also where HAL_CUDA_NCCL turns it off; TOO_OLD. */
hal_status cuda_nccl_load(void);

/* The table; after cuda_nccl_load has succeeded. */
const nccl_library *cuda_nccl(void);

/* The number of a type of elements; -1 where NCCL has none. */
int cuda_nccl_type(uint32_t type);

/* The number of a reduction of hal. */
int cuda_nccl_reduction(uint32_t reduction);

/* Entry of the plugin's table. */
hal_status cuda_comm_backend(hal_plugin_instance *instance, hal_plugin_comm_backend *backend);

#endif
