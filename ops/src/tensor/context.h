/* What every family of operations shares: the context with its memory of kernels, checks of
 * tensors, and how tensors become bindings. Included by all sources of the op library. */
#ifndef OPS_SRC_TENSOR_CONTEXT_H
#define OPS_SRC_TENSOR_CONTEXT_H

#include <ops/pointwise.h>

/* Which family a signature belongs to: the first word of every signature. */
enum {
    OPS_FAMILY_POINTWISE = 1,
    OPS_FAMILY_REDUCE,
    OPS_FAMILY_SOFTMAX,
    OPS_FAMILY_GEMM,
    OPS_FAMILY_NATIVE_GEMM,
    OPS_FAMILY_GATHER,
    OPS_FAMILY_ONE_HOT,
    OPS_FAMILY_IOTA,
    OPS_FAMILY_COPY,
    OPS_FAMILY_FILL,
    OPS_FAMILY_RANDOM
};

/* All that decides what a kernel looks like, as words; equal signatures share a kernel. */
#define OPS_CACHE_KEY_WORDS 640u
typedef struct ops_cache_key {
    uint32_t count;
    uint64_t words[OPS_CACHE_KEY_WORDS];
} ops_cache_key;

/* State that a higher layer keeps with a context, as the first member of its own structure. */
typedef struct ops_extension {
    void (*destroy)(struct ops_extension *extension);
} ops_extension;

/* A kernel that was made for a signature. A null kernel is a product that the plugin declined. */
typedef struct ops_entry {
    uint64_t key[2];
    hal_kernel *kernel;
    uint64_t workspace_bytes;
} ops_entry;

/* Kernels that a context keeps; beyond that it begins anew, so that a program of ever new shapes
 * does not grow. */
#define OPS_CACHE_KERNELS 4096u

struct ops_context {
    hal_queue *queue;
    hal_device *device;
    const hal_device_info *info;
    int64_t narrow; /* places and counts below this have 32-bit indices: 2^31, but in tests */
    uint32_t part_depth; /* steps of k in a part of each product; 0, but in tests: gemm/tiles.c */
    ops_entry *entries; /* open addressing; a free slot has the key {0, 0} */
    uint32_t capacity;  /* a power of two */
    uint32_t count;
    ops_expression *unary[OPS_UNARY_COUNT][HAL_TYPE_COUNT];
    ops_expression *binary[OPS_BINARY_COUNT][HAL_TYPE_COUNT];
    ops_expression *where[HAL_TYPE_COUNT];
    ops_expression *cast[HAL_TYPE_COUNT][HAL_TYPE_COUNT];
    struct ops_plan_recorder *recorder;
    struct ops_compile_policy *compile_policy;
    ops_extension *extension; /* of the array layer; null until the first array */
};

/* The block of scalars of a dispatch, laid out as hal_ir_scalar_value does. */
typedef struct ops_block {
    uint32_t used;
    uint32_t alignment; /* of the largest scalar: the block is a multiple of it */
    _Alignas(8) uint8_t bytes[HAL_IR_MAX_SCALAR_BYTES];
} ops_block;

/* The bindings of a dispatch. Tensors that lie so close in one buffer that their aligned ranges
 * meet share a binding when one of them is written. */
typedef struct ops_bindings {
    uint32_t count;
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    uint8_t access[HAL_IR_MAX_BINDINGS];
    hal_type types[HAL_IR_MAX_BINDINGS];
} ops_bindings;

/* ---- Signatures and kernels ---- */

static inline void ops_cache_key_append(ops_cache_key *signature, uint64_t word)
{
    if (signature->count < OPS_CACHE_KEY_WORDS) {
        signature->words[signature->count++] = word;
    }
}

/* The entry of a signature, null when there is none yet. `key` gets its hash. */
ops_entry *ops_cache_find(ops_context *context, const ops_cache_key *signature, uint64_t key[2]);

/* Keeps a kernel, whose reference passes to the cache in any case.
 * Errors: OUT_OF_MEMORY. The entry is valid until the next insertion. */
hal_status ops_cache_insert(ops_context *context, const uint64_t key[2], hal_kernel *kernel,
                            uint64_t workspace_bytes, ops_entry **entry);

/* Finishes a builder, destroys it, makes the kernel and keeps it under the key. */
hal_status ops_cache_build(ops_context *context, const uint64_t key[2], hal_ir_builder *builder,
                           ops_entry **entry);

/* Records a kernel of the cache with a one-, two- or three-dimensional grid. */
hal_status ops_dispatch(ops_context *context, const ops_entry *entry, const uint32_t grid[3],
                        const ops_bindings *bindings, const ops_block *block);

/* ---- Scalars ---- */

static inline void ops_block_begin(ops_block *block)
{
    block->used = 0;
    block->alignment = 4;
}

/* Appends a scalar of 4 or 8 bytes at the next multiple of its size; `block.used` grows beyond the
 * limit when there is no room, which hal then reports. */
void ops_put(ops_block *block, const void *value, uint32_t bytes);
void ops_put_u32(ops_block *block, uint32_t value);
void ops_put_u64(ops_block *block, uint64_t value);

/* Appends a place, stride or count of 64 or 32 bits; negative ones wrap. */
void ops_put_index(ops_block *block, int wide, int64_t value);

/* Appends `value` as a scalar of a value type, and writes `value` rounded to what memory of
 * `storage` holds, in the value type of that storage. */
void ops_put_number(ops_block *block, hal_type type, double value);
double ops_round_to(hal_type storage, double value);

/* Declares a scalar of a kernel, named by two numbers as well: names are unique in a kernel. */
hal_ir_value ops_scalar(hal_ir_builder *builder, const char *name, uint32_t i, uint32_t j,
                        hal_type type);

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

/* Finds or adds the binding of a tensor and gives its number; HAL_IR_MAX_BINDINGS when there is no
 * room. A tensor without elements gets the beginning of its buffer. */
uint32_t ops_bind(const ops_context *context, ops_bindings *bindings, const ops_tensor *tensor,
                  uint32_t access);

/* Where element (0, 0, ...) of a tensor lies in its binding, in elements; call it when all tensors
 * are bound. */
int64_t ops_base(const ops_bindings *bindings, uint32_t slot, const ops_tensor *tensor);

/* Declares the bindings in a kernel: memory i is binding i. */
void ops_declare_bindings(hal_ir_builder *builder, const ops_bindings *bindings);

/* Whether the device's memory holds a type; the error names function and argument. */
hal_status ops_check_storage(const ops_context *context, const char *function, const char *argument,
                             hal_type type);

#endif
