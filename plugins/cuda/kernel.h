/* Kernels: the object, its entries, and the parameters of its launches. */
#ifndef PLUGINS_CUDA_KERNEL_H
#define PLUGINS_CUDA_KERNEL_H

#include "queue.h"

#include <kit/text.h>

/* The largest parameter block: of a matrix product (gemm/tile/key.h), or addresses and scalars. */
#define CUDA_MAX_PARAMETERS 1024u
_Static_assert(8u * HAL_IR_MAX_BINDINGS + HAL_IR_MAX_SCALAR_BYTES <= CUDA_MAX_PARAMETERS,
               "bindings and scalars fit");

struct hal_plugin_kernel {
    cuda_module module;
    cuda_function function;
    uint64_t serial; /* unique in the device; the address of a function may be reused */
    uint32_t group[3];
    uint32_t binding_count;
    uint32_t scalar_bytes;    /* of the parameter block, after the addresses */
    uint32_t parameter_bytes; /* of the whole parameter block */
    uint32_t dynamic_shared;  /* bytes */
    bool waits_itself;        /* for the kernel before it, so it may start early in a chain */
    bool in_clusters;         /* its groups run in clusters, see chain/chain.h */
    /* Of a matrix product, whose module others share; else null. */
    struct cuda_gemm_launch *gemm;
    /* Of attention, likewise: the parameter block without addresses and scale; else null. */
    struct cuda_attention_block *attention;
    uint32_t groups; /* along x, whatever the dispatch says; 0: as it says */
    /* Writes the parameter block in place of addresses and scalars; or null. Returns its bytes. */
    uint32_t (*write)(const hal_plugin_kernel *kernel, const hal_plugin_queue *queue,
                      const hal_batch *batch, const hal_command *command, uint8_t *block);
};

hal_status cuda_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                              hal_plugin_kernel **kernel);
hal_status cuda_kernel_create_native(hal_plugin_device *device, const char *format,
                                     const void *code, uint64_t bytes, const char *entry,
                                     const hal_ir_kernel *interface, hal_plugin_kernel **kernel);
hal_status cuda_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                              hal_kernel_report *report);
void cuda_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);
/* The parameters of a launch, as the driver takes them: one of the lists is null. */
typedef struct cuda_arguments {
    uint8_t block[CUDA_MAX_PARAMETERS];
    size_t bytes;
    void *list[5];
    void **parameters, **extra;
} cuda_arguments;
/* Writes the parameter block of a dispatch to a queue: addresses, then scalars. */
void cuda_kernel_arguments(const hal_plugin_queue *queue, const hal_batch *batch,
                           const hal_command *command, cuda_arguments *arguments);
/* The grid of a dispatch: a native matrix product has its own. */
void cuda_kernel_grid(const hal_command *command, uint32_t grid[3]);

/* What machine code is made of. */
typedef struct cuda_kernel_source {
    const char *name; /* of dumps */
    hal_status (*write)(const void *what, const hal_plugin_device *device, kit_text *text);
    const void *what;
    uint64_t key[2]; /* of the compile cache */
    /* The driver assembles the text as it loads it, and caches that itself: its linker, from which
     * machine code for the compile cache comes, ignores setmaxnreg, so a kernel whose warpgroups
     * have different numbers of registers spills. */
    bool loads_text;
    bool assembles_simply; /* at the assembler's second level, see kernel.c */
} cuda_kernel_source;
/* Loads machine code from the compile cache, or writes PTX and assembles it. Sets the kernel's
 * module and function. The context is current. */
hal_status cuda_kernel_compile(hal_plugin_device *device, const cuda_kernel_source *source,
                               hal_plugin_kernel *kernel);
/* The hash of all of the IR but its names. */
void cuda_kernel_hash(const hal_ir_kernel *ir, uint64_t key[2]);

#endif
