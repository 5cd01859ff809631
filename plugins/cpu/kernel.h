/* Kernels of the cpu plugin: steps and what a worker needs to run them. Made by kernel.c from what
 * lower*.c writes, run by queue.c; plugin.c's native entries may make kernels of other kinds. */
#ifndef HALYARD_CPU_KERNEL_H
#define HALYARD_CPU_KERNEL_H

#include "steps.h"
#include "thread_pool.h"

#include <hal/plugin.h>

/* A constant: every lane of one block of its slot. */
typedef struct cpu_constant {
    uint64_t bits;
    uint32_t slot;
    uint32_t bytes;
} cpu_constant;

typedef struct hal_plugin_kernel cpu_kernel;
typedef struct cpu_check cpu_check;

/* What a native kernel runs on: the bindings' addresses (null where the length is 0), and the pool
 * with the number of threads to use, null for the calling thread alone. */
typedef struct cpu_native_call {
    hal_plugin_device *device;
    cpu_thread_pool *pool;
    uint32_t threads;
    void *const *memory;
    uint32_t memory_count;
    const uint8_t *scalars;
} cpu_native_call;

struct hal_plugin_kernel {
    uint64_t number; /* unlike any other kernel's, ever */
    uint32_t items;  /* of a group */
    uint32_t place[3];
    uint32_t binding_count;
    uint32_t memory_count;
    uint32_t slot_count;
    uint32_t constant_count;
    uint32_t step_count[2];
    uint32_t access_count;
    size_t arena_bytes;
    size_t shared_bytes;
    _Atomic uint64_t work; /* nanoseconds of one group: a guess, then as measured */
    cpu_step *dispatch;    /* steps that run once in a dispatch on each worker */
    cpu_step *group;       /* steps that run for each group */
    cpu_access *accesses;
    cpu_constant *constants;
    size_t *slot_offset;   /* in the arena; SIZE_MAX: set when the kernel runs */
    size_t *shared_offset; /* in the arena, of each shared memory */
    cpu_check *check;      /* null: accesses are not checked */
    /* Kernels that are no steps: one call for a dispatch, and what belongs to it. */
    hal_status (*native)(const cpu_kernel *kernel, const cpu_native_call *call);
    void (*native_release)(void *state);
    void *native_state;
    bool native_alone; /* never uses more than one thread */
};

/* Fills in a kernel from verified and legalised IR. On failure the kernel holds nothing. */
hal_status cpu_lower_kernel(cpu_kernel *kernel, const hal_ir_kernel *ir, const cpu_lanes *lanes);

/* Makes and ends kernels; the entries of the plugin's table. */
hal_status cpu_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                             hal_plugin_kernel **kernel);
void cpu_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* A number for a new kernel. Threads: any. */
uint64_t cpu_kernel_number(void);

#endif
