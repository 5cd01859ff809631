/* Nodes: one record for each array, and the structure that owns all arrays of a context.
 *
 * A node is in memory (view.buffer holds its elements) or deferred (it will be computed from its
 * operands). The files of this folder from the bottom up; each uses only those before it:
 *   constants       one-element buffers of scalars
 *   plan_cache      key of a fusion plan -> recorded commands
 *   node            references, uses and scopes of nodes
 *   lost            nodes whose values are missing, and the check of operands
 *   axis_order      the order of axes in memory that a result takes from its operands
 *   matmul          what a node of a product asks for, and sums that products pass to the next
 *   attention_match products of a softmax that are attention
 *   quantised_match products of quantised weights
 *   view_map        how operands are read to compute a view of a result instead of the result
 *   fusion_cluster  elementwise nodes that become one expression
 *   donation        operands whose memory a result takes
 *   fusion_plan     decides what one kernel computes
 *   matmul_record   records the product of a fusion plan
 *   fusion_record   records a fusion plan through ops_pointwise, ops_reduce, ops_gemm, ...
 *   profile         what a profile shows of fusion
 *   placement       computes operands straight into the memory of a result
 *   horizontal      joins plans of equal form of a call that computes many arrays
 *   execute         computes nodes: plan, look up, replay or record
 *   deferred        makes deferred nodes, and executes operands beyond the limits of a kernel
 *   movement        public calls that make deferred nodes which move elements by index
 *   update          public calls on the memory of an array: replace a part, who holds it, take it
 *   array           public calls on single arrays: lifetime, values, views
 *   creation        public calls that make arrays of host data, constants and random numbers
 *   operation       public calls of operations
 *   graph           graphs over arrays
 *   comm            reductions of arrays over the ranks of a communicator */
#ifndef OPS_SRC_ARRAY_NODE_H
#define OPS_SRC_ARRAY_NODE_H

#include "constants.h"
#include "plan_cache.h"

#include "site.h"
#include "kernels/segments.h"

#include <ops/array.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum ops_node_state {
    OPS_NODE_FREE,     /* in the free list */
    OPS_NODE_MEMORY,   /* view.buffer holds the elements */
    OPS_NODE_DEFERRED, /* to be computed from the operands */
    OPS_NODE_VOID,     /* was made while a graph was recorded; holds nothing */
    OPS_NODE_LOST      /* was to be written by a batch that was dropped; holds nothing */
} ops_node_state;

typedef enum ops_operation {
    OPS_OPERATION_NONE,
    /* Elementwise; `function` is the function or type. */
    OPS_OPERATION_UNARY,
    OPS_OPERATION_BINARY,
    OPS_OPERATION_WHERE,
    OPS_OPERATION_COMPLEX, /* of a real and an imaginary part; `function`: an OPS_COMPLEX_PART */
    OPS_OPERATION_CAST,
    OPS_OPERATION_REDUCE, /* `function` is the ops_reduction */
    /* Read their operands from memory. */
    OPS_OPERATION_SOFTMAX,
    OPS_OPERATION_LOG_SOFTMAX,
    OPS_OPERATION_MATMUL, /* `function` is that of ops_matmul_function; with quantised weights there
                           * is a `form`: ops_quantised_form, see quantised_match.h; with groups
                           * ops_grouped_form */
    OPS_OPERATION_GATHER,
    OPS_OPERATION_TAKE,
    OPS_OPERATION_SCATTER,     /* `function`: see ops_scatter_function */
    OPS_OPERATION_SCAN,        /* `function` is the ops_scan_kind */
    OPS_OPERATION_ORDER,       /* places of the sorted elements; `function`: descending */
    OPS_OPERATION_CONCATENATE, /* `function`: OPS_CONCATENATE_PARTS, or 0 */
    OPS_OPERATION_ONE_HOT,
    OPS_OPERATION_ATTENTION, /* `function` is that of ops_attention_function */
    OPS_OPERATION_UNFOLD,    /* of operand 0, with operand 1 outside; `form`: ops_unfold_places */
    OPS_OPERATION_DEPTHWISE, /* of operand 0 with weights 1 and a bias 2, which may be missing;
                              * `form`: ops_depthwise_options; `function`: 1 with channels last */
    OPS_OPERATION_DEPTHWISE_WEIGHTS, /* sums of the products of operands 0 and 1, `form`:
                                * ops_depthwise_weights_form; `function`: 1 with channels last */
    OPS_OPERATION_CONVOLUTION,       /* of operand 0 with 1 and a bias 2, which may be missing, as
                                * ops_gemm_windows; `form`: ops_gemm_windows_form; `function`: 1
                                * with channels last */
    OPS_OPERATION_DIRECT,            /* the same, as ops_direct; `form`: ops_direct_form */
    OPS_OPERATION_POOL,          /* of operand 0; `form`: ops_pool_form; `function`: 1 with channels
                                * last */
    OPS_OPERATION_POOL_GRADIENT, /* of operand 0 with places 1, which may be missing; the rest as of
                                  * POOL */
    OPS_OPERATION_RESIZE,        /* of operand 0; `form`: ops_resize_form */
    OPS_OPERATION_DEQUANTISE, /* of values, scales and perhaps zeros; `form`: ops_quantised_form */
    OPS_OPERATION_UPDATE,     /* of operand 0; operand 1 in place of `form`, an ops_tensor */

    OPS_OPERATION_VIEW,     /* of the source's elements, with this node's offset and strides;
                             * `function` counts the views between it and the source */
    OPS_OPERATION_CONSTANT, /* in memory that arrays of the same value share */
    OPS_OPERATION_PREPARED  /* in memory that ops_gemm_prepare laid out */
} ops_operation;

/* A concatenation whose parts are those of complex numbers: other operations read the parts, which
 * stay in their clusters, rather than the result. */
#define OPS_CONCATENATE_PARTS 1u

/* Limits of one kernel: operations bound the compiler's time, leaves (arrays that it reads) the
 * bindings. docs/batching.md has the figures. */
#define OPS_CLUSTER_OPERATIONS 64u
#define OPS_CLUSTER_LEAVES 12u

/* Depth of what has to be recorded before a node, one after the other. Products that pass sums to
 * the next one (matmul.h) and views in a cluster count less than a kernel: one that is recorded by
 * itself does without. At most 4 kernels are not recorded yet. */
#define OPS_KERNEL_DEPTH 16u
#define OPS_DEFERRED_DEPTH (5 * OPS_KERNEL_DEPTH - 1)
#define OPS_VIEW_DEPTH 1u

#define OPS_INLINE_OPERANDS 3u
#define OPS_MAX_OPERANDS 24u

/* The `form` of a node of DEQUANTISE, and of MATMUL with quantised weights, whose operands from
 * the second on are values, scales, and zeros if there are any. */
typedef struct ops_quantised_form {
    uint32_t format;    /* an ops_quantised_format */
    uint8_t by_columns; /* B is the transpose of what the operands view */
    uint8_t in_blocks;  /* scales have an axis of blocks: as rows of B, in [n, blocks] */
    uint8_t reserved[2];
    int64_t blocks; /* of k; in expressions the values have an axis of them */
    double zero;
} ops_quantised_form;

/* A bit of the `function` of MATMUL: a product of groups of rows, whose `form` is an
 * ops_grouped_form, and whose third operand are the offsets on the device, if there are any. */
#define OPS_MATMUL_GROUPED 0x80u

typedef struct ops_grouped_form {
    int64_t count;     /* of offsets on the host; 0: none */
    int64_t offsets[]; /* see ops/grouped.h */
} ops_grouped_form;

/* The `form` of a lost node: the first cause. It may be null, without host memory. */
typedef struct ops_lost {
    const char *operation; /* of the array that the batch should have computed */
    uint32_t site;         /* of that array */
    char message[];        /* of the failure */
} ops_lost;

typedef struct ops_arrays ops_arrays;

struct ops_array {
    ops_arrays *owner;
    uint32_t references; /* of callers, and one of the scope if in_scope */
    /* Scratch of ops_fusion_cluster_gather: valid while cluster_epoch is the owner's. It is between
     * two counters that are tested together after one was stored: one load of both would wait. */
    uint32_t cluster_epoch;
    uint32_t uses;          /* as an operand of deferred nodes, counted once per operand */
    uint16_t cluster_index; /* scratch as well */
    /* What ops_node_create sets is side by side: few stores set it. */
    uint8_t state, operation, function, operand_count;
    uint8_t axis; /* of a reduction, softmax, gather or concatenation */
    uint8_t in_scope;
    uint8_t needs_memory;   /* is an operand of an operation that reads memory */
    uint8_t was_computed;   /* inside a kernel that did not store it */
    uint8_t in_host_memory; /* view.buffer is HAL_MEMORY_DOWNLOAD */
    uint8_t depth;          /* in units of 1 / OPS_KERNEL_DEPTH of a kernel */
    uint8_t is_reordered;   /* the view's axes are not in row-major order, as ops_is_reordered */
    uint8_t same_shape;     /* bits of the inline operands that have the node's shape */
    uint8_t counts_once;    /* cluster_operations counts no operation twice */
    uint8_t is_fusible;     /* a view that may be computed in place of its source */
    uint8_t shares_buffer;  /* with other results, see horizontal.h, or the constants */
    uint8_t join_marks;     /* scratch of horizontal.c, else 0 */
    /* Upper bounds of the cluster that would compute it; shared operands count twice. */
    uint16_t cluster_operations;
    uint16_t cluster_leaves;
    uint32_t recording; /* number of the graph recording that made it, or 0 */
    union {
        ops_array *operands[OPS_INLINE_OPERANDS];
        ops_array **operand_list;    /* of more operands; owned */
        double value;                /* of CONSTANT */
        ops_gemm_prepared *prepared; /* of PREPARED; owned, and refers to view.buffer as well */
    };
    void *form; /* of some operations, while it has operands: what they are; see ops_lost; owned */
    ops_array *previous, *next; /* in its scope; next also in the free list */
    /* References that other threads removed and the owner did not, yet; while there are any, the
     * node is once in the owner's list of them, which its own next links. */
    _Atomic uint32_t remote_releases;
    uint32_t site;   /* of the call, in the owner's sites; 0: not known */
    uint32_t number; /* of a call that deferred it, for hal-replay; 0: of none */
    ops_array *remote_next;
    union {
        double scale;   /* of ATTENTION, deferred; 0: 1 / sqrt(d) */
        uint64_t batch; /* in memory: of the queue, in which that was written, or before */
    };
    int64_t base;    /* of a computed node: the element that its deferred views count from */
    ops_tensor view; /* without a buffer while deferred, with strides */
};

/* Holds memory of arrays outside of nodes: a graph. */
typedef struct ops_memory_holder {
    ops_arrays *owner; /* null once the context is destroyed */
    struct ops_memory_holder *next;
    uint64_t batch; /* in which the memory was written, or before */
    ops_lost *lost; /* why the memory has no values; null: it has */
    bool is_lost;
} ops_memory_holder;

/* Deferred reductions that may be computed by the kernel of another one, see fusion_plan.h. */
#define OPS_RECENT_REDUCTIONS 16u

/* Poolings that may still be deferred: maxima and their places are results of one kernel, see
 * fusion_plan.h. */
#define OPS_RECENT_POOLS 16u

/* Anchors, and elementwise nodes of one, that wait although they hold memory, see deferred.c. */
#define OPS_WAITING_ANCHORS 16u

typedef struct ops_scope {
    ops_array head; /* of the ring of its arrays */
    struct ops_scope *outer;
} ops_scope;

#define OPS_SLAB_NODES 256u
typedef struct ops_slab {
    struct ops_slab *next;
    ops_array nodes[OPS_SLAB_NODES];
} ops_slab;

struct ops_arrays {
    ops_extension extension; /* first: the context finds and destroys the arrays through it */
    ops_context *context;
    ops_plan_cache *plan_cache;
    ops_slab *slabs;
    ops_array *free;
    const uint32_t *losses; /* of the queue so far, see hal_queue_get_loss_count */
    uint32_t losses_found;  /* of these, those whose arrays are lost nodes */
    ops_scope *scope, *spare_scopes;
    /* The last nodes of reductions, in a ring. Slabs live as long as the owner, so an entry may be
     * any node by now. */
    ops_array *reductions[OPS_RECENT_REDUCTIONS];
    uint32_t reduction_count;                /* so far */
    ops_array *pools[OPS_RECENT_POOLS];      /* of poolings, a ring of the same kind */
    uint32_t pool_count;                     /* so far */
    ops_array *waiting[OPS_WAITING_ANCHORS]; /* a ring as well */
    uint32_t waiting_count;                  /* so far */
    uint32_t call_count;                     /* deferred nodes so far */
    int fusion;                              /* 0: each call records its own kernel */
    uint32_t max_leaves;                     /* that one kernel may read on the context's device */
    uint32_t cluster_epoch;                  /* of the last gathering; 0 is never used */
    uint32_t recording;                      /* number of the last graph recording */
    bool is_recording;
    _Atomic uintptr_t thread;         /* whose the context is */
    _Atomic(ops_array *) remote_list; /* nodes with remote_releases */
    struct ops_memory_holder *holders;
    ops_constants constants;
    ops_segment_tables segment_tables; /* of joined plans */
    const char *why; /* the next execution comes, for a profile; null: the program asks for it */
    ops_array_statistics statistics;
    ops_sites sites;
};

/* The arrays of a context; null while there are none. */
static inline ops_arrays *ops_arrays_of(const ops_context *context)
{
    return (ops_arrays *)context->extension;
}

/* The same, made at the first call; null, and an error, without memory. */
ops_arrays *ops_arrays_make(ops_context *context, const char *function);

/* Ends hal's recording of a graph and drops what it recorded. */
hal_status ops_arrays_cancel_recording(ops_arrays *arrays);

/* Opens a scope; closes the innermost one and releases its arrays. */
hal_status ops_arrays_open_scope(ops_arrays *arrays);
void ops_arrays_close_scope(ops_arrays *arrays);

/* A node in state MEMORY, without a buffer, with one reference, which belongs to the innermost
 * scope or else to the caller. Null, and an error, without memory. */
ops_array *ops_node_create(ops_arrays *arrays);

/* Removes a reference: the caller's, or else the scope's. */
void ops_node_release(ops_array *node);

/* The same from another thread than the owner's: it is removed by ops_arrays_drain. */
void ops_node_release_remotely(ops_array *node);

/* Removes the references that other threads gave up. */
void ops_arrays_drain_list(ops_arrays *arrays);

static inline void ops_arrays_drain(ops_arrays *arrays)
{
    if (atomic_load_explicit(&arrays->remote_list, memory_order_relaxed)) {
        ops_arrays_drain_list(arrays);
    }
}

/* Numbers of threads are used again only after the thread's end. */
static inline uintptr_t ops_current_thread(void)
{
    return (uintptr_t)pthread_self();
}

/* Takes a node out of its scope: the scope's reference becomes the caller's. */
void ops_node_leave_scope(ops_array *node);

/* Whether the innermost scope holds a node. */
bool ops_arrays_scope_has(const ops_arrays *arrays, const ops_array *node);

/* Closes the innermost scope, except for `results`, different arrays in it, which become arrays of
 * the scope around it or of the caller. Some may be null. */
void ops_arrays_close_scope_with(ops_arrays *arrays, ops_array *const *results, uint32_t count);

/* Ends a use of a node as an operand, or one that was added to keep it alive. */
void ops_node_remove_use(ops_array *node);

/* Makes a deferred node one in memory that the batch in recording writes. Takes the caller's
 * reference to the buffer, and removes the node's uses of its operands. */
void ops_node_set_result(ops_array *node, hal_buffer *buffer);

/* Makes a node, deferred or in memory, one that holds nothing: VOID or LOST. */
void ops_node_empty(ops_array *node, ops_node_state state);

/* The batch of the queue that writes what is recorded now. */
static inline uint64_t ops_arrays_batch(const ops_arrays *arrays)
{
    return hal_queue_get_batch(arrays->context->queue);
}

/* Whether a node has to be computed by a kernel before another one reads it. A deferred view of
 * memory becomes one in memory. */
bool ops_node_is_missing(ops_array *node);

/* Sets type, shape and row-major strides; the buffer stays. */
static inline void ops_node_set_shape(ops_array *node, hal_type type, uint32_t rank,
                                      const int64_t *shape)
{
    ops_tensor *view = &node->view;
    int64_t stride = 1;
    view->type = type;
    view->rank = rank;
    view->offset = 0;
    for (uint32_t i = rank; i-- > 0;) {
        view->shape[i] = shape[i];
        view->stride[i] = stride;
        stride *= shape[i] ? shape[i] : 1;
    }
    node->is_reordered = 0;
}

/* Sets what the node has in memory, or will have; the caller's reference to the buffer, if any,
 * becomes the node's. */
void ops_node_set_view(ops_array *node, const ops_tensor *view);

/* Shapes are short: a loop is faster than memcmp. */
static inline bool ops_node_has_shape_of(const ops_array *node, const ops_array *other)
{
    const ops_tensor *a = &node->view, *b = &other->view;
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++) {
        same = a->shape[i] == b->shape[i];
    }
    return same;
}

/* Whether two nodes of one shape, results of operations, have one order of axes in memory. */
static inline bool ops_node_has_order_of(const ops_array *node, const ops_array *other)
{
    return !(node->is_reordered | other->is_reordered) ||
           ops_same_strides(&node->view, &other->view);
}

/* Allocates the list of more than OPS_INLINE_OPERANDS operands. Errors: OUT_OF_MEMORY. */
hal_status ops_node_make_list(ops_array *node, uint32_t count);

/* Sets the operands of a new node, which has its shape, and adds a use to each.
 * Errors: OUT_OF_MEMORY, for more than OPS_INLINE_OPERANDS. */
static inline __attribute__((always_inline)) hal_status
ops_node_set_operands(ops_array *node, ops_array *const *operands, uint32_t count)
{
    ops_array **list = node->operands;
    if (count > OPS_INLINE_OPERANDS) {
        HAL_TRY(ops_node_make_list(node, count));
        list = node->operand_list;
    }
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++) {
        list[i] = operands[i];
        operands[i]->uses++;
        if (i < OPS_INLINE_OPERANDS) {
            same |= (uint32_t)ops_node_has_shape_of(node, operands[i]) << i;
        }
    }
    node->same_shape = (uint8_t)same;
    node->operand_count = (uint8_t)count;
    return HAL_OK;
}

/* Gives a deferred node of up to OPS_INLINE_OPERANDS operands others, and removes its uses of those
 * before. Errors: OUT_OF_MEMORY, and then the node is as before. */
hal_status ops_node_replace_operands(ops_array *node, ops_array *const *operands, uint32_t count);

/* Whether the memory of a deferred node is chosen, see placement.h: view.buffer is that memory. */
static inline bool ops_node_is_placed(const ops_array *node)
{
    return node->state == OPS_NODE_DEFERRED && node->view.buffer != NULL;
}

static inline ops_array *const *ops_node_operands(const ops_array *node)
{
    return node->operand_count > OPS_INLINE_OPERANDS ? node->operand_list : node->operands;
}

/* Whether a caller has a reference, besides a scope. */
static inline bool ops_node_is_held(const ops_array *node)
{
    return node->references > node->in_scope;
}

/* Whether nothing can read the node once `uses` of its uses are over. A scope is assumed to be done
 * with it the first time; if it is not, the node is computed again, and stored. */
static inline bool ops_node_is_needed_once(const ops_array *node, uint32_t uses)
{
    return !ops_node_is_held(node) && node->uses == uses && !(node->in_scope && node->was_computed);
}

/* Whether a node is a cast to a larger type that is not stored yet, and that nothing reads from
 * memory. */
static inline bool ops_node_widens(const ops_array *node)
{
    return node->operation == OPS_OPERATION_CAST && node->state == OPS_NODE_DEFERRED &&
           !node->needs_memory && node->owner->fusion &&
           hal_type_size(node->operands[0]->view.type) < hal_type_size(node->view.type);
}

/* Whether such a node's operand is in memory, or will be: each kernel that reads the node computes
 * it again, since to store it and to read that moves more bytes. It is stored where it is asked for
 * itself. */
static inline bool ops_node_is_remade(const ops_array *node)
{
    return ops_node_widens(node) &&
           (node->operands[0]->state == OPS_NODE_MEMORY || ops_node_is_held(node->operands[0]));
}

/* Views of views name each other, so that uses count; at most this many in a chain. */
#define OPS_VIEW_CHAIN 4u

static inline bool ops_node_is_view(const ops_array *node)
{
    return node->state == OPS_NODE_DEFERRED && node->operation == OPS_OPERATION_VIEW;
}

/* The array whose memory a deferred view is of: its offset and strides are relative to it. */
static inline ops_array *ops_view_source(const ops_array *view)
{
    ops_array *source = view->operands[0];
    while (ops_node_is_view(source)) {
        source = source->operands[0];
    }
    return source;
}

static inline bool ops_node_is_elementwise(const ops_array *node)
{
    return node->state == OPS_NODE_DEFERRED && node->operation >= OPS_OPERATION_UNARY &&
           node->operation <= OPS_OPERATION_CAST;
}

static inline bool ops_node_is_grouped(const ops_array *node)
{
    return node->operation == OPS_OPERATION_MATMUL && node->function & OPS_MATMUL_GROUPED;
}

/* Bytes of the form of a node that has one; its padding is zeros. */
uint32_t ops_node_form_bytes(const ops_array *node);

/* What an update replaces: a view of the node's memory, without a buffer. */
static inline const ops_tensor *ops_node_update_target(const ops_array *node)
{
    return node->form;
}

/* Whether an update replaces all elements, in their order. */
bool ops_node_update_covers(const ops_array *node);

/* "add", "matmul", ...: the operation of a node, for messages. */
const char *ops_node_operation_name(const ops_array *node);

#endif
