/* A kernel: the plugin's object and what commands need to know of it. */
#ifndef HAL_SRC_CORE_KERNEL_H
#define HAL_SRC_CORE_KERNEL_H

#include "fence_set.h"
#include "recorder.h"

#include <hal/kernel.h>
#include <hal/plugin.h>
#include <stdatomic.h>
#include <stdbool.h>

struct hal_kernel {
    hal_kernel *next; /* among the retired kernels */
    _Atomic uint32_t references;
    hal_device *device;
    _Atomic(hal_plugin_kernel *) handle; /* null: it is being compiled, or that has failed */
    struct hal_kernel_ahead *ahead;      /* of a kernel that is compiled ahead; else null */
    _Atomic uint64_t batch_serial;       /* of the last batch that recorded a use */
    hal_fence_set uses;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    bool reports; /* the last binding is that of reports, see hal/ir_report.h */
    /* HAL_ACCESS_* of each binding; READ after the last, for the grid of an indirect dispatch. */
    uint8_t access[HAL_IR_MAX_BINDINGS + 1];
    hal_ir_kernel *limited; /* the IR, where the device limits loops and scalars are their bounds;
                             * else null */
    char *names;            /* of the kernel, then of its bindings, each with a terminating zero */

    /* Guarded by the lock of the cache. */
    uint64_t key[2];    /* hash of the legalised IR or of the native code; zeros if not shared */
    uint64_t source[2]; /* hash of the IR before it was legalised; zeros if unknown */
    bool is_complete;   /* compilation has ended with `status` */
    hal_status status;
    char *message;       /* of a status other than HAL_OK */
    _Atomic uint64_t compile_ns; /* that the compilation took, 0 before; read without the lock */
    bool from_cache;     /* the plugin found an entry of the compile cache */
};

/* The input of a kernel: exactly one of IR, code and the description of a product or of attention.
 * Shown to hooks. */
typedef struct hal_kernel_source {
    const hal_ir_kernel *ir;    /* legalised; the signature of native code */
    const hal_ir_kernel *built; /* the IR, or the epilogue of a GEMM, before it was legalised */
    const char *format;
    const void *code;
    uint64_t bytes;
    const char *entry;
    const hal_gemm_description *gemm;
    uint64_t *workspace_bytes;
    const hal_attention_description *attention;
} hal_kernel_source;

/* Whether it is a plugin's own kernel of a description, which no IR describes. */
static inline bool hal_kernel_source_is_described(const hal_kernel_source *source)
{
    return source->gemm || source->attention;
}

/* Returns a kernel without a handle that holds a reference to the device. Null, with a message,
 * without host memory. */
hal_kernel *hal_kernel_allocate(hal_device *device, const hal_kernel_source *source);

/* Lets the plugin compile the kernel, and makes the handle known. Errors: those of the plugin. */
hal_status hal_kernel_compile(hal_kernel *kernel, const hal_kernel_source *source);

/* Destroys a kernel that no work uses. The caller drops the reference to the device. */
void hal_kernel_free(hal_kernel *kernel);

/* The name of a binding, for messages. */
const char *hal_kernel_binding_name(const hal_kernel *kernel, uint32_t binding);

/* Records that the batch in recording uses the kernel. Threads: the queue's.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_kernel_note_use(hal_kernel *kernel, const hal_recorder *recorder);

#endif
