/* The context, and the checks of tensors that every family makes before it records. */
#ifndef OPS_SRC_TENSOR_CONTEXT_H
#define OPS_SRC_TENSOR_CONTEXT_H

#include "bindings.h"
#include "kernel_cache.h"
#include "rounding.h"
#include "scalars.h"

#include <ops/pointwise.h>

/* State that a higher layer keeps with a context, as the first member of its own structure. */
typedef struct ops_extension {
    void (*destroy)(struct ops_extension *extension);
} ops_extension;

struct ops_context {
    hal_queue *queue;
    hal_device *device;
    const hal_device_info *info;
    int64_t
        index32_limit; /* 2^31: places and counts below it have 32-bit indices; tests lower it */
    uint32_t forced_split_depth; /* k of each part of a product; 0: gemm/tiles.c chooses */
    ops_kernel_cache kernels;
    ops_expression *unary[OPS_UNARY_COUNT][HAL_TYPE_COUNT];
    ops_expression *binary[OPS_BINARY_COUNT][HAL_TYPE_COUNT];
    ops_expression *where[HAL_TYPE_COUNT];
    ops_expression *cast[HAL_TYPE_COUNT][HAL_TYPE_COUNT];
    struct ops_plan_recorder *recorder;
    struct ops_compile_policy *compile_policy;
    ops_extension *extension; /* of the array layer; null until the first array */
};

/* Records a kernel of the cache with a one-, two- or three-dimensional grid. */
hal_status ops_dispatch(ops_context *context, const ops_entry *entry, const uint32_t grid[3],
                        const ops_bindings *bindings, const ops_block *block);

/* ---- Tensors ---- */

#define OPS_TEXT_BYTES 160u

/* "f32[3, 4]" into `text`, which is given back. */
const char *ops_describe(const ops_tensor *tensor, char text[OPS_TEXT_BYTES]);

/* An axis of a tensor of that rank, counted from the end where it is negative. UINT32_MAX where it
 * is out of range. */
static inline uint32_t ops_axis_number(int32_t axis, uint32_t rank)
{
    const int64_t number = axis < 0 ? (int64_t)axis + rank : axis;
    return number >= 0 && number < rank ? (uint32_t)number : UINT32_MAX;
}

/* Checks the size that a caller wrote into a structure of options. */
hal_status ops_check_size(const char *function, const char *argument, uint32_t size,
                          uint32_t expected);

/* Checks that a type, rank and shape are such; gives their bytes, which 63 bits can count. */
hal_status ops_check_shape(const char *function, hal_type type, uint32_t rank, const int64_t *shape,
                           uint64_t *bytes);

/* Checks that a tensor is one of the context's device and lies within its buffer. `function` and
 * `argument` name it in the message. */
hal_status ops_check_tensor(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor);

/* The same for a tensor that is written: no two of its elements may share memory. */
hal_status ops_check_output(const ops_context *context, const char *function, const char *argument,
                            const ops_tensor *tensor);

/* Checks that a tensor can be broadcast to a shape. */
hal_status ops_check_broadcast(const char *function, const char *argument, const ops_tensor *tensor,
                               uint32_t rank, const int64_t *shape);

/* The strides of a tensor broadcast to a shape that it fits. */
void ops_broadcast_strides(const ops_tensor *tensor, uint32_t rank, const int64_t *shape,
                           int64_t *strides);

int ops_same_shape(const ops_tensor *x, const ops_tensor *y);

/* The lowest and one beyond the highest element that a tensor touches, in elements. */
void ops_span(const ops_tensor *tensor, int64_t *first, int64_t *end);

/* The same for tensors that come from outside. False for a negative length, and where elements or
 * places are beyond what 63 bits count, even if other axes have a length of 0; a tensor without
 * elements spans nothing. `count`: the product of the lengths, 0 taken for 1. */
int ops_extent(const ops_tensor *tensor, int64_t *first, int64_t *end, int64_t *count);

/* Whether the device's memory holds a type; the error names function and argument. */
hal_status ops_check_storage(const ops_context *context, const char *function, const char *argument,
                             hal_type type);

#endif
