/* Types that programs and plugins share: the record of a device, kinds of memory, handles of memory
 * of others, levels of the log, the description of a matrix product, and kinds of collectives.
 *
 * device.h and plugin.h include it; it stands alone with status.h and ir.h. Structures cross the
 * plugin interface: their fields have fixed width, they begin with their size, and fields are only
 * appended (docs/plugin-abi.md). Enums have names, so that compilers warn when a value of one is
 * given as another. */
#ifndef HAL_TYPES_H
#define HAL_TYPES_H

#include <hal/ir.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ---- */

/* hal_device_info.kind. The default choice prefers DISCRETE, INTEGRATED, VIRTUAL, CPU, SOFTWARE. */
typedef enum hal_device_kind {
    HAL_DEVICE_DISCRETE = 1,
    HAL_DEVICE_INTEGRATED = 2,
    HAL_DEVICE_VIRTUAL = 3,
    HAL_DEVICE_SOFTWARE = 4, /* a GPU's interface on a processor */
    HAL_DEVICE_CPU = 5       /* the processor itself */
} hal_device_kind;

/* Bits of hal_device_info.exactness. Devices with all of them give the same results. */
typedef enum hal_exactness {
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
    HAL_FEATURE_ZERO_COPY = 32,   /* kernels access mapped memory directly, without a copy */
    HAL_FEATURE_INDIRECT = 64,    /* dispatches whose grid is in memory, HAL_COMMAND_INDIRECT */
    HAL_FEATURE_FILL_PATTERNS = 128, /* fills of patterns of 1, 2, 8 and 16 bytes */
    HAL_FEATURE_COPY_ROWS = 256,  /* HAL_COMMAND_COPY_ROWS; hal copies each row without it */
    HAL_FEATURE_DRIVER_COMPILES = 512, /* a driver compiles kernels: hal-probe asks it about
                                        * constants where the device is a processor, too */
    HAL_FEATURE_VIRTUAL_MEMORY = 1024, /* buffers whose memory comes and goes, hal/reserved.h */
    HAL_FEATURE_INTEGER_PRODUCTS = 2048, /* gemm knows integers: else it gets floats only */
    HAL_FEATURE_GROUPED_PRODUCTS = 4096  /* gemm knows groups of rows, type_offsets: else it gets
                                          * none */
} hal_feature;

/* The record of a device. A plugin's `enumerate` fills it; hal checks it, replaces 0 where it means
 * "not known", and lowers limits to what it can use. Limits are inclusive, for one dispatch or one
 * allocation. */
typedef struct hal_device_info {
    uint32_t size;               /* sizeof(hal_device_info) of the plugin */
    uint32_t kind;               /* HAL_DEVICE_* */
    char name[128];              /* for people */
    char id[64];                 /* the same in each process: UUID or PCI address, else kind and
                                  * name */
    char driver[64];             /* driver and its version */
    char architecture[64];       /* what code is compiled for: part of the compile cache's key */
    uint64_t memory_bytes;       /* all memory of the device; 0: not known */
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
    uint32_t preferred_group;    /* work-items of a group for pointwise kernels; 0: not known, hal
                                  * says 64 */
    uint32_t storage_types;      /* HAL_TYPE_BIT of types that the plugin loads and stores itself;
                                  * hal_types_storable adds those that hal converts */
    uint32_t arithmetic_types;   /* HAL_TYPE_BIT of types of values */
    uint32_t exactness;          /* HAL_EXACT_* */
    uint32_t features;          /* HAL_FEATURE_* */
    uint32_t math_f32;           /* bit (opcode - HAL_IR_MATH_FIRST): the plugin computes the opcode
                                  * itself, with the bits of ir_math.h */
    uint32_t math_f64;           /* likewise for f64 */
    uint32_t max_queues;         /* queues that run at the same time; 0: not known, hal says 1 */
    uint32_t matrix_types;       /* of MATRIX_MULTIPLY, HAL_TYPE_BIT: F16, BF16, F32, F64 */
    uint32_t item_vector_bytes;  /* of vectors that the device's compiler makes of one work-item's
                                  * arithmetic; 0: its operations are scalar */
    uint32_t item_register_bytes; /* registers of one work-item; 0: not known */
    uint32_t max_loop_iterations; /* of all loops of a kernel together, for one work-item; each
                                   * execution of a loop counts one more; 0: no limit. hal refuses
                                   * kernels whose constant bounds exceed it; programs keep other
                                   * bounds below it */
    uint32_t wrong_constants;     /* HAL_TYPE_BIT of value types whose constants the device's
                                   * compiler folds wrongly: hal hides them from it, and adds the
                                   * types that hal-probe finds */
    uint32_t reserved[4];         /* 0 */
} hal_device_info;

/* ---- Memory and the log ---- */

typedef enum hal_memory_kind { /* kinds of memory of hal_buffer_create */
    HAL_MEMORY_DEVICE = 0,   /* fastest for kernels */
    HAL_MEMORY_UPLOAD = 1,   /* mapped; written by the host, read by the device */
    HAL_MEMORY_DOWNLOAD = 2, /* mapped; written by the device, read by the host */
    HAL_MEMORY_SHARED = 3,   /* mapped; read and written by both */
    HAL_MEMORY_KIND_COUNT = 4
} hal_memory_kind;

typedef enum hal_log_level {
    HAL_LOG_ERROR = 1,
    HAL_LOG_WARN = 2,
    HAL_LOG_INFO = 3,
    HAL_LOG_DEBUG = 4
} hal_log_level;

/* ---- Memory of others, see hal/external.h ---- */

typedef enum hal_handle_kind { /* hal_memory_handle.kind */
    HAL_HANDLE_HOST = 0,       /* the address of memory of the process */
    HAL_HANDLE_NATIVE = 1,     /* the driver's own: an address of the host, CUdeviceptr, cl_mem,
                                * VkBuffer or id<MTLBuffer> */
    HAL_HANDLE_OPAQUE_FD = 2,  /* a descriptor that the same driver made */
    HAL_HANDLE_DMA_BUF = 3,    /* a descriptor of Linux's dma-buf */
    HAL_HANDLE_KIND_COUNT = 4
} hal_handle_kind;

#define HAL_HANDLE_BIT(kind) (UINT32_C(1) << (kind))

/* A range of memory by a handle. */
typedef struct hal_memory_handle {
    uint32_t size;     /* sizeof(hal_memory_handle) */
    uint32_t kind;     /* hal_handle_kind */
    uint64_t handle;   /* address, native handle or descriptor */
    uint64_t memory;   /* NATIVE: the VkDeviceMemory of a VkBuffer; descriptors: bytes of the whole
                        * allocation, as the export said; else 0 */
    uint64_t offset;   /* bytes from the beginning of what the handle names to the range */
    uint64_t bytes;    /* of the range */
    uint32_t access;   /* HAL_ACCESS_READ: never written by hal; or HAL_ACCESS_READ_WRITE */
    uint32_t reserved; /* 0 */
} hal_memory_handle;

/* What a device imports and exports. */
typedef struct hal_external_info {
    uint32_t size;             /* sizeof(hal_external_info) */
    uint32_t import_kinds;     /* HAL_HANDLE_BIT of kinds that are imported without a copy */
    uint32_t export_kinds;     /* HAL_HANDLE_BIT of kinds that are exported */
    uint32_t host_alignment;   /* of HOST: the address is a multiple, a power of two of bytes */
    uint32_t host_granularity; /* of HOST: the size is a multiple, a power of two of bytes */
    uint32_t dlpack_kind;      /* DLPack's number of devices whose consumers take exported native
                                * handles as addresses; 0: none */
    uint32_t fence_imports;    /* HAL_HANDLE_BIT of kinds of hal/fence.h; by hal, plugins leave 0 */
    uint32_t fence_exports;
} hal_external_info;

/* ---- What is known of kernels and clocks ---- */

enum {                      /* hal_kernel_report.known: the driver tells */
    HAL_REPORT_REGISTERS = 1,
    HAL_REPORT_CODE = 2,
    HAL_REPORT_SPILLS = 4,
    HAL_REPORT_SHARED = 8
};

/* Of a compiled kernel. What is not known is 0. */
typedef struct hal_kernel_report {
    uint32_t size;          /* sizeof(hal_kernel_report) */
    uint32_t known;         /* HAL_REPORT_* */
    uint32_t registers;     /* of a work-item, of 32 bits */
    uint32_t from_cache;    /* by hal: 1 if the plugin found it in the compile cache */
    uint64_t code_bytes;    /* of the program for the device, as the driver has it */
    uint64_t spilled_bytes; /* of a work-item: memory for what has no register */
    uint64_t shared_bytes;  /* of a group, where the kernel states it and not the dispatch */
    uint64_t compile_ns;    /* by hal: see hal_kernel_get_compile_ns */
} hal_kernel_report;

/* Two clocks, read together. Units: nanoseconds. */
typedef struct hal_clocks {
    uint32_t size;         /* sizeof(hal_clocks) */
    uint32_t reserved;     /* 0 */
    uint64_t host_ns;      /* CLOCK_MONOTONIC */
    uint64_t device_ns;    /* the clock of hal_point_get_time */
    uint64_t deviation_ns; /* at most so far apart */
} hal_clocks;

/* What a driver does differently from what it claims or from what others do, and what the plugin
 * therefore treats in another way. */
typedef struct hal_quirk {
    uint32_t size;      /* sizeof(hal_quirk) */
    uint32_t is_active; /* 1: the plugin acts on it; 0: a variable of the environment says not to */
    const char *name;   /* lower-case letters, digits and underscores */
    const char *reason; /* one line: what the driver does */
} hal_quirk;

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
    HAL_GEMM_ACCURATE = 1, /* the bound of STRICT; the method is free */
    HAL_GEMM_FAST = 2,     /* the arithmetic of the device's matrix units */
    HAL_GEMM_NORMWISE = 3, /* ops only: a bound of the result's norm; plugins get ACCURATE */
    HAL_GEMM_EXACT = 4     /* ops only: F64 by integers, the same bits on every device */
} hal_gemm_precision;

#define HAL_GEMM_MAX_INPUTS 16u
#define HAL_GEMM_MAX_LEVELS 2u

/* C = epilogue(alpha op(A) op(B) + beta C), row-major, C of m rows and n columns, op(A) m x k,
 * op(B) k x n; leading dimensions and batch strides in elements. Narrow floats accumulate in F32.
 * Matrices of integers, of one type, accumulate in it, narrow ones in I32 or U32: sums and what C
 * is too narrow for wrap, alpha and beta are whole numbers, and with an epilogue C may have floats.
 * C is not read when beta is 0. For k = 0 or alpha = 0 ops scales C itself; a plugin may refuse
 * k = 0 with UNSUPPORTED.
 *
 * With type_offsets there are `batch` groups of rows: A is m x k and C m x n for all of them, with
 * batch strides of 0, and the rows offsets[g] to offsets[g + 1] - 1 are those of matrix g of B. The
 * kernel reads the offsets when it runs. Rows of no group are neither read nor written; offsets
 * that do not ascend from 0 to m give wrong rows, and nothing outside of the matrices is accessed.
 * To the epilogue the batch is the group, and the row is that of C.
 *
 * The kernel has the bindings 0: A, 1: B, 2: C (read and write), 3: workspace
 * (length 0 if none is needed), 4 and up: the epilogue's further inputs, after them with
 * type_offsets: batch + 1 offsets, one after the other; and the scalars
 * {double alpha, double beta}. It is dispatched with a grid of 1, 1, 1.
 *
 * The epilogue is null or a fragment. Its inputs are 0: the value in the type of the sums (F32, F64
 * or that of integers), 1: row, 2: column, 3: batch (U32), 4 and up: further inputs as loaded;
 * output 0 goes to C. */
typedef struct hal_gemm_description {
    uint32_t size;
    hal_type type_a, type_b, type_c;
    uint8_t transpose_a, transpose_b; /* 0 or 1: A is stored k x m, B is stored n x k */
    uint8_t beta_is_zero;             /* 1: C is never read, whatever beta the scalars hold */
    uint8_t precision;
    uint8_t levels;      /* of recursion of Strassen's algorithm, 0 to HAL_GEMM_MAX_LEVELS, with the
                          * bound in ops/gemm.h; a plugin uses that many or refuses the product */
    hal_type type_offsets; /* I32 or I64: there are groups of rows; NONE: a batch. Only for devices
                            * with HAL_FEATURE_GROUPED_PRODUCTS */
    uint8_t reserved[3];   /* 0 */
    uint32_t batch;
    uint32_t input_count; /* further inputs of the epilogue */
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c; /* of the batch */
    hal_gemm_input inputs[HAL_GEMM_MAX_INPUTS];
    const hal_ir_kernel *epilogue;
} hal_gemm_description;

/* ---- Attention of a plugin: hal_kernel_create_attention ---- */

/* Distances in elements: from a row of a matrix to the next, and from a matrix to the next along
 * the two leading axes; 0 along an axis whose matrices are one. The elements of a row follow each
 * other. */
typedef struct hal_attention_strides {
    int64_t row, batch, outer;
} hal_attention_strides;

/* y = softmax(scale q k^T) v, along the columns of the scores: matrices q of m rows and d columns,
 * k n x d, v n x e and y m x e, of one type, each outer x batch of them. Scores, weights and their
 * sums are F32 (F64 for F64); weights are rounded to the type before they are multiplied by v.
 * Differences to the exact result are at most the bound in docs/attention.md.
 *
 * The kernel has the bindings 0: q, 1: k, 2: v, 3: y (write); and the scalar {double scale}, above
 * 0. It is dispatched with a grid of 1, 1, 1. A causal row i has the columns up to i + n - m; a row
 * without any column gives NaN. */
typedef struct hal_attention_description {
    uint32_t size;
    hal_type type;
    uint8_t causal;    /* 0 or 1 */
    uint8_t precision; /* hal_gemm_precision, of both products */
    uint8_t reserved;  /* 0 */
    uint32_t batch, outer;
    int64_t m, n, d, e;
    hal_attention_strides q, k, v, y;
} hal_attention_description;

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
