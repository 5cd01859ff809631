/* The plugin contract: the interface between hal and a backend's shared object.
 *
 * Overview. (It repeats the comments below, which count.)
 *
 * A plugin is a shared object hal_NAME.so. It links neither hal nor ops, exports the one symbol
 * hal_plugin_create, and exchanges tables of functions and plain data with hal. This header stands
 * alone with plugin_interop.h, status.h, types.h and ir.h. docs/write-a-plugin.md goes from an
 * empty folder to a plugin that passes hal-conformance; docs/plugin-abi.md has the rules of
 * versions.
 *
 * The life of a plugin, in the order in which hal calls it:
 *
 *  1. hal_plugin_create(abi, host, &instance) makes an instance and returns the plugin's table. All
 *     that hal asks for belongs to an instance, whose `host` has the functions that it may call.
 *     Several instances may exist, of one copy of libhalyard or of several.
 *  2. `query_extension` returns the tables of what the plugin offers beyond the main table.
 *  3. `enumerate` describes the devices. hal checks each record, cuts limits down to what it can
 *     use, and rewrites every kernel for the features that a record claims.
 *  4. `device_open` opens a device by its id. All further objects belong to a device.
 *  5. `memory_allocate` returns memory of one of four kinds, `memory_map` the host's view of the
 *     three mapped kinds, and of device memory where the device claims that. hal pools memory: both
 *     are rare.
 *  6. `kernel_create` compiles a kernel from verified and legalised IR. hal keeps one kernel per
 *     content, and plugins may keep compiled code on disk by host->cache_store.
 *  7. `queue_create` makes a timeline: a counter that starts at 0 and is raised by batches.
 *  8. `submit` runs a batch: an array of dispatches, copies and fills. When its work has ended, the
 *     queue has reached the batch's value. Work may run inside the call or after it.
 *  9. `wait` returns when a value is reached. A plugin with threads may say so earlier, by
 *     host->queue_reached.
 * 10. `queue_destroy`, `kernel_destroy` and `memory_free` come when no work uses the object,
 *     `device_close` after all of the device's objects are destroyed, `instance_destroy` after all
 *     of the instance's devices are closed. A plugin is never unloaded.
 *
 * The entries of the main table are required. hal works without each of the extensions, see the
 * table in docs/plugin-abi.md. */
#ifndef HAL_PLUGIN_H
#define HAL_PLUGIN_H

#include <hal/ir.h>
#include <hal/status.h>
#include <hal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rules ---- */

/* Data:
 *  - A plugin links neither hal nor ops. It exports one symbol, hal_plugin_create.
 *  - Every table begins with its own size. Fields are only appended. An entry that is null, or not
 *    wholly within the size that the other side states, is not offered: HAL_PLUGIN_HAS.
 *  - Elements of arrays (commands, bindings, waits, records of the IR) keep their size within a
 *    major version. They grow into their reserved fields.
 *  - Values of enums never change and new ones are appended. Neither side passes a value that the
 *    other's minor version does not have.
 *  - Plain data has fixed width: no bool, no size_t, no bit-fields.
 *  - Reserved fields are 0.
 *
 * Errors:
 *  - A plugin reports a failure by the status that it returns, after it has passed the message to
 *    host->fail: "expected X, got Y", and what to do. hal puts the plugin's name and the call in
 *    front of it.
 *  - A call that fails leaves no object and keeps nothing, and one that succeeds has no message. A
 *    wait that ends by its limit has none either. Messages and the texts of records are UTF-8,
 *    and each of the latter is one line.
 *  - Work that fails after `submit` has returned loses the device, see `submit`.
 *
 * The process:
 *  - A plugin never aborts, exits, or prints to standard output or standard error.
 *  - What a call takes of the process (memory, descriptors, threads, mappings, timers, keys of
 *    thread-local data) is returned with the object, the batch or the wait that it was taken for,
 *    to the last byte however often it is called; a driver may keep its own caches. Temporary files
 *    are removed.
 *  - hal calls entries in any locale and any floating-point environment. Kernels are compiled and
 *    run in the default environment, text for compilers is that of the locale "C", and nothing
 *    raises a floating-point trap that the program has set.
 *  - An entry returns with the signal handlers, the working folder, the locale of the process and
 *    of the thread, the signal mask, the alternate stack and the floating-point environment of its
 *    call, and it is no cancellation point. plugins/kit/guard.h does all of this for a table. A
 *    signal that the program handles ends no call.
 *  - A plugin leaves alone the descriptors that it did not open, the standard streams too, the
 *    environment variables, the umask, the timers, the priority, the attributes and the limits of
 *    resources of the process, the numbers of rand, the name, the scheduler and the processors of
 *    the threads that call it, and waits for the processes that it starts, and for no other ones.
 *  - Descriptors of a plugin are closed by exec (FD_CLOEXEC). Threads of a plugin block the signals
 *    that programs handle. A driver may do otherwise with its own.
 *  - An entry takes at most 64 KiB of its caller's stack; device_open and kernel_create take more
 *    where a driver's compiler runs in them.
 *
 * Ownership:
 *  - The plugin's tables live as long as the process, hal_host as long as the instance.
 *  - What hal passes in (batches, IR, descriptions, code, strings) belongs to hal and is valid
 *    during the call. A plugin copies what it keeps.
 *  - An object belongs to hal from the call that returns it until the call that destroys it, also
 *    when its device is lost.
 *  - Memory of host->allocate and host->cache_load belongs to the plugin, which passes it to
 *    host->release.
 *
 * Threads. "Any" means several threads at once, also for one object. Two instances are used by
 * threads that know nothing of each other: "one at a time" is per instance, and the plugin guards
 * what its instances share.
 *
 *  entry                                               | called from
 *  ----------------------------------------------------+-----------------------------------------
 *  hal_plugin_create, query_extension, enumerate       | one thread at a time for an instance
 *  instance_destroy, device_open, device_close         | one thread at a time for an instance
 *  memory_*, external_info                             | any
 *  device_handle, queue_handle, kernel_handle          | any
 *  kernel_*, gemm, gemm_*, attention, host_copy        | any
 *  queue_create, queue_import, device_can_access_peer  | any
 *  comm_backend, _id, _create, _poll, _abort           | any
 *  queue_destroy, comm_destroy                         | any, but one for an object
 *  fence_info, _import, _create, _export, _destroy     | any
 *  part_bytes, clocks_read, device_quirk               | any
 *  submit, queue_elapsed, queue_fail_next,             | one at a time for a queue
 *  queue_wait_native, queue_block_native,              |
 *  queue_signal_fence, queue_time                      |
 *  wait                                                | any, also during `submit` of the queue
 *
 *  host function           | may be called from                 | what it does meanwhile
 *  ------------------------+------------------------------------+--------------------------------
 *  allocate, release       | any, also the plugin's own threads | allocates
 *  log                     | any, also the plugin's own threads | may write a file; takes a lock
 *  report                  | any, also the plugin's own threads | allocates; takes a lock
 *  fail                    | the thread of the call that fails  | copies the message
 *  cache_load, cache_store | the thread of device_open,        | reads or writes a file
 *                          | kernel_create, _native, gemm,      |
 *                          | attention                          |
 *  queue_reached           | any, until queue_destroy returns   | takes a lock for a moment
 *  queue_failed            | any, until queue_destroy returns   | copies; takes a lock
 *
 * No host function calls back into the plugin, waits for the device or takes a lock that hal holds
 * while it calls an entry: a plugin may hold its own locks meanwhile, and may call host functions
 * from a driver's callback. None is safe in a signal handler. A plugin may start threads. In a
 * child after fork hal does not use the parent's objects; the child may open devices anew, with the
 * same instance.
 *
 * What a plugin may rely on; hal checks it before the plugin is called:
 *
 *  what                                | is
 *  ------------------------------------+----------------------------------------------------------
 *  a grid                              | 1 to hal_device_info.max_grid in each dimension
 *  the size of a group                 | 1 to max_group_size in each dimension, at most
 *                                      | max_group_items work-items
 *  bindings of a kernel                | at most max_bindings, in the order of the kernel
 *  the offset of a dispatch's binding  | a multiple of binding_alignment
 *  a binding's length                  | at most max_binding; within its memory
 *  overlapping bindings of a dispatch  | only where none of them is written
 *  scalars of a dispatch               | at most HAL_IR_MAX_SCALAR_BYTES, from a multiple of 8 on,
 *                                      | in the order of the kernel, each at a multiple of its
 *                                      | size (hal_ir_scalar.offset), padded with 0 to a multiple
 *                                      | of 8
 *  hal_batch.scalars                   | aligned to 8 bytes; bindings and commands likewise
 *  counts and lengths of a batch       | below 2^32; bytes of a binding below 2^63
 *  a fill                              | offset and length are multiples of the pattern's size
 *  a copy                              | source and target do not overlap
 *  memory, kernels, queues             | of this device, not destroyed until the batch has ended
 *  values of a queue                   | 1, 2, 3, ...
 *
 * What programs rely on, the least that a device has (hal-conformance tests the values claimed):
 *
 *  limit                               | at least
 *  ------------------------------------+----------------------------------------------------------
 *  max_bindings                        | 8
 *  max_group_items, max_group_size[0]  | 64
 *  max_grid[i]                         | 65535
 *  shared_bytes                        | 16384
 *  max_vector_bytes                    | 4
 *  storage_types, arithmetic_types     | I32, U32, F32
 *  bytes of scalars                    | HAL_IR_MAX_SCALAR_BYTES, 512
 *  waits of a batch, queues, commands  | no limit but memory */

/* ---- Versions and objects ---- */

/* Major in the high half, minor in the low half. Major 1 is frozen: minors only append.
 * docs/plugin-abi.md has the rules and the log of what each minor appended. HAL_IR_VERSION counts
 * the opcodes and types of the IR apart. */
#define HAL_PLUGIN_ABI_MAJOR 1u
#define HAL_PLUGIN_ABI_MINOR 1u
#define HAL_PLUGIN_ABI ((HAL_PLUGIN_ABI_MAJOR << 16) | HAL_PLUGIN_ABI_MINOR)

/* Objects of the plugin, opaque to hal. */
typedef struct hal_plugin_instance hal_plugin_instance;
typedef struct hal_plugin_device hal_plugin_device;
typedef struct hal_plugin_memory hal_plugin_memory;
typedef struct hal_plugin_kernel hal_plugin_kernel;
typedef struct hal_plugin_queue hal_plugin_queue;
typedef struct hal_plugin_comm hal_plugin_comm;
typedef struct hal_plugin_fence hal_plugin_fence; /* of hal.fences */

/* Bytes that `enumerate` has for each record: a record does not exceed them in this major. */
#define HAL_DEVICE_INFO_MAX_BYTES 2048u

/* ---- What a queue runs ---- */

/* A batch with a kind that the plugin does not know fails: by UNSUPPORTED of `submit`, and then
 * nothing of it runs, or as work. */
typedef enum hal_command_kind { /* hal_command.kind */
    HAL_COMMAND_DISPATCH = 0,   /* Runs `kernel` over `grid`; bindings and scalars as the kernel
                                 * declares them. */
    HAL_COMMAND_COPY = 1,       /* Bindings: source (read), target (write), of equal length. Offsets
                                 * and length are any number of bytes. The target may be memory of
                                 * another device, see device_can_access_peer. */
    HAL_COMMAND_FILL = 2,       /* Binding: target (write). Its bytes become the scalars repeated:
                                 * a pattern of 4 bytes, and of 1, 2, 8 or 16 only to devices with
                                 * HAL_FEATURE_FILL_PATTERNS. */
    HAL_COMMAND_COLLECTIVE = 3, /* Only to plugins with hal.collectives, as the only command of its
                                 * batch. Bindings: what is sent (read) and received (write);
                                 * scalars: a hal_plugin_collective. */
    HAL_COMMAND_COPY_ROWS = 4   /* Only to devices with HAL_FEATURE_COPY_ROWS. Bindings: source
                                 * (read), target (write), each from its first row to the end of
                                 * its last; scalars: a hal_plugin_copy_rows. What is between the
                                 * target's rows keeps its value. */
} hal_command_kind;

/* hal_command.flags */
enum {
    /* The command begins after all earlier commands of the queue have ended, and sees their writes.
     * Commands without it may overlap with earlier commands of their batch, never with those of an
     * earlier batch. */
    HAL_COMMAND_BARRIER = 1,
    /* Of a DISPATCH, only to devices with HAL_FEATURE_INDIRECT: one more binding (read), after
     * those of the kernel, has the grid as three U32, at a multiple of 4 bytes, read when the
     * command begins; with a 0 nothing runs. `grid` has the largest values that the program allows;
     * what the device does where it finds larger ones is undefined. */
    HAL_COMMAND_INDIRECT = 2
};

/* A range of memory. A length of 0 is a binding that the kernel does not touch; its memory is
 * null. */
typedef struct hal_binding {
    hal_plugin_memory *memory;
    uint64_t offset;   /* bytes from the beginning of the memory */
    uint64_t length;   /* bytes */
    uint32_t access;   /* HAL_ACCESS_*; what a WRITE does not write keeps its value */
    uint32_t reserved; /* 0 */
} hal_binding;

/* One command. Its bindings and scalars are ranges of the batch's arrays; what a kind needs beyond
 * them is in its scalars. Each number takes all values that its field and the limits of the
 * device's record allow. */
typedef struct hal_command {
    uint16_t kind;          /* hal_command_kind */
    uint16_t flags;         /* HAL_COMMAND_BARRIER, HAL_COMMAND_INDIRECT */
    uint16_t binding_count; /* with HAL_COMMAND_INDIRECT one more than the kernel has */
    uint16_t scalar_bytes;
    uint32_t binding_first; /* index in hal_batch.bindings */
    uint32_t scalar_first;  /* bytes into hal_batch.scalars, a multiple of 8 */
    uint32_t grid[3];       /* groups, at least 1 in each dimension */
    uint32_t reserved;      /* 0 */
    hal_plugin_kernel *kernel;
    uint64_t reserved_words[1]; /* 0 */
} hal_command;

/* The scalars of a COPY_ROWS: `slices` times `rows` ranges of row_bytes. Row r of slice s is at
 * s * slice + r * pitch bytes of its binding. All are multiples of 4 bytes, as the offsets are, and
 * rows do not overlap. */
typedef struct hal_plugin_copy_rows {
    uint64_t row_bytes;
    uint64_t source_pitch, target_pitch; /* bytes, at least row_bytes */
    uint64_t source_slice, target_slice; /* bytes */
    uint32_t rows, slices;               /* at least 1 */
} hal_plugin_copy_rows;

/* hal_batch.flags */
enum {
    HAL_BATCH_UNTIMED = 1 /* queue_elapsed never gets the batch's value: its end needs no time */
};

/* The commands of one flush; may have none. The arrays belong to hal and are valid during the
 * call. */
typedef struct hal_batch {
    uint32_t size; /* sizeof(hal_batch) */
    uint32_t command_count;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    const hal_command *commands;
    const hal_binding *bindings;
    const uint8_t *scalars;
    uint32_t flags; /* HAL_BATCH_* */
    uint32_t reserved;
} hal_batch;

typedef enum hal_wait_kind { /* hal_plugin_wait.kind */
    HAL_WAIT_QUEUE = 0,      /* until `queue` has reached `value` */
    HAL_WAIT_FENCE = 1       /* Only to plugins with hal.fences, of the queue's device: until
                              * `fence` has at least `value`; `queue` is null. */
} hal_wait_kind;

/* What has to happen before the batch begins. The value has been submitted to `queue`, which is of
 * the same device or of one that device_can_access_peer has confirmed. */
typedef struct hal_plugin_wait {
    hal_plugin_queue *queue;
    uint64_t value;
    hal_plugin_fence *fence; /* null, unless the kind is HAL_WAIT_FENCE */
    uint32_t kind;           /* hal_wait_kind */
    uint32_t reserved;       /* 0 */
} hal_plugin_wait;

/* The scalars of a COLLECTIVE. hal_collective_kind has the sizes of what is sent and received; a
 * rank that sends or receives nothing has a binding of length 0. */
typedef struct hal_plugin_collective {
    hal_plugin_comm *comm; /* of the queue's device */
    uint64_t count;          /* elements, at least 1 */
    uint32_t kind;           /* hal_collective_kind */
    uint32_t reduction;      /* hal_reduction, of kinds that reduce */
    uint32_t root;           /* rank */
    uint32_t type;           /* hal_type of the elements; any for kinds that do not reduce */
} hal_plugin_collective;

/* A plugin's backend for collectives. Sets of types have the bits of HAL_TYPE_BIT. */
typedef struct hal_plugin_comm_backend {
    uint32_t size;
    uint32_t version;       /* of its library; the ranks of a communicator need the same */
    char name[16];          /* for hal_comm_status.backend: lower case letters */
    char description[232];  /* library and version, for people */
    uint32_t sum_types;     /* sums, added in any order and rounded after each addition */
    uint32_t mean_types;    /* means, likewise; floats over a power of two of ranks only */
    uint32_t min_max_types; /* MIN and MAX, with the bits of the IR's opcodes */
    uint32_t reserved;      /* 0 */
    uint32_t ordered_types; /* sums and means by all_reduce that are added in the order of the
                             * ranks and rounded once, if all ranks are in one process */
    uint32_t ordered_bytes; /* greatest size of the elements of those */
    uint32_t ordered_ranks; /* greatest number of ranks of those */
} hal_plugin_comm_backend;

/* Names a communicator of the backend that is about to be created. Plain bytes. */
typedef struct hal_plugin_comm_id {
    uint8_t bytes[256];
} hal_plugin_comm_id;

/* ---- What hal offers to plugins ---- */

typedef enum hal_host_flag { /* hal_host.flags */
    HAL_HOST_VALIDATE = 1    /* validation is on: a plugin that can check kernels does */
} hal_host_flag;

/* hal's services for an instance. All functions of minor 0 are there: a plugin calls them without
 * asking. Each gets the host of the instance that calls. The table of threads above says where each
 * may be called. */
typedef struct hal_host hal_host;
struct hal_host {
    uint32_t size;
    uint32_t abi; /* HAL_PLUGIN_ABI of hal */

    /* Allocates memory of the host, for the plugin to free with `release`.
     *   alignment  a power of two
     * Errors: null without memory. */
    void *(*allocate)(const hal_host *host, uint64_t bytes, uint64_t alignment);

    /* Frees memory of `allocate` or `cache_load`; null is allowed. */
    void (*release)(const hal_host *host, void *memory);

    /* Writes a line to the program's log, if the log's level includes it.
     *   level    hal_log_level
     *   message  copied; without a line feed */
    void (*log)(const hal_host *host, uint32_t level, const char *message);

    /* Sets the message of the calling thread's failure, which hal reports to the program.
     *   message  copied
     * Returns `status`, so that a plugin can write: return host->fail(host, status, message). */
    hal_status (*fail)(const hal_host *host, hal_status status, const char *message);

    /* Reads an entry of the compile cache on disk.
     *   device_id     hal_device_info.id. With another id nothing is found or stored, and the log
     *                 has a warning.
     *   key           a hash of everything that decides the data, except plugin, build, driver and
     *                 architecture: hal adds those
     *   data, bytes   memory that the plugin frees with `release`
     * Only inside device_open, kernel_create, kernel_create_native, gemm and attention, on the
     * thread that hal called them on; elsewhere the cache is empty.
     * Errors: NOT_FOUND. */
    hal_status (*cache_load)(const hal_host *host, const char *device_id, const uint64_t key[2],
                             void **data, uint64_t *bytes);

    /* Writes an entry of the compile cache; parameters and places as for `cache_load`. The data is
     * copied. Errors: NOT_FOUND without a cache, IO. A plugin may ignore them. */
    hal_status (*cache_store)(const hal_host *host, const char *device_id, const uint64_t key[2],
                              const void *data, uint64_t bytes);

    uint32_t flags;    /* HAL_HOST_*; constant from the first device_open on */
    uint32_t reserved; /* 0 */

    /* Reports a finding of validation: what a kernel did wrong, with the names of kernel and
     * binding, instruction and work-item. hal counts findings and tells the program each text once.
     * The kernel continues as the plugin chooses. */
    void (*report)(const hal_host *host, const char *message);

    /* Tells hal that a queue has reached `value`. Optional: hal calls `wait` for values that it was
     * not told. A thread that learns of the value sees what the batch wrote. Not for values of a
     * lost device. */
    void (*queue_reached)(const hal_host *host, hal_plugin_queue *queue, uint64_t value);

    /* Keeps the message of work that failed after `submit` had returned, the first one of a queue.
     * hal reports it with each later failure of `wait` or `submit` for the queue that has no
     * message from `fail`. */
    void (*queue_failed)(const hal_host *host, hal_plugin_queue *queue, const char *message);
};

/* ---- Extensions: what a plugin may offer ---- */

/* A table that query_extension returns begins with its size and version. Each extension counts its
 * own majors; all are at 1.0 today. Entries are not null unless they say so. */
#define HAL_EXTENSION_VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

/* How much memory a device has. */
#define HAL_EXTENSION_MEMORY_INFO "hal.memory_info"
typedef struct hal_extension_memory_info {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Bytes of device memory that are free, and all of them, at the moment. Memory that was
     * allocated and written is not free. */
    hal_status (*memory_info)(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes);
} hal_extension_memory_info;

/* Mapped memory that is not coherent. */
#define HAL_EXTENSION_COHERENCE "hal.coherence"
typedef struct hal_extension_coherence {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* hal calls memory_flush after the host wrote a range and before a batch that uses it is
     * submitted, and memory_invalidate after the batches that wrote a range were waited for and
     * before the host reads it. Ranges are in bytes and have any alignment. Bytes next to a range
     * do not change, on either side. */
    hal_status (*memory_flush)(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes);
    hal_status (*memory_invalidate)(hal_plugin_device *device, hal_plugin_memory *memory,
                                    uint64_t offset, uint64_t bytes);
} hal_extension_coherence;

/* Times of batches, with HAL_FEATURE_TIMESTAMPS. */
#define HAL_EXTENSION_TIMING "hal.timing"
typedef struct hal_extension_timing {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Device time in nanoseconds between the ends of two batches, both reached.
     *   first   at least 1
     *   second  at least `first`
     * The times of the last 1024 submitted batches are known, in steps of 10 us at most.
     * Errors: INVALID_ARGUMENT for an older one, or its time. */
    hal_status (*queue_elapsed)(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);
} hal_extension_timing;

/* Kernels from native code. */
#define HAL_EXTENSION_NATIVE "hal.native"
typedef struct hal_extension_native {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Names of the formats of native code that kernel_create_native takes, separated by
     * commas. */
    const char *formats;

    /* A kernel from native code.
     *   format       one of `formats`
     *   code, bytes  copied by the plugin
     *   entry        name of the function in the code
     *   signature    a kernel without records: bindings, scalars and group size of the code
     * Errors: COMPILE with the compiler's log. */
    hal_status (*kernel_create_native)(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature,
                                       hal_plugin_kernel **kernel);
} hal_extension_native;

/* The plugin's own matrix products. */
#define HAL_EXTENSION_GEMM "hal.gemm"
typedef struct hal_extension_gemm {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* A kernel for a matrix product.
     *   description      see hal_gemm_description, which has bindings, scalars and grid
     *   workspace_bytes  size of the workspace that binding 3 needs; 0: none
     * Errors: UNSUPPORTED declines the product: the portable kernel is used. */
    hal_status (*gemm)(hal_plugin_device *device, const hal_gemm_description *description,
                       hal_plugin_kernel **kernel, uint64_t *workspace_bytes);

    /* (may be null) Estimates the time of the kernel that `gemm` creates for a description without
     * an epilogue: ops compares it with its own kernels before it creates one.
     *   most_ns      0: no limit
     *   nanoseconds  0: not known, or the product is to be taken anyway
     * Errors: UNSUPPORTED declines the product, as `gemm` does, and may be the answer where the
     * kernel takes longer than `most_ns`. */
    hal_status (*gemm_estimate)(hal_plugin_device *device, const hal_gemm_description *description,
                                double most_ns, double *nanoseconds);

    /* (may be null) Answers what `gemm` would, and creates no kernel: hal lets that be compiled in
     * the background.
     *   workspace_bytes  as of `gemm`
     * Errors: UNSUPPORTED declines the product, exactly where `gemm` does. */
    hal_status (*gemm_workspace)(hal_plugin_device *device, const hal_gemm_description *description,
                                 uint64_t *workspace_bytes);
} hal_extension_gemm;

/* The plugin's own attention. */
#define HAL_EXTENSION_ATTENTION "hal.attention"
typedef struct hal_extension_attention {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* A kernel for attention.
     *   description  see hal_attention_description, which has bindings, scalars and grid
     * Errors: UNSUPPORTED declines it: portable kernels are used. */
    hal_status (*attention)(hal_plugin_device *device, const hal_attention_description *description,
                            hal_plugin_kernel **kernel);
} hal_extension_attention;

/* Devices of the plugin that access each other's memory. */
#define HAL_EXTENSION_PEERS "hal.peers"
typedef struct hal_extension_peers {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Returns 1 if `device` can access the memory of `other`, another open device of the
     * plugin, else 0. If so, batches of its queues may wait for queues of the other, and their COPY
     * commands may have memory of the other, of any kind, as the target. Both devices stay open,
     * and the memory stays, until such a batch has ended. hal asks often: only the first answer for
     * a pair may take time. */
    uint32_t (*device_can_access_peer)(hal_plugin_device *device, hal_plugin_device *other);
} hal_extension_peers;

/* Copies between memories of the host by the device's threads. */
#define HAL_EXTENSION_HOST_COPY "hal.host_copy"
typedef struct hal_extension_host_copy {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Copies bytes between memories of the host that do not overlap, mapped ones or a
     * program's, and returns when all are copied: for devices whose threads copy faster than the
     * calling one. hal calls it for large reads and writes. */
    void (*host_copy)(hal_plugin_device *device, void *target, const void *source, uint64_t bytes);
} hal_extension_host_copy;

/* Failures on purpose, for tests of what follows them. */
#define HAL_EXTENSION_FAULTS "hal.faults"
typedef struct hal_extension_faults {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Makes the next batch of a queue fail as if the device had ended it: after `submit` has
     * returned OK where batches run later, else inside the call, with DEVICE_LOST. */
    void (*queue_fail_next)(hal_plugin_queue *queue);
} hal_extension_faults;

/* What is shared with others: memory, native handles, queues and fences of the driver. */
#include <hal/plugin_interop.h>

/* A backend for collectives. */
#define HAL_EXTENSION_COLLECTIVES "hal.collectives"
typedef struct hal_extension_collectives {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Describes the plugin's backend for collectives between its devices, in one process or
     * several.
     *   backend  `size` is that of hal's record
     * Errors: LIBRARY_MISSING, TOO_OLD. */
    hal_status (*comm_backend)(hal_plugin_instance *instance, hal_plugin_comm_backend *backend);

    /* Makes an id of a communicator, which hal passes to all ranks. */
    hal_status (*comm_id)(hal_plugin_instance *instance, hal_plugin_comm_id *id);

    /* Begins to create a rank of a communicator, and does not wait for the other ranks.
     *   rank, count  0 to count - 1 */
    hal_status (*comm_create)(hal_plugin_device *device, const hal_plugin_comm_id *id,
                              uint32_t rank, uint32_t count, hal_plugin_comm **comm);

    /* Advances the creation, or collectives that were submitted, and does not wait. OK once all of
     * them have begun: the communicator is created, and the queue reaches the values of the
     * collectives without further calls. TIMEOUT until then, without a message. Another status: the
     * communicator has failed.
     * A batch with a collective may be submitted before those of the other ranks of this process,
     * and `submit` does not wait for them. Before OK hal submits no further batch of the queue, of
     * the communicator or with a wait for the value, and no collective of the device. */
    hal_status (*comm_poll)(hal_plugin_comm *comm);

    /* Ends all ranks of the communicator in this process: collectives in flight end with any data,
     * and their values are reached. May be called again. */
    void (*comm_abort)(hal_plugin_comm *comm);

    /* Destroys a rank. All of its collectives have ended. */
    void (*comm_destroy)(hal_plugin_comm *comm);
} hal_extension_collectives;

/* ---- What every plugin offers ---- */

/* Entries are not null unless they say so. The table of threads above says from where each is
 * called. Errors: every status except TIMEOUT is allowed where none is named. */
typedef struct hal_plugin {
    uint32_t size;
    uint32_t abi;         /* HAL_PLUGIN_ABI that the plugin was built with */
    const char *name;     /* as in HAL_BACKEND: lower case letters, digits, _ */
    const char *version;  /* for people; may be null */
    const char *build_id; /* changes whenever the plugin's code does: part of the cache's key; may
                           * be null */
    uint32_t ir_version;  /* HAL_IR_VERSION of the opcodes and types that the plugin knows */
    uint32_t reserved;    /* 0 */

    /* Destroys an instance. All of its devices have been closed. */
    void (*instance_destroy)(hal_plugin_instance *instance);

    /* Describes the devices: the same ones in the same order in each process. Their records differ
     * in no call, instance or process, except in sizes of memory.
     *   infos     records, written one after the other, each of the size that it states
     *   capacity  records that there is room for, of HAL_DEVICE_INFO_MAX_BYTES each
     *   count     number of all devices; hal calls again if it exceeds `capacity`
     * Errors: without a device LIBRARY_MISSING, DRIVER_MISSING, NO_DEVICE or TOO_OLD. */
    hal_status (*enumerate)(hal_plugin_instance *instance, hal_device_info *infos,
                            uint32_t capacity, uint32_t *count);

    /* Opens a device, which may be open already: any number of times at once.
     *   id  hal_device_info.id of one that `enumerate` has described
     * Errors: NOT_FOUND if it is not there any more. DEVICE_LOST after a device was lost, where the
     * driver opens none in that process any more. */
    hal_status (*device_open)(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **device);

    /* Closes a device. All of its objects have been destroyed. */
    void (*device_close)(hal_plugin_device *device);

    /* Allocates memory.
     *   kind   hal_memory_kind
     *   bytes  at least 1. The memory has at least that many, aligned to 256 bytes. Its content is
     *          undefined. Up to max_allocation it succeeds where the device has that much free.
     * Errors: OUT_OF_MEMORY, after which hal frees unused memory and tries again. */
    hal_status (*memory_allocate)(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);

    /* Frees memory that no batch in flight names. */
    void (*memory_free)(hal_plugin_device *device, hal_plugin_memory *memory);

    /* Returns the host's view of memory of a mapped kind, of devices with HAL_FEATURE_MAP_DEVICE
     * also of the kind HAL_MEMORY_DEVICE. The pointer is valid until the memory is freed.
     * Batches see what the host wrote before they were submitted, and the host sees what a batch
     * wrote once it has waited for it: by itself, or by memory_flush and memory_invalidate. */
    hal_status (*memory_map)(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

    /* Compiles a kernel, of any size that ir.h allows.
     *   ir  verified, and legalised for the device's record; valid during the call. Kernels are the
     *       same only if all of it is, except names: also in a cache on disk.
     * Errors: COMPILE with the compiler's log, UNSUPPORTED. */
    hal_status (*kernel_create)(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);

    /* Destroys a kernel of kernel_create, kernel_create_native, gemm or attention that no
     * batch in flight names. */
    void (*kernel_destroy)(hal_plugin_device *device, hal_plugin_kernel *kernel);

    /* Creates an in-order timeline, which has reached 0. */
    hal_status (*queue_create)(hal_plugin_device *device, hal_plugin_queue **queue);

    /* Destroys a queue. All of its work has ended, and so has that of all batches that
     * named it in their waits. */
    void (*queue_destroy)(hal_plugin_device *device, hal_plugin_queue *queue);

    /* Runs a batch, in this call or later. It begins after the batches that were
     * submitted to the queue before have ended and `waits` are reached, and sees their writes. When
     * it has ended, the queue has reached `value`.
     *   value  1 for the first batch of a queue, then rises by 1; after a failed submit the same
     *          value comes again
     * Errors: a status other than DEVICE_LOST means that nothing of the batch has run or will run.
     * DEVICE_LOST is for all other failures and for every submit on a lost device.
     *
     * Work that fails after the call has returned OK loses the device: the values of its batch and
     * of all later batches count as reached, `wait` returns DEVICE_LOST for them, and so does every
     * later submit to a queue of the device. A lost device stays lost. A device of another id goes
     * on; one that was opened by the same id may be lost with it. Before the value counts as
     * reached, the plugin has passed the reason to host->queue_failed; else each call that returns
     * DEVICE_LOST passes it to host->fail. For values that were reached before, `wait` returns OK
     * or DEVICE_LOST. */
    hal_status (*submit)(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

    /* Waits until the queue has reached a value.
     *   value       has been submitted; any number of batches may be in flight before it
     *   timeout_ns  nanoseconds, at most, of all 64 bits; 0 looks without waiting, UINT64_MAX waits
     *               without limit
     * Errors: TIMEOUT if the value is not reached by then, without a message; DEVICE_LOST. */
    hal_status (*wait)(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);

    /* (may be null) Returns the table of an extension, which lives as long as the process, or null
     * for a name or major that the plugin does not have.
     *   name   HAL_EXTENSION_*; other names begin with the name of who defines them and a dot
     *   major  of the extension's version */
    const void *(*query_extension)(hal_plugin_instance *instance, const char *name, uint32_t major);
} hal_plugin;

/* The one symbol of a plugin.
 *   host_abi  HAL_PLUGIN_ABI of hal
 *   host      hal's services, valid until instance_destroy
 *   instance  receives the new instance
 * Returns the plugin's table, the same for each instance; null, and no instance, if host_abi is of
 * a major version that the plugin does not know, or after host->fail for another reason. */
typedef const hal_plugin *(*hal_plugin_create_function)(uint32_t host_abi, const hal_host *host,
                                                        hal_plugin_instance **instance);
#define HAL_PLUGIN_CREATE_SYMBOL "hal_plugin_create"

#include <hal/plugin_entries.h>

/* Whether a table is long enough for an entry and has it. */
#define HAL_PLUGIN_HAS(table, entry)                                                              \
    ((uint64_t)((const char *)&(table)->entry - (const char *)(table)) + sizeof((table)->entry) <= \
         (table)->size &&                                                                         \
     (table)->entry != 0)

#ifdef __cplusplus
}
#endif
#endif
