/* From an iteration space to places in memory: collapsing dimensions on the host, and the strided
 * index arithmetic of kernels in IR. Shared by the pointwise, reduce and index families.
 *
 * Index arithmetic is unsigned and wraps, so negative strides need no care; it has 32 bits when
 * every place and the number of elements stay below 2^31. */
#ifndef OPS_SRC_TENSOR_INDEXING_H
#define OPS_SRC_TENSOR_INDEXING_H

#include "context.h"

#define OPS_MAX_VIEWS (HAL_IR_MAX_BINDINGS + 2u)

/* Tensors ("views") walked together over a space. */
typedef struct ops_space {
    uint32_t rank;
    uint32_t view_count;
    int64_t size[OPS_MAX_RANK];
    int64_t base[OPS_MAX_VIEWS]; /* place of element (0, 0, ...) in the binding, in elements */
    int64_t stride[OPS_MAX_VIEWS][OPS_MAX_RANK];
} ops_space;

/* How a view steps along the innermost dimension. */
enum { OPS_INNER_ZERO = 0, OPS_INNER_ONE = 1, OPS_INNER_ANY = 2 };

/* What of a space a kernel is made for; the rest comes as scalars. */
typedef struct ops_layout {
    uint32_t rank;
    uint32_t view_count;
    uint8_t index64; /* indices have 64 bits */
    uint8_t baked; /* sizes and strides are constants: the scalars would not fit */
    uint8_t inner[OPS_MAX_VIEWS];
} ops_layout;

/* The scalars (or constants) of a layout in a kernel. */
typedef struct ops_layout_values {
    hal_type type; /* of indices: U32 or U64 */
    hal_ir_value total;
    hal_ir_value size[OPS_MAX_RANK], magic[OPS_MAX_RANK], shift[OPS_MAX_RANK];
    hal_ir_value base[OPS_MAX_VIEWS];
    hal_ir_value stride[OPS_MAX_VIEWS][OPS_MAX_RANK];
} ops_layout_values;

/* Begins a space without views. Adds a tensor that can be broadcast to it, or a view whose place is
 * the coordinate along one dimension; each gives the view's number. */
void ops_space_begin(ops_space *space, uint32_t rank, const int64_t *shape);
uint32_t ops_space_add(ops_space *space, const ops_tensor *tensor, int64_t base);
uint32_t ops_space_add_coordinate(ops_space *space, uint32_t dimension);

/* Takes dimension `axis` out of the space; view v's stride along it goes to strides[v]. */
void ops_space_take_axis(ops_space *space, uint32_t axis, int64_t *strides);

/* Orders the dimensions so that view `leader` steps ever finer, drops those of length 1 and merges
 * neighbours that every view walks as one. The rank is at least 1 afterwards. */
void ops_space_collapse(ops_space *space, uint32_t leader);

int64_t ops_space_elements(const ops_space *space);

/* Describes the kernel for a space that leaves `reserved` bytes of scalars to its user. `reach` is
 * the largest further distance in elements that a view walks outside of the space. */
void ops_layout_choose(const ops_context *context, const ops_space *space, uint32_t reserved,
                       int64_t reach, ops_layout *layout);
void ops_layout_key(const ops_space *space, const ops_layout *layout, ops_cache_key *signature);

/* The scalars of a layout, and their declaration in the same order. */
void ops_layout_put(const ops_space *space, const ops_layout *layout, ops_block *block);
void ops_layout_declare(hal_ir_builder *b, const ops_space *space, const ops_layout *layout,
                        ops_layout_values *values);

/* Splits a linear index over the first `dimensions` dimensions and adds what it means to the views'
 * places; index[] holds the places so far, such as values->base. */
void ops_layout_offset(hal_ir_builder *b, const ops_layout *layout, const ops_layout_values *values,
                       hal_ir_value linear, uint32_t dimensions, hal_ir_value *index);

/* index + count * stride along the innermost dimension of a view. */
hal_ir_value ops_layout_step(hal_ir_builder *b, const ops_layout *layout,
                             const ops_layout_values *values, uint32_t view, hal_ir_value index,
                             hal_ir_value count);

/* A constant of the index type; a value cast to a type unless it has it; the group's number in a
 * grid whose x and y count one thing. */
hal_ir_value ops_index_constant(hal_ir_builder *b, hal_type type, uint64_t value);
hal_ir_value ops_value_cast(hal_ir_builder *b, hal_type type, hal_ir_value x);
hal_ir_value ops_index_group(hal_ir_builder *b);

/* How many of `count` things a group of at most `most` takes so that the groups are as few as may
 * be, and all full where up to twice as many groups make that possible. */
uint32_t ops_even_share(uint64_t count, uint32_t most);

/* Spreads `groups` groups over x and y of a device's grid; UNSUPPORTED when they do not fit. */
hal_status ops_grid_spread(const ops_context *context, const char *function, uint64_t groups,
                           uint32_t grid[3]);

#endif
