/* From an iteration space to memory: collapsing dimensions on the host, and the strided index
 * arithmetic of kernels in IR. Shared by the pointwise, reduce and index families.
 *
 * Index arithmetic is unsigned and wraps, so negative strides need no special case. It has 32 bits
 * when every index and the number of elements stay below 2^31. */
#ifndef OPS_SRC_TENSOR_INDEXING_H
#define OPS_SRC_TENSOR_INDEXING_H

#include "context.h"

#include <stdbool.h>

#define OPS_MAX_VIEWS (HAL_IR_MAX_BINDINGS + 2u)

/* Tensors ("views") that a kernel iterates over together. */
typedef struct ops_space {
    uint32_t rank;
    uint32_t view_count;
    int64_t size[OPS_MAX_RANK];
    int64_t base[OPS_MAX_VIEWS]; /* index of element (0, 0, ...) in the binding */
    int64_t stride[OPS_MAX_VIEWS][OPS_MAX_RANK];
} ops_space;

/* The stride of a view along the innermost dimension. TWO is that of the parts of complex numbers,
 * which processors load and store by vectors; it is ANY unless ops_layout_find_pairs was called. */
enum { OPS_INNER_ZERO = 0, OPS_INNER_ONE = 1, OPS_INNER_ANY = 2, OPS_INNER_TWO = 3 };

/* The properties of a space that a kernel is compiled for; the others are scalars. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_layout {
    uint32_t rank;
    uint32_t view_count;
    uint32_t dense;  /* on processors, a bit for each view whose elements are in the space's order
                       without gaps: its index is the element's number */
    uint8_t index64; /* indices have 64 bits */
    uint8_t baked;   /* sizes and strides are constants: the scalars would not fit */
    uint8_t inner[OPS_MAX_VIEWS]; /* OPS_INNER_* */
} ops_layout;
OPS_KEY_STRUCTURES_END

/* The scalars (or constants) of a layout in a kernel. */
typedef struct ops_layout_values {
    hal_type type; /* of indices: U32 or U64 */
    hal_ir_value total;
    hal_ir_value size[OPS_MAX_RANK], magic[OPS_MAX_RANK], shift[OPS_MAX_RANK];
    hal_ir_value base[OPS_MAX_VIEWS];
    hal_ir_value stride[OPS_MAX_VIEWS][OPS_MAX_RANK];
    hal_ir_value tile_count[3], tile_size[3], tile_groups; /* of kernels over tiles */
} ops_layout_values;

static inline uint8_t ops_inner_step(int64_t stride)
{
    return stride == 0 ? OPS_INNER_ZERO : stride == 1 ? OPS_INNER_ONE : OPS_INNER_ANY;
}

/* Starts a space without views. The other two add a view and return its number: a tensor that can
 * be broadcast to the space, or a view whose index is the coordinate along a dimension. */
void ops_space_begin(ops_space *space, uint32_t rank, const int64_t *shape);
uint32_t ops_space_add(ops_space *space, const ops_tensor *tensor, int64_t base);
uint32_t ops_space_add_coordinate(ops_space *space, uint32_t dimension);

/* Removes dimension `axis` from the space; strides[v] receives view v's stride along it. */
void ops_space_take_axis(ops_space *space, uint32_t axis, int64_t *strides);

/* Sorts the dimensions by descending stride of view `leader`, drops those of length 1 and merges
 * neighbours that are contiguous in every view. The rank is at least 1 afterwards. */
void ops_space_collapse(ops_space *space, uint32_t leader);

/* Moves a dimension inwards, to the number `to`. */
void ops_space_move(ops_space *space, uint32_t dimension, uint32_t to);

int64_t ops_space_elements(const ops_space *space);

/* Whether a view is contiguous along the second innermost dimension; whether the elements of
 * the innermost lines of all views are neighbours, or one element, or every
 * second one of long lines. */
bool ops_space_is_transposed(const ops_space *space);
bool ops_space_has_plain_lines(const ops_space *space);

/* Describes the kernel for a space. `reserved`: bytes of scalars that the caller adds. `reach`: the
 * largest distance in elements that the kernel goes beyond a view's elements of the space. */
void ops_layout_choose(const ops_context *context, const ops_space *space, uint32_t reserved,
                       int64_t reach, ops_layout *layout);

/* Compiles strides of 2 along the innermost dimension into the kernel. */
void ops_layout_find_pairs(const ops_space *space, ops_layout *layout);

/* Makes a layout, which has no dense views, that of its class: of 2 or 4 dimensions, the first of
 * which may have one element, in the space too; and unless `keeps_inner` all strides are scalars.
 * Where these scalars would not fit, or the rank is larger, it stays. */
void ops_layout_generalise(uint32_t reserved, uint32_t few, bool keeps_inner, ops_space *space,
                           ops_layout *layout);
void ops_layout_key(const ops_space *space, const ops_layout *layout, ops_cache_key *key);

/* The scalars of a layout, and their declaration in the same order. */
void ops_layout_put(const ops_space *space, const ops_layout *layout, ops_block *block);
void ops_layout_declare(hal_ir_builder *b, const ops_space *space, const ops_layout *layout,
                        ops_layout_values *values);

/* Splits a linear index over the first `dimensions` dimensions and adds the resulting offsets to
 * index[view], which starts from values such as values->base. */
void ops_layout_offset(hal_ir_builder *b, const ops_layout *layout, const ops_layout_values *values,
                       hal_ir_value linear, uint32_t dimensions, hal_ir_value *index);

/* index + count * stride along the innermost dimension of a view. */
hal_ir_value ops_layout_step(hal_ir_builder *b, const ops_layout *layout,
                             const ops_layout_values *values, uint32_t view, hal_ir_value index,
                             hal_ir_value count);

/* The length of the second innermost dimension. That of dimension 0 is not a scalar: it is computed
 * from the number of elements. */
hal_ir_value ops_layout_line_count(hal_ir_builder *b, const ops_layout *layout,
                                   const ops_layout_values *values);

/* A constant of the index type; x cast to a type unless it has it; the number of the group in a
 * grid whose x and y count one dimension. */
hal_ir_value ops_index_constant(hal_ir_builder *b, hal_type type, uint64_t value);
hal_ir_value ops_value_cast(hal_ir_builder *b, hal_type type, hal_ir_value x);
hal_ir_value ops_index_group(hal_ir_builder *b);

/* Both of two guards, each of which may be HAL_IR_NONE. */
static inline hal_ir_value ops_guard_and(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return x == HAL_IR_NONE ? y : y == HAL_IR_NONE ? x : hal_ir_and(b, x, y);
}

/* Work-items of a one-dimensional group, as the device prefers and allows. */
uint32_t ops_group_items(const hal_device_info *info);

/* Whether the plugin itself makes vectors of the work-items along dimension 0 of a group. Where the
 * text of a kernel says that their elements are neighbours, it loads them at once. */
bool ops_has_lane_vectors(const ops_context *context);

/* x / divisor = (x * magic) >> (32 + shift) for all x below 2^31 and divisors from 2; the quotient
 * is 0 for a divisor of 1. */
void ops_magic_division(uint32_t divisor, uint32_t *magic, uint32_t *shift);

/* The quotient of a U32 below 2^31 by a constant, which x becomes the remainder of. */
hal_ir_value ops_divide_by_constant(hal_ir_builder *b, uint32_t divisor, hal_ir_value *x);

static inline uint64_t ops_ceil_divide(uint64_t x, uint64_t y)
{
    return (x + y - 1) / y;
}

/* Items per group, at most `most`, for the fewest groups; up to twice as many groups where all of
 * them are full then. */
uint32_t ops_even_share(uint64_t count, uint32_t most);

/* Spreads `groups` groups over x and y of a device's grid. Errors: UNSUPPORTED when they exceed
 * it. */
hal_status ops_grid_spread(const ops_context *context, const char *function, uint64_t groups,
                           uint32_t grid[3]);

#endif
