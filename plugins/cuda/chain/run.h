/* A run: dispatches in a row of one batch. It is hashed and compared, so that a run which comes
 * again is recognised. */
#ifndef PLUGINS_CUDA_CHAIN_RUN_H
#define PLUGINS_CUDA_CHAIN_RUN_H

#include "kernel.h"
#include "memory.h"

typedef struct cuda_run {
    const hal_batch *batch;
    const hal_command *commands; /* in the batch */
    uint32_t count;
} cuda_run;

/* A copy of a run, word by word as it was submitted. Equal words mean the same kernels and
 * addresses while no object of the device was destroyed, whose address another one could have
 * taken. */
typedef struct cuda_run_copy {
    uint32_t count; /* 0: no run is recorded */
    uint64_t command_bytes, binding_bytes, scalar_bytes;
    uint64_t destroyed; /* kernels and memories of the device, when the run was recorded */
    uint64_t capacity;  /* of `words`, in bytes */
    uint8_t *words;     /* commands, bindings, scalars */
} cuda_run_copy;

/* Writes a hash for each dispatch. Equal dispatches have equal hashes; dispatches with equal hashes
 * are compared before they are taken for the same. */
void cuda_run_hash_each(const cuda_run *run, uint64_t *hashes);

/* A hash of the run, never 0; the same holds for it. */
uint64_t cuda_run_hash(const cuda_run *run);

/* Whether a run is the recorded one. The device's `unloading` is held. */
bool cuda_run_equals(const hal_plugin_device *device, const cuda_run_copy *copy,
                     const cuda_run *run);

/* Records a run. Without memory, or where bindings or scalars are not between those of the first
 * and of the last dispatch, the copy stays as it is. */
void cuda_run_record(const hal_plugin_device *device, cuda_run_copy *copy, const cuda_run *run);

#endif
