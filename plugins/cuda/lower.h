/* From IR to PTX text. Called by kernel.c, and by tests on machines without the driver.
 *
 * A kernel becomes one entry with one parameter, a block of bytes: the addresses of the bindings, 8
 * bytes each, then the scalars as the IR lays them out. Its name is CUDA_ENTRY, whatever the IR
 * calls it, so that no name can collide with the language. */
#ifndef HALYARD_CUDA_LOWER_H
#define HALYARD_CUDA_LOWER_H

#include <kit/text.h>

#define CUDA_ENTRY "hal_kernel"

/* From this compute capability on, kernels wait by themselves for the one in front of them. */
#define CUDA_EARLY_SM 90u

/* Shared memory up to here may be declared in the text; more has to be asked for at the launch. */
#define CUDA_STATIC_SHARED (48u * 1024u)

/* What a launch of the kernel needs to know. */
typedef struct cuda_layout {
    uint32_t scalars;         /* bytes into the parameter block */
    uint32_t parameter_bytes; /* of the whole block, to the end of the last scalar */
    uint32_t shared_bytes;    /* of all shared arrays */
    uint32_t dynamic_shared;  /* the same where they are more than CUDA_STATIC_SHARED, else 0 */
} cuda_layout;

/* The layout of a kernel. Threads: any. Errors: none. */
void cuda_lay_out(const hal_ir_kernel *kernel, cuda_layout *layout);

/* Appends the PTX of a verified and legalised kernel for compute capability sm (75 stands for 7.5).
 * Memory: of text->host. Threads: any, on a text of its own.
 * Errors, with their sentence given to the host: UNSUPPORTED for a record that the lowering does
 * not know; OUT_OF_MEMORY. */
hal_status cuda_lower(const hal_ir_kernel *kernel, uint32_t sm, kit_text *text);

#endif
