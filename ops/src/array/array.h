/* The inside of arrays: what each is to be computed from, and the state that a context's arrays
 * share. array.c owns their lives, operation.c notes operations, group.c gathers what becomes one
 * kernel, evaluate.c records it. */
#ifndef OPS_SRC_ARRAY_ARRAY_H
#define OPS_SRC_ARRAY_ARRAY_H

#include "tensor/context.h"

#include <ops/array.h>

typedef enum ops_array_state {
    OPS_ARRAY_FREE,     /* a place for one */
    OPS_ARRAY_MEMORY,   /* view.buffer holds the elements */
    OPS_ARRAY_DEFERRED, /* to be computed from the operands */
    OPS_ARRAY_VOID      /* of a graph that has been recorded */
} ops_array_state;

typedef enum ops_operation {
    OPS_OPERATION_NONE,
    OPS_OPERATION_UNARY, /* these four are pointwise; `function` is the function or type */
    OPS_OPERATION_BINARY,
    OPS_OPERATION_WHERE,
    OPS_OPERATION_CAST,
    OPS_OPERATION_REDUCE, /* `function` is the ops_reduction */
    OPS_OPERATION_SOFTMAX,
    OPS_OPERATION_LOG_SOFTMAX,
    OPS_OPERATION_MATMUL,  /* `function` is the precision */
    OPS_OPERATION_VIEW,    /* offset and strides hold for the operand's elements, row by row */
    OPS_OPERATION_CONSTANT /* of memory that other arrays of the same value have too */
} ops_operation;

/* What one kernel may have at most: operations, so that a compiler's time stays bounded, and arrays
 * that it reads. Written down in docs/batching.md with the figures that chose them. */
#define OPS_GROUP_OPERATIONS 64u
#define OPS_GROUP_LEAVES 12u

/* Kernels that follow from one another and are not recorded yet; beyond that the first ones are. */
#define OPS_DEFERRED_DEPTH 4u

/* Results of up to so many bytes are computed into memory that the host reads, when it is about to;
 * docs/batching.md. */
#define OPS_DIRECT_READ_BYTES 16384u

struct ops_array {
    ops_context *context;
    uint32_t holders; /* references of the caller and of a scope */
    uint32_t uses;    /* by deferred arrays, an operand that is given twice counting twice */
    uint8_t state, operation, function, operand_count;
    uint8_t axis;
    uint8_t in_scope;     /* one of the holders is a scope */
    uint8_t needs_memory; /* an operand of a product or softmax, which read memory */
    uint8_t was_computed; /* inside of a kernel, which left it no memory */
    uint8_t in_host_memory; /* its memory is of the kind that the host reads */
    uint8_t depth;        /* kernels that have to be recorded first, one after the other */
    uint16_t operations;  /* at most so many in the group that computes it; and arrays read there */
    uint16_t leaves;
    uint32_t stamp; /* of the last gathering that met it, and its place there */
    uint16_t place;
    uint16_t seen;       /* times that the gathering met it as an operand */
    uint32_t generation; /* of the graph that was being recorded when it was made, or 0 */
    ops_array *operands[3];
    ops_array *previous, *next; /* in its scope; the next free one */
    ops_tensor view;            /* without a buffer while deferred */
};

typedef struct ops_scope {
    ops_array head; /* of the ring of its arrays */
    struct ops_scope *outer;
} ops_scope;

/* One-element buffers of constants that were used lately. */
#define OPS_CONSTANTS 64u
typedef struct ops_constant {
    hal_buffer *buffer;
    hal_type type;
    double value;
} ops_constant;

#define OPS_SLAB_ARRAYS 256u
typedef struct ops_slab {
    struct ops_slab *next;
    ops_array arrays[OPS_SLAB_ARRAYS];
} ops_slab;

struct ops_arrays {
    ops_slab *slabs;
    ops_array *free;
    ops_scope *scope, *spare_scopes;
    int unfused;
    const ops_array *read; /* what is being computed for the host to read, or null */
    uint32_t stamp;
    uint32_t generation; /* of graphs */
    int recording;       /* a graph is being recorded */
    ops_constant constants[OPS_CONSTANTS];
    ops_array_statistics statistics;
};

/* The context's arrays, made at the first call; null, and an error, without memory. */
struct ops_arrays *ops_arrays_of(ops_context *context);
void ops_arrays_destroy(ops_context *context);

/* A new array of the innermost scope or the caller, in state MEMORY, with `view` (shape and type
 * alone when it has no buffer); null, and an error, without memory. */
ops_array *ops_array_new(ops_context *context);

/* After a failure: the batch that filled constants may have been dropped, so they are made anew.
 * Gives the status back. */
hal_status ops_arrays_failed(ops_context *context, hal_status status);

/* Gives a deferred array its memory: the buffer's reference becomes the array's, and its operands
 * lose a use. */
void ops_array_settle(ops_array *array, hal_buffer *buffer);

/* Adds and ends a use of an array by a deferred one; what nobody holds or uses is freed. */
static inline void ops_array_use(ops_array *array)
{
    array->uses++;
}
void ops_array_disuse(ops_array *array);

/* Whether the caller itself holds an array, beside a scope. */
static inline int ops_array_is_kept(const ops_array *array)
{
    return array->holders > array->in_scope;
}

/* Arrays that a kernel of pointwise operations may read on the context's device. */
static inline uint32_t ops_group_most_leaves(const ops_context *context)
{
    uint32_t most = context->info->max_bindings - 1;
    return most < OPS_GROUP_LEAVES ? most : OPS_GROUP_LEAVES;
}

static inline int ops_array_is_pointwise(const ops_array *array)
{
    return array->state == OPS_ARRAY_DEFERRED && array->operation >= OPS_OPERATION_UNARY &&
           array->operation <= OPS_OPERATION_CAST;
}

/* Sets type, rank, shape and the strides of row-major elements; the buffer is left alone. */
void ops_array_shape(ops_array *array, hal_type type, uint32_t rank, const int64_t *shape);

/* Says which array is null, and what the call said that failed to make it. Gives
 * INVALID_ARGUMENT. */
hal_status ops_array_missing(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Checks operands: null when one is null, void, or of another context; else the context. */
ops_context *ops_array_operands(const char *function, ops_array *const *operands, uint32_t count);

/* Records what computes the arrays, which have one context (evaluate.c). */
hal_status ops_evaluate(ops_array *const *arrays, uint32_t count);

/* The same for an array that the host reads next. */
hal_status ops_evaluate_to_read(ops_array *array);

/* Ends a recording and drops what it kept (graph.c). */
hal_status ops_graph_drop(ops_context *context);

#endif
