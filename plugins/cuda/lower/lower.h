/* From IR to PTX.
 *
 * A kernel becomes one entry with one parameter, a block of bytes: the addresses of the bindings, 8
 * bytes each, then the scalars as the IR lays them out. The entry is always named CUDA_ENTRY, so
 * that no name of the IR collides with a word of PTX. */
#ifndef PLUGINS_CUDA_LOWER_LOWER_H
#define PLUGINS_CUDA_LOWER_LOWER_H

#include "lower/text.h"

#define CUDA_ENTRY "hal_kernel"

/* Bytes of shared memory that the PTX may declare; more is given by the launch. */
#define CUDA_STATIC_SHARED (48u * 1024u)

/* What a launch needs. */
typedef struct cuda_layout {
    uint32_t scalars;         /* offset of the scalars in the parameter block, in bytes */
    uint32_t parameter_bytes; /* of the parameter block, to the end of the last scalar */
    uint32_t shared_bytes;    /* of all shared arrays */
    uint32_t dynamic_shared;  /* the same where it is more than CUDA_STATIC_SHARED, else 0 */
} cuda_layout;

/* The layout of a kernel. Threads: any. Errors: none. */
void cuda_layout_of(const hal_ir_kernel *kernel, cuda_layout *layout);

/* Appends the PTX of a verified and legalised kernel for a compute capability, 10 * major + minor.
 * Memory: of text->host. Threads: any, each on its own text.
 * Errors, with their message given to the host: UNSUPPORTED for a record that the lowering does not
 * know; OUT_OF_MEMORY. */
hal_status cuda_lower(const hal_ir_kernel *kernel, uint32_t capability, kit_text *text);

/* Parts of a lowering, for kernels around a fragment. */

/* Allocates the state of each record in `scratch`, which the caller releases, and finds where
 * work-items diverge. */
hal_status cuda_lowering_init(cuda_lowering *l, void **scratch);

/* Lowers one record; a failure is in l->status. */
void cuda_lower_record(cuda_lowering *l, uint32_t index);

/* Declares the registers that are used. */
void cuda_write_registers(const cuda_lowering *l, kit_text *text);

#endif
