/* Elementwise kernels: the skeleton that iterates over a space; its user supplies the body for one
 * element. Shared by the pointwise and index families.
 *
 * A work-item computes `width` neighbours of the innermost dimension. A flat kernel numbers all
 * elements and finds coordinates by division. Where the innermost dimension is long enough, it has
 * the grid's x for itself, and y and z number the rows.
 *
 * Where inputs are contiguous along another dimension, a group of a GPU computes a tile of the two
 * dimensions, and of a third one where one of them is short. It reads those inputs along the other
 * dimension into shared memory first, so that all accesses to global memory are contiguous
 * (transposed.c). */
#ifndef OPS_SRC_KERNELS_ELEMENTWISE_H
#define OPS_SRC_KERNELS_ELEMENTWISE_H

#include "elementwise_plan.h"
#include "tensor/kernel_cache.h"

/* A caller's kernel. `user` has the space and the plan, which `emit` reads. */
typedef struct ops_elementwise_kernel {
    const char *name;
    ops_kernel_emit emit;
    const void *user;
} ops_elementwise_kernel;

/* Plans a kernel over a collapsed space that has elements, and finds or compiles it: that of the
 * shape, or the general one of its class (docs/kernel-classes.md). May move a dimension of the
 * space. `key` has what the caller decides. Errors: UNSUPPORTED, those of ops_cache_get. */
hal_status ops_elementwise_find_kernel(ops_context *context, const ops_elementwise_use *use,
                                       const ops_elementwise_kernel *kernel,
                                       const ops_cache_key *key, ops_space *space,
                                       ops_elementwise_plan *plan, ops_entry **entry);

/* The plan of a shape alone, and its part of a key. */
hal_status ops_elementwise_plan_init(const ops_context *context, const ops_elementwise_use *use,
                                     ops_space *space, ops_elementwise_plan *plan);
void ops_elementwise_key(const ops_space *space, const ops_elementwise_plan *plan,
                         ops_cache_key *key);

/* Elements of the widest vector access of a device to elements of `size` bytes; 1 where an element
 * is larger than a vector. */
uint32_t ops_elementwise_widest(const ops_context *context, uint32_t size);

/* The scalars of the kernel, and in the same order their declaration with that of the group's size;
 * the caller's own scalars follow. */
void ops_elementwise_put(const ops_space *space, const ops_elementwise_plan *plan,
                         ops_block *block);
void ops_elementwise_declare(hal_ir_builder *b, const ops_space *space,
                             const ops_elementwise_plan *plan, ops_layout_values *values);

/* Emits the loop over elements; `body` may be called more than once. `types` are the storage types
 * of the memories `slots[view]`; without `loaded` views both may be null. */
void ops_elementwise_emit(hal_ir_builder *b, const ops_elementwise_plan *plan,
                          const ops_layout_values *values, const uint8_t *slots,
                          const hal_type *types, ops_elementwise_body body, const void *user);

#endif
