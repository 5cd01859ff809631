/* A CUDA driver without a GPU, for tests of the cuda plugin: memory is the host's, streams do their
 * work at once, launches are only written down. Built as libcuda.so.1; cuda_mock.c has it. */
#ifndef TESTS_UNIT_PLUGINS_CUDA_CUDA_MOCK_H
#define TESTS_UNIT_PLUGINS_CUDA_CUDA_MOCK_H

#include <stdatomic.h>
#include <stdint.h>

enum { CUDA_MOCK_LAUNCHES = 8192, CUDA_MOCK_BLOCK = 1024, CUDA_MOCK_DEVICES = 4 };

/* One kernel that ran. */
typedef struct cuda_mock_launch {
    const void *function;
    uint32_t grid[3], group[3];
    uint32_t shared_bytes;
    uint32_t bytes;
    uint8_t block[CUDA_MOCK_BLOCK];
} cuda_mock_launch;

/* What the mock keeps of a tensor map, at its start. */
typedef struct cuda_mock_map {
    void *address;
    uint64_t extents[4], strides[3];
    uint32_t box[4];
    int type;
} cuda_mock_map;

typedef struct cuda_mock {
    cuda_mock_launch launches[CUDA_MOCK_LAUNCHES];
    uint32_t launch_count;
    uint32_t single_launches; /* early ones, too */
    uint32_t early_launches, graph_launches, nodes_set, nodes_switched, graphs_built, early_edges;
    uint32_t linked, loaded, live_modules;
    uint32_t assembler_level; /* of the last kernel that was linked; 4 by default */
    _Atomic uint32_t live_objects;
    _Atomic int streams;   /* made and not destroyed */
    int contexts;          /* on the stack of the tests' thread; 0 between calls of the plugin */
    int retained;          /* of the primary context, since the start of the test */
    _Atomic int hold;      /* streams stand still: events are not reached, counters not written */
    int held_waits;        /* for streams that stand still */
    int late_writes;       /* counters are written when a stream is asked; 2: one is on its way */
    _Atomic int fail_with; /* the next launch, or question to a stream, gives this result */
    int devices;           /* 1 */
    int is_old;            /* a driver of CUDA 12.6, else of 13.0 */
    int init_result;       /* of cuInit */
    int no_writes;         /* streams cannot write values */
    int graph_result;      /* of cuGraphInstantiateWithFlags */
    int event_result;      /* of cuEventCreate */
    int descriptor;        /* that is imported */
    uint64_t shared_bytes; /* of it, as the plugin said */
    uint64_t semaphore_value, semaphore_awaited; /* of a semaphore, as it is and was waited for */
    int event_synchronized;
    int no_virtual_memory;
    uint32_t physical_left, physical_made; /* parts of memory that there are, and that were made */
    int mapped;                            /* parts */
    uint64_t memory_limit;
    uint64_t memory;
    int stale_functions; /* launches or nodes whose module is gone */
    int lost_groups;     /* kernels of nodes that have clusters of an earlier kernel */
    int no_peers;        /* devices cannot reach each other's memory */
    int peers_enabled, peer_copies;
    int foreign_waits;   /* of a stream for an event of another context */
    int event_waits;     /* of a stream for any event */
    int writes;          /* calls that write a value */
    int read_only_pages; /* of the host: 1: registered as such, 2: never registered */
    int late_event;      /* polls until an event is reached that was recorded after a counter */
} cuda_mock;

#define CUDA_MOCK_SYMBOL "cuda_mock_state"

/* Contexts on the calling thread's stack. */
int cuda_mock_depth(void);
#define CUDA_MOCK_DEPTH_SYMBOL "cuda_mock_depth"

#endif
