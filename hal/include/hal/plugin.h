/* The plugin contract: what a backend's shared object and hal say to each other.
 *
 * Stands alone with status.h, types.h and ir.h. A plugin links neither hal nor ops: it exports one
 * symbol, hal_plugin_query, and everything else crosses as tables and plain data.
 *
 * Rules, which docs/plugin-abi.md explains:
 *  - every table begins with its own size; fields are only appended; an entry that is not wholly
 *    within the size that the other side states, or is null, is "not offered";
 *  - elements of arrays (commands, bindings, waits, records of the IR) keep their layout within a
 *    major version; values of enums never change, new ones are appended, and neither side hands
 *    over one that the other's minor does not have;
 *  - required entries are marked (required); hal falls back or answers UNSUPPORTED for the others;
 *  - plain data has fixed width: no bool, no size_t, no bit-fields;
 *  - a plugin reports a failure by its status, after host->fail has been given the sentence;
 *  - a plugin never aborts, exits or prints, and shows no other symbol;
 *  - hal calls entries in any locale and any floating-point environment: kernels are compiled and
 *    run in the default environment, text for compilers is that of the locale "C", and nothing
 *    raises a floating-point trap that the program has set;
 *  - an entry returns with the signal handlers, the working folder, the locale, the signal mask,
 *    the alternate stack and the floating-point environment of its call, and it is no cancellation
 *    point. plugins/kit/guard.h does all of this for a table.
 *
 * Threads: hal calls `enumerate`, `device_open` and `device_close` from one thread at a time;
 * allocation, kernel and wait entries of one device from any threads at once; the entries of one
 * queue from one thread at a time, different queues at once. */
#ifndef HAL_PLUGIN_H
#define HAL_PLUGIN_H

#include <hal/ir.h>
#include <hal/status.h>
#include <hal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Major in the high half, minor in the low half. Major 1 is frozen: minors only append.
 * docs/plugin-abi.md has the rules and the log of what each minor appended. */
#define HAL_PLUGIN_ABI_MAJOR 1u
#define HAL_PLUGIN_ABI_MINOR 1u
#define HAL_PLUGIN_ABI ((HAL_PLUGIN_ABI_MAJOR << 16) | HAL_PLUGIN_ABI_MINOR)

/* Objects of the plugin, opaque to hal. */
typedef struct hal_plugin_device hal_plugin_device;
typedef struct hal_plugin_memory hal_plugin_memory;
typedef struct hal_plugin_kernel hal_plugin_kernel;
typedef struct hal_plugin_queue hal_plugin_queue;
typedef struct hal_plugin_comm hal_plugin_comm;

/* The largest size of a device's record in this major version: `enumerate` has this much room for
 * each. */
#define HAL_DEVICE_INFO_MAX_BYTES 2048u

/* ---- What a queue runs ---- */

typedef enum hal_command_kind { /* hal_command.kind */
    HAL_COMMAND_DISPATCH = 0,   /* bindings as the kernel declares them */
    HAL_COMMAND_COPY = 1,       /* bindings: source (read), target (write), of equal length; offsets
                                 * and length are any number of bytes; the target may be memory of
                                 * another device, see device_can_access_peer */
    HAL_COMMAND_FILL = 2,       /* binding: target; its bytes are `pattern`, 4 bytes repeated */
    HAL_COMMAND_COLLECTIVE = 3  /* since 1.1, to plugins with comm_create, as the only command of
                                 * its batch: bindings: what is sent (read) and received (write);
                                 * scalars: a hal_plugin_collective */
} hal_command_kind;

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
    uint32_t pattern;       /* of a fill, whose offset and length are multiples of 4 */
    hal_plugin_kernel *kernel;
} hal_command;

/* hal_batch.flags */
enum {
    HAL_BATCH_UNTIMED = 1 /* queue_elapsed never gets the batch's value, as no program has its
                           * point: the end of the batch needs no time */
};

/* The batch of one flush. The arrays belong to hal and are valid during the call. */
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

/* A value that another queue of the device, or of one that it reaches, has to reach first. It has
 * been submitted to that queue. */
typedef struct hal_plugin_wait {
    hal_plugin_queue *queue;
    uint64_t value;
} hal_plugin_wait;

/* The scalars of a COLLECTIVE. Sizes and places of what is sent and received are those of
 * hal_collective_kind; a rank that sends or receives nothing has a binding of length 0. */
typedef struct hal_plugin_collective {
    hal_plugin_comm *comm; /* of the queue's device */
    uint64_t count;          /* of elements, at least 1 */
    uint32_t kind;           /* hal_collective_kind */
    uint32_t reduction;      /* hal_reduction; of kinds that reduce */
    uint32_t root;
    uint32_t type; /* hal_type of the elements; any one for kinds that do not reduce */
} hal_plugin_collective;

/* What a plugin's backend for collectives is. Sets have the bits of HAL_TYPE_BIT. */
typedef struct hal_plugin_comm_backend {
    uint32_t size;
    uint32_t version;       /* of its library; ranks of a communicator need the same */
    char name[16];          /* as in hal_comm_status.backend: lower case letters */
    char description[232];  /* of library and version, for people */
    uint32_t sum_types;     /* of sums, added in any order and rounded after each addition */
    uint32_t mean_types;    /* likewise of means; of floats over a power of two of ranks only */
    uint32_t min_max_types; /* of MIN and MAX, with the bits of the IR's opcodes */
    uint32_t reserved;      /* 0 */
    uint32_t ordered_types; /* of sums and means by all_reduce that are added in the order of the
                             * ranks and rounded once, where all ranks are in one process */
    uint32_t ordered_bytes; /* of the elements, up to which they are */
    uint32_t ordered_ranks; /* up to which they are */
} hal_plugin_comm_backend;

/* Names a communicator of the backend that is about to be created. Plain bytes. */
typedef struct hal_plugin_comm_id {
    uint8_t bytes[256];
} hal_plugin_comm_id;

/* ---- What hal offers to plugins ---- */

typedef enum hal_host_flag { /* hal_host.flags */
    HAL_HOST_VALIDATE = 1 /* validation is on: a plugin that can check more does, and reports it */
} hal_host_flag;

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
     * hal called them on; elsewhere there is nothing in it. `device_id` is the id of the device's
     * info: with another one nothing is found or stored, which a warning in the log says. */
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
    /* Since 1.1. Tells hal that a queue has reached `value`, so that hal need not ask `wait`. What
     * the batch wrote is seen by a thread that learns of it. Optional: hal asks `wait` where it was
     * not told. Not for values of a lost device. Threads: any, until queue_destroy. */
    void (*queue_reached)(hal_plugin_queue *queue, uint64_t value);
    /* Since 1.1. Keeps the sentence of work that failed after submit had returned, the first one
     * of a queue. A wait or submit of the queue that then fails without `fail` is reported with it.
     * Threads: any, until queue_destroy of the queue is called. */
    void (*queue_failed)(hal_plugin_queue *queue, const char *message);
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

    /* (required) At least `bytes` of memory of a kind, aligned to 256 bytes. Free is never called
     * while a batch that names the memory is in flight. */
    hal_status (*memory_allocate)(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
    void (*memory_free)(hal_plugin_device *device, hal_plugin_memory *memory);

    /* (required) The host's view of memory of a mapped kind; the pointer stays valid until the
     * memory is freed, what the host wrote is seen by batches submitted after it, what a batch
     * wrote is seen by the host once the batch is waited for: by itself, or by memory_flush and
     * memory_invalidate. */
    hal_status (*memory_map)(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

    /* (required) A kernel from verified and legalised IR, which is valid during the call only.
     * Destroy is never called while a batch that names the kernel is in flight. */
    hal_status (*kernel_create)(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);
    void (*kernel_destroy)(hal_plugin_device *device, hal_plugin_kernel *kernel);

    /* (required) An in-order timeline. Destroy comes when all of its work is done, and that of all
     * batches that named it in their waits. */
    hal_status (*queue_create)(hal_plugin_device *device, hal_plugin_queue **queue);
    void (*queue_destroy)(hal_plugin_device *device, hal_plugin_queue *queue);

    /* (required) Runs a batch after what was submitted before and after `waits`; the queue then
     * has reached `value`. Values grow by 1. The work may be done inside the call or later. A
     * failed submit has run nothing; where it may have, it is DEVICE_LOST. Work that fails after
     * the call loses the device: all values then count as reached, `wait` gives DEVICE_LOST for
     * them, and so does every later submit of the device's queues. */
    hal_status (*submit)(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

    /* (required) Waits until the queue has reached `value`, for at most `timeout_ns` nanoseconds
     * (0: only looks; UINT64_MAX: without limit). TIMEOUT when it has not by then. TIMEOUT needs no
     * sentence: hal ignores one. The value has been submitted. May be called from any thread. */
    hal_status (*wait)(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);

    /* (optional) Device time in nanoseconds between the ends of two batches, both reached. `first`
     * is at least 1 and not above `second`. The times of the last 1024 submitted batches are known;
     * the answer for an older one is the time or INVALID_ARGUMENT. */
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

    /* (optional) Since 1.1. For mapped memory that is not coherent. hal calls flush after the host
     * wrote a range of mapped memory and before a batch that uses it is submitted, and invalidate
     * after the batches that wrote a range were waited for and before the host reads it. Ranges are
     * in bytes and have any alignment. Threads: any. */
    hal_status (*memory_flush)(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes);
    hal_status (*memory_invalidate)(hal_plugin_device *device, hal_plugin_memory *memory,
                                    uint64_t offset, uint64_t bytes);

    /* (optional) Since 1.1. A backend for collectives between devices of this plugin, in one
     * process or several; the six entries come together. `comm_backend` tells what it is, or fails
     * with LIBRARY_MISSING or TOO_OLD and its sentence. `comm_id` makes an id, which hal passes to
     * all ranks. Threads: any. */
    hal_status (*comm_backend)(hal_plugin_comm_backend *backend);
    hal_status (*comm_id)(hal_plugin_comm_id *id);

    /* Begins to create a rank of a communicator; does not wait for the other ranks. */
    hal_status (*comm_create)(hal_plugin_device *device, const hal_plugin_comm_id *id,
                               uint32_t rank, uint32_t count, hal_plugin_comm **comm);

    /* Goes on with the creation, or with collectives that were submitted; does not wait. OK when
     * all of them have begun: the communicator is created, and the queue reaches the values of the
     * collectives without further calls. TIMEOUT, which needs no sentence, until then. A batch with
     * a collective may be submitted before those of the other ranks of this process, and `submit`
     * does not wait for them; hal submits no further batch of the queue, of the communicator or
     * with a wait for the value before OK, and calls no collective of the device before. Another
     * status: the communicator has failed. Threads: any. */
    hal_status (*comm_poll)(hal_plugin_comm *comm);

    /* Ends all ranks of the communicator in this process: collectives in flight end with any data,
     * and their values are reached. May be repeated. Threads: any. */
    void (*comm_abort)(hal_plugin_comm *comm);

    /* Leaves the communicator. Comes after all collectives of the rank have ended. */
    void (*comm_destroy)(hal_plugin_comm *comm);

    /* (optional) Since 1.1. Copies bytes between memories of the host that do not overlap, mapped
     * ones or a program's, and returns when all are copied: for devices whose threads copy faster
     * than the calling one. hal calls it for large reads and writes. Threads: any. */
    void (*host_copy)(hal_plugin_device *device, void *target, const void *source, uint64_t bytes);

    /* (optional) Since 1.1. Estimated nanoseconds of the kernel that `gemm` creates for a
     * description without an epilogue: ops compares them with its own kernels before it creates
     * one. UNSUPPORTED declines the product, as `gemm` does, and may also be the answer where the
     * kernel takes longer than most_ns (0: no limit). An answer of 0 means not known, or to be
     * taken anyway. Threads: any. */
    hal_status (*gemm_estimate)(hal_plugin_device *device, const hal_gemm_description *description,
                                double most_ns, double *nanoseconds);
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
