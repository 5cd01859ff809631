/* Elementwise kernels: one skeleton that walks a space and leaves to its user what happens at each
 * element. Shared by the pointwise, index and random families.
 *
 * A work-item handles `width` neighbours of the innermost dimension. Either the elements are
 * counted in one row and split by division, or, where the innermost dimension is long enough, it
 * runs along x of the grid and the others along y and z. */
#ifndef OPS_SRC_KERNELS_ELEMENTWISE_H
#define OPS_SRC_KERNELS_ELEMENTWISE_H

#include "tensor/indexing.h"

typedef struct ops_elementwise_plan {
    ops_layout layout;
    uint32_t width; /* elements of a work-item */
    uint32_t group; /* work-items of a group along x */
    uint32_t lines; /* rows: neighbours of the second innermost dimension in one group, along y */
    uint8_t rows;   /* the innermost dimension has the grid's x for itself */
    uint8_t grid_may_overrun; /* rows: the grid may count more rows than there are */
    uint8_t tail;   /* the last work-item has fewer elements than width */
    uint32_t grid[3];
} ops_elementwise_plan;

/* Where a work-item stands. */
typedef struct ops_element_iter {
    uint32_t width;
    hal_ir_value guard; /* for loads and stores */
    const ops_layout *layout;
    const ops_layout_values *values;
    hal_ir_value index[OPS_MAX_VIEWS]; /* of the first element */
} ops_element_iter;

typedef void (*ops_elementwise_body)(hal_ir_builder *b, const ops_element_iter *cursor,
                                     const void *user);

/* Plans a kernel over a collapsed space with elements. `widest` is the largest width that the
 * caller can use, `starts` the first elements of the views' bindings in their buffers (or null: 0);
 * `reserved` bytes of scalars are left to the caller, and
 * `reach` is the furthest place that views walk to outside of the space. */
hal_status ops_elementwise_plan_init(const ops_context *context, const char *function,
                                     const ops_space *space, uint32_t widest,
                                     const uint64_t *starts, uint32_t reserved, int64_t reach,
                                     ops_elementwise_plan *walk);
void ops_elementwise_key(const ops_space *space, const ops_elementwise_plan *walk,
                         ops_cache_key *signature);

/* Declares group size and scalars (ops_layout_put); the caller's own scalars follow. Then emits the
 * walk: `body` may be called more than once. */
void ops_elementwise_declare(hal_ir_builder *b, const ops_space *space,
                             const ops_elementwise_plan *walk, ops_layout_values *values);
void ops_elementwise_emit(hal_ir_builder *b, const ops_elementwise_plan *walk,
                          const ops_layout_values *values, ops_elementwise_body body,
                          const void *user);

/* The place of element `element` of the work-item in a view; loading and storing the work-item's
 * elements in the memory of a binding. */
hal_ir_value ops_element_index(hal_ir_builder *b, const ops_element_iter *cursor, uint32_t view,
                               uint32_t element);
void ops_element_load(hal_ir_builder *b, const ops_element_iter *cursor, uint32_t view,
                      hal_ir_memory_id memory, hal_ir_value *elements);
void ops_element_store(hal_ir_builder *b, const ops_element_iter *cursor, uint32_t view,
                       hal_ir_memory_id memory, const hal_ir_value *elements);

#define OPS_MAX_WIDTH 8u

#endif
