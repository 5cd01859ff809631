/* The plugin contract: what a backend's shared object and hal say to each other.
 *
 * Stands alone with status.h and ir.h. A plugin links neither hal nor ops: it exports one symbol,
 * hal_plugin_query, and everything else crosses as tables and plain data.
 *
 * Rules, which docs/plugin-abi.md explains:
 *  - every table begins with its own size; fields are only appended; an entry that is not wholly
 *    within the size that the other side states, or is null, is "not offered";
 *  - what lies in arrays (commands, bindings, waits, records of the IR) keeps its size within a
 *    major version; values of enums never change, new ones are appended, and neither side hands
 *    over one that the other's minor does not have;
 *  - required entries are marked (required); hal falls back or answers UNSUPPORTED for the others;
 *  - plain data has fixed width: no bool, no size_t, no bit-fields;
 *  - a plugin reports a failure by its status, after host->fail has been given the sentence;
 *  - a plugin never aborts, exits or prints, and shows no other symbol.
 *
 * Threads: hal calls `enumerate`, `device_open` and `device_close` from one thread at a time;
 * allocation, kernel and wait entries of one device from any threads at once; the entries of one
 * queue from one thread at a time, different queues at once. */
#ifndef HAL_PLUGIN_H
#define HAL_PLUGIN_H

#include <hal/ir.h>
#include <hal/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Major in the high half, minor in the low half. A minor only appends; docs/plugin-abi.md has the
 * rules and the log of what each one appended. */
#define HAL_PLUGIN_ABI_MAJOR 1u
#define HAL_PLUGIN_ABI_MINOR 1u
#define HAL_PLUGIN_ABI ((HAL_PLUGIN_ABI_MAJOR << 16) | HAL_PLUGIN_ABI_MINOR)

/* Objects of the plugin, opaque to hal. */
typedef struct hal_plugin_device hal_plugin_device;
typedef struct hal_plugin_memory hal_plugin_memory;
typedef struct hal_plugin_kernel hal_plugin_kernel;
typedef struct hal_plugin_queue hal_plugin_queue;

/* ---- What a device is ---- */

enum { /* hal_device_info.kind; the default choice prefers them in the order 1, 2, 3, 5, 4 */
    HAL_DEVICE_DISCRETE = 1,
    HAL_DEVICE_INTEGRATED = 2,
    HAL_DEVICE_VIRTUAL = 3,
    HAL_DEVICE_SOFTWARE = 4, /* a GPU's interface computed by a processor: the last resort */
    HAL_DEVICE_CPU = 5       /* the processor itself */
};

enum { /* hal_device_info.exactness: devices with all of them give the same bits */
    HAL_EXACT_FMA = 1,      /* fused multiply-add is fused, of f32 and, where offered, of f64 */
    HAL_EXACT_DIVIDE = 2,   /* division is correctly rounded */
    HAL_EXACT_SQRT = 4,     /* square root is correctly rounded */
    HAL_EXACT_DENORMALS = 8 /* denormals are kept, in operands and results */
};

enum { /* hal_device_info.abilities */
    HAL_ABILITY_ASYNC_COPY = 1,   /* ASYNC_COPY, ASYNC_COMMIT, ASYNC_WAIT */
    HAL_ABILITY_ATOMIC_64 = 2,    /* ATOMIC on I64 and U64 */
    HAL_ABILITY_MAP_DEVICE = 4,   /* memory of kind HAL_MEMORY_DEVICE can be mapped */
    HAL_ABILITY_TIMESTAMPS = 8,   /* queue_elapsed counts device time */
    HAL_ABILITY_FAST_MATH = 16,   /* has its own fast versions for HAL_IR_FAST */
    HAL_ABILITY_ZERO_COPY = 32    /* kernels reach mapped memory where it lies, not a copy of it */
};

/* What no record of a device grows beyond in this major version: `enumerate` has this much room
 * for each. */
#define HAL_DEVICE_INFO_MAX_BYTES 2048u

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
    uint32_t subgroup_width;     /* lanes; 0: no subgroup operations */
    uint32_t max_group_items;    /* work-items of a group */
    uint32_t max_group_size[3];  /* in each dimension */
    uint32_t max_grid[3];        /* groups in each dimension */
    uint32_t shared_bytes;       /* of a group's shared memory */
    uint32_t max_bindings;       /* of one kernel, up to HAL_IR_MAX_BINDINGS */
    uint32_t max_vector_bytes;   /* of one load or store; wider ones are split by hal */
    uint32_t preferred_group;    /* work-items of a group that suits plain pointwise work; 0: no
                                  * wish, hal says 64 */
    uint32_t storage_types;      /* HAL_TYPE_BIT of what memory may hold */
    uint32_t arithmetic_types;   /* HAL_TYPE_BIT of what values may be */
    uint32_t exactness;          /* HAL_EXACT_* */
    uint32_t abilities;          /* HAL_ABILITY_* */
    uint32_t math_f32;           /* bit (opcode - HAL_IR_MATH_FIRST): the plugin takes the opcode */
    uint32_t math_f64;           /* itself and gives the bits of ir_math.h */
    uint32_t max_queues;         /* that work at the same time; 1 where they take turns; 0: not
                                  * known, hal says 1 */
    uint32_t matrix_types;       /* HAL_TYPE_BIT of what MATRIX_MULTIPLY takes: F16, BF16, F32 */
    uint32_t item_vector_bytes;  /* of the vectors that the device's compiler makes out of one
                                  * work-item's arithmetic; 0: its operations are scalar */
    uint32_t item_register_bytes; /* what one work-item may hold in registers; 0: not known */
    uint32_t reserved[6];         /* 0 */
} hal_device_info;

/* ---- What a queue runs ---- */

enum { /* kinds of memory, see memory_allocate */
    HAL_MEMORY_DEVICE = 0,   /* fastest for kernels */
    HAL_MEMORY_UPLOAD = 1,   /* mapped; written by the host, read by the device */
    HAL_MEMORY_DOWNLOAD = 2, /* mapped; written by the device, read by the host */
    HAL_MEMORY_SHARED = 3,   /* mapped; both at full right */
    HAL_MEMORY_KIND_COUNT = 4
};

enum {                           /* hal_command.kind */
       HAL_COMMAND_DISPATCH = 0, /* bindings as the kernel declares them */
       HAL_COMMAND_COPY = 1, /* bindings: source (read), target (write), of equal length; offsets
                               * and length are any number of bytes; the target may be memory of
                               * another device, see device_can_access_peer */
       HAL_COMMAND_FILL = 2  /* binding: target; its bytes are `pattern`, 4 bytes repeated */
};

/* hal_command.flags: nothing of this command may begin before all earlier commands of the queue
 * have ended and their writes are seen. Commands without it may overlap with those before. */
#define HAL_COMMAND_BARRIER 1u

/* A range of memory: `offset` and `length` in bytes; access as HAL_ACCESS_*. A length of 0 is a
 * binding that the kernel does not touch; its memory is null. */
typedef struct hal_binding {
    hal_plugin_memory *memory;
    uint64_t offset;
    uint64_t length;
    uint32_t access;
    uint32_t reserved; /* 0 */
} hal_binding;

/* One command. Bindings and scalars lie in the batch's arrays. */
typedef struct hal_command {
    uint16_t kind;
    uint16_t flags;
    uint16_t binding_count;
    uint16_t scalar_bytes;
    uint32_t binding_first; /* index in hal_batch.bindings */
    uint32_t scalar_first;  /* bytes into hal_batch.scalars, a multiple of 8 */
    uint32_t grid[3];       /* groups; none is 0 */
    uint32_t pattern;       /* of a fill */
    hal_plugin_kernel *kernel;
} hal_command;

/* What one flush hands over. The arrays belong to hal and are valid during the call. */
typedef struct hal_batch {
    uint32_t size; /* sizeof(hal_batch) */
    uint32_t command_count;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    const hal_command *commands;
    const hal_binding *bindings;
    const uint8_t *scalars;
} hal_batch;

/* A value that another queue of the device, or of one that it reaches, has to reach first. */
typedef struct hal_plugin_wait {
    hal_plugin_queue *queue;
    uint64_t value;
} hal_plugin_wait;

/* ---- Native matrix product ---- */

/* A further input of an epilogue: element (row, column, batch) lies at row * row_stride +
 * column * column_stride + batch * batch_stride elements; a stride of 0 broadcasts. */
typedef struct hal_gemm_input {
    hal_type type;
    uint8_t reserved[7]; /* 0 */
    int64_t row_stride, column_stride, batch_stride;
} hal_gemm_input;

enum { /* hal_gemm_description.precision */
    HAL_GEMM_STRICT = 0,   /* IEEE arithmetic of the accumulator's type */
    HAL_GEMM_ACCURATE = 1, /* the strict bound by other means */
    HAL_GEMM_FAST = 2      /* whatever the matrix units do */
};

#define HAL_GEMM_MAX_INPUTS 16u

/* C = epilogue(alpha op(A) op(B) + beta C), row-major, C of m rows and n columns, op(A) m x k,
 * op(B) k x n; leading dimensions and batch strides in elements. F16 and BF16 accumulate in F32.
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
    uint8_t reserved[5]; /* 0 */
    uint32_t batch;
    uint32_t input_count; /* further inputs of the epilogue */
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c; /* of the batch */
    hal_gemm_input inputs[HAL_GEMM_MAX_INPUTS];
    const hal_ir_kernel *epilogue;
} hal_gemm_description;

/* ---- What hal offers to plugins ---- */

enum { HAL_LOG_ERROR = 1, HAL_LOG_WARN = 2, HAL_LOG_INFO = 3, HAL_LOG_DEBUG = 4 };

enum { /* hal_host.flags */
    HAL_HOST_VALIDATE = 1 /* validation is on: a plugin that can check more does, and reports it */
};

typedef struct hal_host {
    uint32_t size;
    uint32_t abi; /* HAL_PLUGIN_ABI of hal */
    /* Memory of the host; alignment a power of two. Null when there is none. */
    void *(*allocate)(uint64_t bytes, uint64_t alignment);
    void (*release)(void *memory);
    /* Hands a line to the program's log, when `level` is asked for. */
    void (*log)(uint32_t level, const char *message);
    /* Sets the thread's error sentence and gives `status` back: return host->fail(...). */
    hal_status (*fail)(hal_status status, const char *message);
    /* The compile cache on disk. `load` gives NOT_FOUND, or memory to free with `release`. hal adds
     * plugin, build, driver and architecture to the key by itself, as it knows for whom it called:
     * only inside device_open, kernel_create, kernel_create_native and gemm, on the thread that
     * hal called them on; elsewhere there is nothing in it. */
    hal_status (*cache_load)(const char *device_id, const uint64_t key[2], void **data,
                             uint64_t *bytes);
    hal_status (*cache_store)(const char *device_id, const uint64_t key[2], const void *data,
                              uint64_t bytes);
    /* Since 1.1. HAL_HOST_*; settled when the first device is opened. */
    uint32_t flags;
    uint32_t reserved; /* 0 */
    /* Since 1.1. Hands over a finding of validation: what a kernel did wrong, with the names of
     * kernel and binding, instruction and work-item. hal counts it and says it to the program, once
     * for the same words; the kernel goes on as the plugin sees fit. Threads: any. */
    void (*report)(const char *message);
} hal_host;

/* ---- What a plugin offers to hal ---- */

typedef struct hal_plugin {
    uint32_t size;
    uint32_t abi;         /* HAL_PLUGIN_ABI that the plugin was built with */
    const char *name;     /* as in HAL_BACKEND: lower case letters, digits, underscores */
    const char *version;  /* for people */
    const char *build_id; /* changes whenever the plugin's code does: part of the cache's key */

    /* (required) Writes up to `capacity` infos, one after the other, each of the size that it
     * states, their full number to *count. With no device: an error LIBRARY_MISSING,
     * DRIVER_MISSING, NO_DEVICE or TOO_OLD with its sentence. */
    hal_status (*enumerate)(hal_device_info *infos, uint32_t capacity, uint32_t *count);

    /* (required) Opens device `index` of enumerate; close comes after all that belongs to it. */
    hal_status (*device_open)(uint32_t index, hal_plugin_device **device);
    void (*device_close)(hal_plugin_device *device);

    /* (optional) Bytes free and in all at the moment. Without it hal counts for itself. */
    hal_status (*memory_info)(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes);

    /* (required) At least `bytes` of memory of a kind, aligned to 256 bytes. */
    hal_status (*memory_allocate)(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
    void (*memory_free)(hal_plugin_device *device, hal_plugin_memory *memory);

    /* (required) The host's view of memory of a mapped kind; the pointer stays valid until the
     * memory is freed, what the host wrote is seen by batches submitted after it, what a batch
     * wrote is seen by the host once the batch is waited for. */
    hal_status (*memory_map)(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

    /* (required) A kernel from verified and legalised IR, which is valid during the call only. */
    hal_status (*kernel_create)(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);
    void (*kernel_destroy)(hal_plugin_device *device, hal_plugin_kernel *kernel);

    /* (required) An in-order timeline. Destroy comes when all of its work is done, and that of all
     * batches that named it in their waits. */
    hal_status (*queue_create)(hal_plugin_device *device, hal_plugin_queue **queue);
    void (*queue_destroy)(hal_plugin_device *device, hal_plugin_queue *queue);

    /* (required) Runs a batch after what was submitted before and after `waits`; the queue then
     * has reached `value`. Values grow by 1. The work may be done inside the call or later. A
     * failed submit has run nothing. */
    hal_status (*submit)(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

    /* (required) Waits until the queue has reached `value`, for at most `timeout_ns` nanoseconds
     * (0: only looks; UINT64_MAX: without limit). TIMEOUT when it has not. May be called from any
     * thread. */
    hal_status (*wait)(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);

    /* (optional) Device time in nanoseconds between the ends of two batches, both reached. */
    hal_status (*queue_elapsed)(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);

    /* (optional) A kernel from native code. `formats` lists what is taken, separated by commas. The
     * signature says what bindings, scalars and group size the code has. */
    const char *formats;
    hal_status (*kernel_create_native)(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature,
                                       hal_plugin_kernel **kernel);

    /* (optional) A native matrix product, see hal_gemm_description, and the bytes of workspace
     * that its binding 3 needs. UNSUPPORTED declines: the portable kernel is used. */
    hal_status (*gemm)(hal_plugin_device *device, const hal_gemm_description *description,
                       hal_plugin_kernel **kernel, uint64_t *workspace_bytes);

    /* (optional) Whether `device` reaches `other`, another open device of the plugin (1 or 0): then
     * batches of its queues may wait for queues of the other, and their COPY commands may have
     * memory of the other, of any kind, as the target. Both devices stay open, and the memory
     * stays, until such a batch has run. Asked again and again, so only the first answer for a pair
     * may take time. Without the entry, or at 0, hal goes through the host. Threads: any. */
    uint32_t (*device_can_access_peer)(hal_plugin_device *device, hal_plugin_device *other);
} hal_plugin;

/* The one symbol of a plugin, with this name. Keeps `host`, which stays valid for the life of the
 * process, and gives its table, or null when host_abi is of a major version that it does not know.
 * May be called more than once; gives the same table each time. */
typedef const hal_plugin *(*hal_plugin_query_function)(uint32_t host_abi, const hal_host *host);
#define HAL_PLUGIN_QUERY_SYMBOL "hal_plugin_query"

/* Whether a table reaches as far as an entry and has it. */
#define HAL_PLUGIN_HAS(table, entry)                                                              \
    ((uint64_t)((const char *)&(table)->entry - (const char *)(table)) + sizeof((table)->entry) <= \
         (table)->size &&                                                                         \
     (table)->entry != 0)

#ifdef __cplusplus
}
#endif
#endif
