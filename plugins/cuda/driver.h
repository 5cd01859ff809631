/* The CUDA driver's interface, as far as the plugin uses it: types, constants and the table of its
 * functions, declared here without a header of the vendor. */
#ifndef PLUGINS_CUDA_DRIVER_H
#define PLUGINS_CUDA_DRIVER_H

#include <hal/plugin.h>
#include <stddef.h>

typedef int cuda_result; /* 0: success */
typedef int cuda_device; /* ordinal */
typedef uint64_t cuda_address;
typedef struct CUctx_st *cuda_context;
typedef struct CUstream_st *cuda_stream;
typedef struct CUextMemory_st *cuda_shared_memory;
typedef struct CUextSemaphore_st *cuda_semaphore;
typedef unsigned long long cuda_physical; /* CUmemGenericAllocationHandle */
typedef struct CUevent_st *cuda_event;
typedef struct CUlinkState_st *cuda_linker;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphNode_st *cuda_node;

enum { CUDA_PORT_PROGRAMMATIC = 1, CUDA_EDGE_PROGRAMMATIC = 1 };

/* An edge between nodes: the event of the first one that the second waits for, and its kind. */
typedef struct cuda_edge {
    uint8_t from_port, to_port, type, reserved[5];
} cuda_edge;
typedef struct CUgraphExec_st *cuda_executable;

typedef struct cuda_uuid {
    uint8_t bytes[16];
} cuda_uuid;

/* One side of CUDA_MEMCPY2D. */
typedef struct cuda_rows_side {
    size_t x, y;
    unsigned kind; /* CUDA_MEMORY_* */
    void *host;
    cuda_address address;
    void *array;
    size_t pitch;
} cuda_rows_side;

enum { CUDA_MEMORY_UNIFIED = 4 };

/* CUDA_MEMCPY2D. */
typedef struct cuda_rows {
    cuda_rows_side source, target;
    size_t width, height;
} cuda_rows;

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC of a descriptor, and CUDA_EXTERNAL_MEMORY_BUFFER_DESC. */
typedef struct cuda_shared_handle {
    int kind; /* CUDA_SHARED_OPAQUE_FD */
    union {
        int descriptor;
        void *pointers[2];
    } handle;
    unsigned long long bytes;
    unsigned flags;
    unsigned reserved[16];
} cuda_shared_handle;

typedef struct cuda_shared_range {
    unsigned long long offset, bytes;
    unsigned flags;
    unsigned reserved[16];
} cuda_shared_range;

/* CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC of a descriptor; CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS and
 * _SIGNAL_PARAMS, which have the same layout for timelines. */
typedef struct cuda_semaphore_handle {
    int kind; /* CUDA_SHARED_TIMELINE_FD */
    union {
        int descriptor;
        void *pointers[2];
    } handle;
    unsigned flags;
    unsigned reserved[16];
} cuda_semaphore_handle;

typedef struct cuda_semaphore_value {
    unsigned long long value;
    unsigned long long others[8];
    unsigned flags;
    unsigned reserved[16];
} cuda_semaphore_value;

enum { CUDA_SHARED_OPAQUE_FD = 1, CUDA_SHARED_TIMELINE_FD = 9 };

/* CUmemLocation, CUmemAllocationProp, CUmemAccessDesc. */
typedef struct cuda_location {
    int kind; /* CUDA_LOCATION_DEVICE */
    int id;
} cuda_location;

typedef struct cuda_physical_kind {
    int kind; /* CUDA_PHYSICAL_PINNED */
    int handles;
    cuda_location location;
    void *metadata;
    uint8_t flags[8];
} cuda_physical_kind;

typedef struct cuda_access {
    cuda_location location;
    int flags; /* CUDA_ACCESS_* */
} cuda_access;

enum {
    CUDA_LOCATION_DEVICE = 1,
    CUDA_PHYSICAL_PINNED = 1,
    CUDA_ACCESS_READ = 1,
    CUDA_ACCESS_READ_WRITE = 3
};

/* CUDA_KERNEL_NODE_PARAMS. */
typedef struct cuda_node_launch {
    cuda_function function;
    unsigned grid[3];
    unsigned group[3];
    unsigned shared_bytes;
    void **parameters;
    void **extra;
} cuda_node_launch;

enum { /* results that have a hal_status of their own */
       CUDA_OUT_OF_MEMORY = 2,
       CUDA_STUB_LIBRARY = 34,
       CUDA_DEVICE_UNAVAILABLE = 46,
       CUDA_NO_DEVICE = 100,
       CUDA_INVALID_IMAGE = 200,
       CUDA_NO_BINARY_FOR_GPU = 209,
       CUDA_ECC_UNCORRECTABLE = 214,
       CUDA_INVALID_PTX = 218,
       CUDA_NVLINK_UNCORRECTABLE = 220,
       CUDA_JIT_COMPILER_NOT_FOUND = 221,
       CUDA_UNSUPPORTED_PTX_VERSION = 222,
       CUDA_CONTAINED = 226,
       CUDA_NOT_FOUND = 500,
       CUDA_NOT_READY = 600,
       CUDA_ILLEGAL_ADDRESS = 700,
       CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
       CUDA_LAUNCH_TIMEOUT = 702,
       CUDA_CONTEXT_IS_DESTROYED = 709,
       CUDA_ASSERT = 710,
       CUDA_HARDWARE_STACK_ERROR = 714,
       CUDA_LAUNCH_FAILED = 719,
       CUDA_SYSTEM_DRIVER_MISMATCH = 803
};

enum { /* attributes of devices */
       CUDA_DEVICE_MAX_THREADS_PER_BLOCK = 1,
       CUDA_DEVICE_MAX_BLOCK_DIM_X = 2, /* and 3, 4 of y and z */
       CUDA_DEVICE_MAX_GRID_DIM_X = 5,  /* and 6, 7 */
       CUDA_DEVICE_SHARED_PER_BLOCK = 8,
       CUDA_DEVICE_MULTIPROCESSORS = 16,
       CUDA_DEVICE_INTEGRATED = 18,
       CUDA_DEVICE_CAPABILITY_MAJOR = 75,
       CUDA_DEVICE_CAPABILITY_MINOR = 76,
       CUDA_DEVICE_SHARED_PER_BLOCK_OPTIN = 97,
       CUDA_DEVICE_VIRTUAL_MEMORY = 102,
       CUDA_DEVICE_STREAM_WRITES_64 = 122
};

enum {
    CUDA_FUNCTION_SHARED_BYTES = 1,
    CUDA_FUNCTION_LOCAL_BYTES = 3,
    CUDA_FUNCTION_REGISTERS = 4,
    CUDA_FUNCTION_MAX_DYNAMIC_SHARED = 8,
    CUDA_FUNCTION_CLUSTER_WIDTH = 11, /* and, next, of height and depth; 0: none is asked for */
    CUDA_FUNCTION_CLUSTER_DEPTH = 13,
    CUDA_HOST_PORTABLE = 1,
    CUDA_HOST_DEVICE_MAP = 2,
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_STREAM_LEGACY = 1, /* a handle: the default stream */
    CUDA_EVENT_UNTIMED = 2,
    CUDA_LAUNCH_CLUSTER = 4,
    CUDA_LAUNCH_EARLY = 6, /* as a programmatic edge of a graph */
    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_BYTES = 6,
    CUDA_JIT_OPTIMIZATION_LEVEL = 7, /* 0 to 4, the default */
    CUDA_INPUT_PTX = 1
};

enum { /* of tensor maps: types of elements, swizzle, promotion of copies to lines of the L2 */
       CUDA_MAP_U8 = 0,
       CUDA_MAP_U32 = 2,
       CUDA_MAP_I32 = 3,
       CUDA_MAP_F16 = 6,
       CUDA_MAP_F32 = 7,
       CUDA_MAP_BF16 = 9,
       CUDA_MAP_TF32 = 11, /* F32, rounded on its way */
       CUDA_MAP_SWIZZLE_128 = 3,
       CUDA_MAP_PROMOTE_256 = 3
};

/* The list that cuLaunchKernel takes in place of single parameters: {BUFFER, block, SIZE, &bytes,
 * END}. */
#define CUDA_LAUNCH_END ((void *)0)
#define CUDA_LAUNCH_BUFFER ((void *)1)
#define CUDA_LAUNCH_SIZE ((void *)2)

/* CUlaunchConfig with one attribute. */
typedef struct cuda_launch_config {
    uint32_t grid[3], group[3], shared_bytes;
    void *stream;
    const struct cuda_launch_attribute *attributes;
    uint32_t attribute_count;
} cuda_launch_config;

typedef struct cuda_launch_attribute {
    uint32_t kind; /* CUDA_LAUNCH_CLUSTER, CUDA_LAUNCH_EARLY */
    uint32_t reserved;
    uint32_t value[16]; /* the lengths of a cluster; 1 */
} cuda_launch_attribute;

typedef struct cuda_driver {
#define SYMBOL(name, parameters) cuda_result(*name) parameters;
#define OPTIONAL(name, parameters) cuda_result(*name) parameters;
#include "symbols.inl"
#undef SYMBOL
#undef OPTIONAL
} cuda_driver;

/* Opens the driver's library and fills the table. Threads: one at a time, as hal calls enumerate
 * and device_open. */
hal_status cuda_driver_load(const hal_host *host);
const cuda_driver *cuda_functions(void);

#endif
