/* The form of a kernel's code whose stores bypass the caches, for outputs that exceed them. Made by
 * jit/stream_store.c; worker.c chooses it for a dispatch. */
#ifndef HALYARD_CPU_STREAM_H
#define HALYARD_CPU_STREAM_H

#include "lanes/steps.h"

#include <stdatomic.h>

enum { CPU_STREAM_PATCHES = 128 };

typedef struct cpu_stream_patch {
    uint32_t at; /* offset in the code */
    uint8_t byte;
} cpu_stream_patch;

typedef struct cpu_stream {
    uint32_t patch_count; /* 0: the kernel has no such form */
    cpu_stream_patch *patches;
    uint64_t group_bytes;  /* that a group stores so */
    uint64_t least_bytes;  /* of the device; as groups: least_groups */
    uint64_t least_groups; /* of a dispatch that stores so */
    void *_Atomic code;    /* null: not made yet */
    atomic_bool refused;   /* the system refused executable memory */
} cpu_stream;

struct hal_plugin_kernel;

/* After the code is made: keeps the patches that `stream` has collected, if it has stores. */
void cpu_stream_finish(struct hal_plugin_kernel *kernel);
void cpu_stream_destroy(struct hal_plugin_kernel *kernel);

/* Chooses the code for the groups of a dispatch, whose bindings the worker has. `bytes`: their
 * lengths, or null. */
void cpu_stream_choose(cpu_worker *worker, const struct hal_plugin_kernel *kernel);

/* Before other threads may read what a worker stored so. */
void cpu_stream_fence(void);

#endif
