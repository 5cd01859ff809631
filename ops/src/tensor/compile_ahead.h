/* Kernels of a context that are being compiled in the background: they are given to the program's
 * work at once, which waits for them when it is submitted, or when they are compiled. */
#ifndef OPS_SRC_TENSOR_COMPILE_AHEAD_H
#define OPS_SRC_TENSOR_COMPILE_AHEAD_H

#include "context.h"

#include <stdbool.h>

/* Whether compilations are slow enough to be left to the background. */
bool ops_compile_ahead_pays(const ops_context *context);

/* Creates the plugin's product, in the background where compilations are slow.
 * Errors: those of hal_kernel_create_gemm. */
hal_status ops_compile_ahead_create_gemm(ops_context *context,
                                         const hal_gemm_description *description,
                                         hal_kernel **kernel, uint64_t *workspace_bytes);

/* Follows the compilation of a kernel of the context's table, unless it has ended: the compile
 * policy learns its time. */
void ops_compile_ahead_follow(ops_context *context, hal_kernel *kernel);

/* Whether one kernel more can be followed or requested. */
bool ops_compile_ahead_has_room(const ops_context *context);

/* Keeps a kernel, whose reference passes to it, until it is compiled, and inserts it then; for the
 * plan that is being recorded, if one is. False where there is no room: the reference stays the
 * caller's. */
bool ops_compile_ahead_request(ops_context *context, const uint64_t hash[2], hal_kernel *kernel);

/* Whether the kernel with that hash is requested for a plan, or with zeros for any plan or none. */
bool ops_compile_ahead_is_requested(const ops_context *context, const uint64_t hash[2],
                                    const uint64_t plan[2]);

/* Whether a kernel that was requested for a plan is not compiled yet. */
bool ops_compile_ahead_is_awaited(const ops_context *context, const uint64_t plan[2]);

/* Inserts the requested kernels that are compiled, and tells the compile policy the times of all
 * that are. One that could not be compiled is forgotten, and what was charged to it. Entries of the
 * table are not valid any more. Errors: OUT_OF_MEMORY. */
hal_status ops_compile_ahead_collect(ops_context *context);

/* Waits for all kernels that are not only requested. Errors: those of the first one that could not
 * be compiled. */
hal_status ops_compile_ahead_wait(ops_context *context);

/* Releases the kernels, compiled or not. */
void ops_compile_ahead_release(ops_compile_ahead *ahead);

#endif
