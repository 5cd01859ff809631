/* A kernel, as the sources that record it see it, and the table of a device's live kernels. */
#ifndef HAL_SRC_CORE_KERNEL_H
#define HAL_SRC_CORE_KERNEL_H

#include "fence_set.h"

#include <hal/kernel.h>
#include <stdatomic.h>

struct hal_kernel {
    hal_kernel *next; /* in the table, or among those that wait for their last use */
    hal_kernel *next_source;
    _Atomic uint32_t references;
    int made; /* `status` counts and `handle` is there when it is HAL_OK; under the table's lock */
    hal_status status;
    char *message; /* of a status that is not HAL_OK */
    uint64_t key[2];    /* of the legalised IR, or of the native code */
    uint64_t source[2]; /* of the IR that it was first made of; zeros when it is not known by it */
    hal_device *device;
    hal_plugin_kernel *handle;
    _Atomic uint64_t stamp; /* serial of the last batch that noted its use */
    hal_fence_set uses;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    uint8_t access[HAL_IR_MAX_BINDINGS];
    char *names; /* the kernel's own, then those of its bindings, each with its zero */
};

/* What a kernel is made of: exactly one of IR, code and description. Layers see it. */
typedef struct hal_kernel_source {
    const hal_ir_kernel *ir;    /* legalised; the signature of native code */
    const hal_ir_kernel *built; /* the IR, or the description's epilogue, before it was legalised */
    const char *format;
    const void *code;
    uint64_t bytes;
    const char *entry;
    const hal_gemm_description *gemm;
    uint64_t *workspace_bytes;
} hal_kernel_source;

#define HAL_KERNEL_BUCKETS 256

typedef struct hal_kernel_table {
    pthread_mutex_t lock;
    pthread_cond_t made;
    hal_kernel *buckets[HAL_KERNEL_BUCKETS];
    hal_kernel *sources[HAL_KERNEL_BUCKETS]; /* the same kernels by source: spares legalising */
    hal_kernel *retired; /* released while work that uses them was under way */
    _Atomic uint32_t retired_count;
} hal_kernel_table;

void hal_kernel_table_begin(hal_kernel_table *table);

/* Destroys what is left: no work is under way any more. */
void hal_kernel_table_end(hal_device *device);

/* Destroys the retired kernels whose work is over. Threads: any. */
void hal_kernel_sweep(hal_device *device);

/* References that hal's own objects hold: as hal_kernel_retain and hal_kernel_release, but not the
 * program's. */
hal_kernel *hal_kernel_ref(hal_kernel *kernel);
void hal_kernel_unref(hal_kernel *kernel);

/* The name of a binding, for messages. */
const char *hal_kernel_binding_name(const hal_kernel *kernel, uint32_t binding);

hal_status hal_kernel_note_use(hal_kernel *kernel, hal_queue *queue);

#endif
