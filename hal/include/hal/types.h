/* Types that programs and plugins share: what a device is, kinds of memory, levels of the log, and
 * the description of a matrix product. Included by device.h and by plugin.h; stands alone with
 * status.h and ir.h.
 *
 * Enums have names, so that compilers warn when a value of one is given as another. Structures have
 * fields of fixed width, since they cross the plugin interface: docs/plugin-abi.md. */
#ifndef HAL_TYPES_H
#define HAL_TYPES_H

#include <hal/ir.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ---- */

/* hal_device_info.kind; the default choice prefers them in the order 1, 2, 3, 5, 4. */
typedef enum hal_device_kind {
    HAL_DEVICE_DISCRETE = 1,
    HAL_DEVICE_INTEGRATED = 2,
    HAL_DEVICE_VIRTUAL = 3,
    HAL_DEVICE_SOFTWARE = 4, /* a GPU's interface computed by a processor: the last resort */
    HAL_DEVICE_CPU = 5       /* the processor itself */
} hal_device_kind;

typedef enum hal_exactness { /* bits; devices with all of them give the same results */
    HAL_EXACT_FMA = 1,      /* fused multiply-add is fused, of f32 and, where offered, of f64 */
    HAL_EXACT_DIVIDE = 2,   /* division is correctly rounded */
    HAL_EXACT_SQRT = 4,     /* square root is correctly rounded */
    HAL_EXACT_DENORMALS = 8 /* denormals are kept, in operands and results */
} hal_exactness;

typedef enum hal_feature {        /* bits of hal_device_info.features */
    HAL_FEATURE_ASYNC_COPY = 1,   /* ASYNC_COPY, ASYNC_COMMIT, ASYNC_WAIT */
    HAL_FEATURE_ATOMIC_64 = 2,    /* ATOMIC on I64 and U64 */
    HAL_FEATURE_MAP_DEVICE = 4,   /* memory of kind HAL_MEMORY_DEVICE can be mapped */
    HAL_FEATURE_TIMESTAMPS = 8,   /* queue_elapsed counts device time */
    HAL_FEATURE_FAST_MATH = 16,   /* has its own fast versions for HAL_IR_FAST */
    HAL_FEATURE_ZERO_COPY = 32    /* kernels access mapped memory directly, without a copy */
} hal_feature;

/* Filled by enumerate. All counts and sizes are what one dispatch or allocation may use. */
typedef struct hal_device_info {
    uint32_t size;               /* sizeof(hal_device_info) of the plugin */
    uint32_t kind;               /* HAL_DEVICE_* */
    char name[128];              /* for people */
    char id[64];                 /* stable: UUID or PCI address of the card, else kind and name */
    char driver[64];             /* driver and its version */
    char architecture[64];       /* part of the compile cache's key: what code is made for */
    uint64_t memory_bytes;       /* of the device; 0: not known */
    uint64_t max_allocation;     /* bytes of one allocation */
    uint64_t max_binding;        /* bytes of one binding */
    uint32_t binding_alignment;  /* a binding's offset is a multiple of this many bytes */
    uint32_t compute_units;      /* 0: not known, hal says 1 */
    uint32_t subgroup_width;     /* lanes, a power of two up to 128; 0: no subgroup operations */
    uint32_t max_group_items;    /* work-items of a group */
    uint32_t max_group_size[3];  /* in each dimension */
    uint32_t max_grid[3];        /* groups in each dimension */
    uint32_t shared_bytes;       /* of a group's shared memory */
    uint32_t max_bindings;       /* of one kernel, up to HAL_IR_MAX_BINDINGS */
    uint32_t max_vector_bytes;   /* of one load or store; wider ones are split by hal */
    uint32_t preferred_group;    /* work-items of a group that suits plain pointwise work; 0: no
                                  * wish, hal says 64 */
    uint32_t storage_types;      /* HAL_TYPE_BIT of what the plugin loads and stores itself;
                                  * hal_types_storable has what memory may hold */
    uint32_t arithmetic_types;   /* HAL_TYPE_BIT of what values may be */
    uint32_t exactness;          /* HAL_EXACT_* */
    uint32_t features;          /* HAL_FEATURE_* */
    uint32_t math_f32;           /* bit (opcode - HAL_IR_MATH_FIRST): the plugin takes the opcode */
    uint32_t math_f64;           /* itself and gives the bits of ir_math.h */
    uint32_t max_queues;         /* that work at the same time; 1 where they take turns; 0: not
                                  * known, hal says 1 */
    uint32_t matrix_types;       /* HAL_TYPE_BIT of what MATRIX_MULTIPLY takes: F16, BF16, F32 */
    uint32_t item_vector_bytes;  /* of the vectors that the device's compiler makes out of one
                                  * work-item's arithmetic; 0: its operations are scalar */
    uint32_t item_register_bytes; /* what one work-item may hold in registers; 0: not known */
    uint32_t max_loop_iterations; /* of all loops of a kernel together that a work-item executes;
                                   * each execution of a loop counts one more; 0: no limit. hal
                                   * refuses kernels whose constants exceed it; bounds that are not
                                   * constants are kept below it by the program */
    uint32_t reserved[5];         /* 0 */
} hal_device_info;

/* ---- Memory and the log ---- */

typedef enum hal_memory_kind { /* kinds of memory of hal_buffer_create */
    HAL_MEMORY_DEVICE = 0,   /* fastest for kernels */
    HAL_MEMORY_UPLOAD = 1,   /* mapped; written by the host, read by the device */
    HAL_MEMORY_DOWNLOAD = 2, /* mapped; written by the device, read by the host */
    HAL_MEMORY_SHARED = 3,   /* mapped; both at full right */
    HAL_MEMORY_KIND_COUNT = 4
} hal_memory_kind;

typedef enum hal_log_level {
    HAL_LOG_ERROR = 1,
    HAL_LOG_WARN = 2,
    HAL_LOG_INFO = 3,
    HAL_LOG_DEBUG = 4
} hal_log_level;

/* ---- Matrix products of a plugin: hal_kernel_create_gemm ---- */

/* A further input of an epilogue: element (row, column, batch) is at row * row_stride +
 * column * column_stride + batch * batch_stride elements; a stride of 0 broadcasts. */
typedef struct hal_gemm_input {
    hal_type type;
    uint8_t reserved[7]; /* 0 */
    int64_t row_stride, column_stride, batch_stride;
} hal_gemm_input;

typedef enum hal_gemm_precision { /* hal_gemm_description.precision */
    HAL_GEMM_STRICT = 0,   /* IEEE arithmetic of the accumulator's type */
    HAL_GEMM_ACCURATE = 1, /* the strict bound by other means */
    HAL_GEMM_FAST = 2,     /* whatever the matrix units do */
    HAL_GEMM_NORMWISE = 3  /* of ops only: a bound of the result's norm; plugins get ACCURATE */
} hal_gemm_precision;

#define HAL_GEMM_MAX_INPUTS 16u
#define HAL_GEMM_MAX_LEVELS 2u

/* C = epilogue(alpha op(A) op(B) + beta C), row-major, C of m rows and n columns, op(A) m x k,
 * op(B) k x n; leading dimensions and batch strides in elements. Narrow floats accumulate in F32.
 * C is not read when beta is 0. ops never asks for k = 0, nor dispatches with alpha = 0: it scales
 * C by itself then. A plugin may refuse k = 0 with UNSUPPORTED.
 *
 * The kernel that comes of it has the bindings 0: A, 1: B, 2: C (read and write), 3: workspace
 * (length 0 when none is needed), 4 and up: the epilogue's further inputs; and the scalars
 * {double alpha, double beta}. It is dispatched with a grid of 1, 1, 1.
 *
 * The epilogue is null or a fragment. Its inputs are 0: the value (F32, or F64 for F64 matrices),
 * 1: row, 2: column, 3: batch (U32), 4 and up: further inputs as loaded; output 0 goes to C. */
typedef struct hal_gemm_description {
    uint32_t size;
    hal_type type_a, type_b, type_c;
    uint8_t transpose_a, transpose_b; /* 0 or 1: A is stored k x m, B is stored n x k */
    uint8_t beta_is_zero;             /* 1: C is never read, whatever beta the scalars hold */
    uint8_t precision;
    uint8_t levels; /* of Strassen's algorithm, 0 to HAL_GEMM_MAX_LEVELS, with the bound of the
                     * result's norm in ops/gemm.h; a plugin computes the product with that many or
                     * refuses it */
    uint8_t reserved[4]; /* 0 */
    uint32_t batch;
    uint32_t input_count; /* further inputs of the epilogue */
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c; /* of the batch */
    hal_gemm_input inputs[HAL_GEMM_MAX_INPUTS];
    const hal_ir_kernel *epilogue;
} hal_gemm_description;

/* ---- Collectives, see hal/comm.h ---- */

/* Sizes of send and recv in elements; N is the number of ranks. */
typedef enum hal_collective_kind {
    HAL_COLLECTIVE_ALL_REDUCE = 0,     /* count; count: the reduction over all ranks */
    HAL_COLLECTIVE_ALL_GATHER = 1,     /* count; N * count, in the order of the ranks */
    HAL_COLLECTIVE_REDUCE_SCATTER = 2, /* N * count; count: part `rank` of the reduction */
    HAL_COLLECTIVE_BROADCAST = 3,      /* count, of the root; count */
    HAL_COLLECTIVE_REDUCE = 4,         /* count; count, of the root */
    HAL_COLLECTIVE_ALL_TO_ALL = 5,     /* N * count; N * count: part `rank` of each rank */
    HAL_COLLECTIVE_EXCHANGE = 6        /* count, to rank `root`; count, from rank `root`, which
                                        * names the caller; a rank that names itself copies */
} hal_collective_kind;

/* Of the kinds that reduce. BOOL has no mean. */
typedef enum hal_reduction {
    HAL_REDUCE_SUM = 0,  /* added in the order of the ranks; integers wrap; BOOL: or */
    HAL_REDUCE_MEAN = 1, /* the sum divided by N, integers towards zero */
    HAL_REDUCE_MIN = 2,  /* as the opcode MIN of the IR; BOOL: and */
    HAL_REDUCE_MAX = 3   /* as the opcode MAX of the IR; BOOL: or */
} hal_reduction;

#ifdef __cplusplus
}
#endif
#endif
