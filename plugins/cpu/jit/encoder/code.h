/* Compiled code of a program: its functions, and its form for outputs that exceed the caches, whose
 * stores bypass them. */
#ifndef PLUGINS_CPU_JIT_ENCODER_CODE_H
#define PLUGINS_CPU_JIT_ENCODER_CODE_H

#include "lanes/steps.h"

#include <stdatomic.h>

enum { CPU_STREAM_PATCHES = 128 };

typedef struct cpu_stream_patch {
    uint32_t at; /* offset in the code */
    uint8_t byte;
} cpu_stream_patch;

/* The form for large outputs: a copy of the code with patches. */
typedef struct cpu_stream {
    uint32_t patch_count; /* 0: there is no such form */
    cpu_stream_patch *patches;
    uint64_t group_bytes;  /* of a group's streaming stores */
    uint64_t least_groups; /* of a dispatch with streaming stores */
    void *_Atomic code;    /* null: not made yet */
    atomic_bool refused;   /* the system refused executable memory */
} cpu_stream;

typedef void cpu_code_function(cpu_worker *worker);

typedef struct cpu_code {
    void *bytes; /* executable memory; null: there is no code */
    size_t size;
    cpu_code_function *dispatch; /* in `bytes`: once per dispatch on each worker */
    cpu_code_function *group;    /* for each group */
    uint32_t *lane_ids;          /* of each dimension and lane; null where no code reads them */
    cpu_stream stream;
} cpu_code;

/* After the code is made: keeps the patches that `stream` has collected, if there are stores.
 * `least_bytes`: of a dispatch's output, from which stores bypass the caches. */
void cpu_code_finish(cpu_code *code, uint64_t least_bytes);
void cpu_code_release(cpu_code *code);

/* The function for the groups of a dispatch with large outputs; null: `group` runs. The worker has
 * the dispatch's bindings, which may not share memory. */
cpu_code_function *cpu_code_stream(cpu_code *code, const cpu_worker *worker,
                                   uint32_t binding_count);

/* Before other threads may read what streaming stores wrote. */
void cpu_code_fence(void);

#endif
