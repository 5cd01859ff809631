/* Kernels of a file, created for the device of the replay. */
#ifndef HAL_TOOLS_REPLAY_KERNEL_H
#define HAL_TOOLS_REPLAY_KERNEL_H

#include "replay_file.h"

#include <hal/hal.h>
#include <stdbool.h>

/* One kernel. `kernel` is null, with a `reason`, if the device does not support it. */
typedef struct replay_made {
    uint64_t id;
    char *name;
    char *reason;
    hal_kernel *kernel;
    hal_ir_kernel *ir; /* as built, the bindings of native code, or the plain product */
    bool is_gemm;
    bool is_plain;             /* by replay_plain_gemm */
    hal_gemm_description gemm; /* without its epilogue */
    hal_buffer *workspace;     /* of a matrix product */
    hal_type attention;        /* the type of a plugin's own attention; else NONE */
} replay_made;

/* Begins as {0}. */
typedef struct replay_kernels {
    replay_made *items;
    uint32_t count, capacity;
} replay_kernels;

/* Creates a kernel that was recorded with subgroups of `lanes` lanes. A kernel that the device does
 * not support is kept with the reason.
 * Errors: INVALID_ARGUMENT for a known id, OUT_OF_MEMORY. */
hal_status replay_kernel_add(replay_kernels *kernels, hal_device *device, const replay_kernel *from,
                             uint32_t lanes);
replay_made *replay_kernel_find(const replay_kernels *kernels, uint64_t id);
void replay_kernels_free(replay_kernels *kernels);

/* Type and name of a binding; NONE and "" for a workspace. */
hal_type replay_binding_type(const replay_made *made, uint32_t binding);
const char *replay_binding_name(const replay_made *made, uint32_t binding);

/* A described product as plain IR, one work-item per element of C, for plugins without an own
 * product. Bindings: a, b, c and the epilogue's inputs; scalars: alpha and beta of
 * replay_gemm_accumulator; groups of 64 in x and y, see replay_plain_grid.
 * Errors: UNSUPPORTED for types and sizes, those of the builder. */
hal_status replay_plain_gemm(const hal_gemm_description *gemm, const hal_ir_kernel *epilogue,
                             hal_ir_kernel **ir);
void replay_plain_grid(const hal_gemm_description *gemm, uint32_t grid[3]);
hal_type replay_gemm_accumulator(const hal_gemm_description *gemm);

/* Whether a kernel for subgroups of `from` lanes computes the same with `to`. */
bool replay_lanes_fit(const hal_ir_kernel *ir, uint32_t from, uint32_t to);

/* The same kernel with its subgroup operations, of `lanes` lanes, through shared memory.
 * Ownership: *fixed is for hal_ir_kernel_destroy. Errors: OUT_OF_MEMORY, UNSUPPORTED. */
hal_status replay_fix_lanes(const hal_ir_kernel *ir, uint32_t lanes, hal_ir_kernel **fixed);

#endif
