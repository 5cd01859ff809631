/* hal/plugin.h of plugin ABI 1.0, without its comments; it never changes. */
#ifndef TESTS_ABI_FROZEN_HAL_PLUGIN_H
#define TESTS_ABI_FROZEN_HAL_PLUGIN_H

#include <hal/ir.h>
#include <hal/status.h>
#include <hal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_PLUGIN_ABI_MAJOR 1u
#define HAL_PLUGIN_ABI_MINOR 0u
#define HAL_PLUGIN_ABI ((HAL_PLUGIN_ABI_MAJOR << 16) | HAL_PLUGIN_ABI_MINOR)

typedef struct hal_plugin_instance hal_plugin_instance;
typedef struct hal_plugin_device hal_plugin_device;
typedef struct hal_plugin_memory hal_plugin_memory;
typedef struct hal_plugin_kernel hal_plugin_kernel;
typedef struct hal_plugin_queue hal_plugin_queue;
typedef struct hal_plugin_comm hal_plugin_comm;
typedef struct hal_plugin_fence hal_plugin_fence;

#define HAL_DEVICE_INFO_MAX_BYTES 2048u

typedef enum hal_command_kind {
    HAL_COMMAND_DISPATCH = 0,
    HAL_COMMAND_COPY = 1,
    HAL_COMMAND_FILL = 2,
    HAL_COMMAND_COLLECTIVE = 3,
    HAL_COMMAND_COPY_ROWS = 4
} hal_command_kind;

enum {
    HAL_COMMAND_BARRIER = 1,

    HAL_COMMAND_INDIRECT = 2
};

typedef struct hal_binding {
    hal_plugin_memory *memory;
    uint64_t offset;
    uint64_t length;
    uint32_t access;
    uint32_t reserved;
} hal_binding;

typedef struct hal_command {
    uint16_t kind;
    uint16_t flags;
    uint16_t binding_count;
    uint16_t scalar_bytes;
    uint32_t binding_first;
    uint32_t scalar_first;
    uint32_t grid[3];
    uint32_t reserved;
    hal_plugin_kernel *kernel;
    uint64_t reserved_words[1];
} hal_command;

typedef struct hal_plugin_copy_rows {
    uint64_t row_bytes;
    uint64_t source_pitch, target_pitch;
    uint64_t source_slice, target_slice;
    uint32_t rows, slices;
} hal_plugin_copy_rows;

enum {
    HAL_BATCH_UNTIMED = 1
};

typedef struct hal_batch {
    uint32_t size;
    uint32_t command_count;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    const hal_command *commands;
    const hal_binding *bindings;
    const uint8_t *scalars;
    uint32_t flags;
    uint32_t reserved;
} hal_batch;

typedef enum hal_wait_kind {
    HAL_WAIT_QUEUE = 0,
    HAL_WAIT_FENCE = 1
} hal_wait_kind;

typedef struct hal_plugin_wait {
    hal_plugin_queue *queue;
    uint64_t value;
    hal_plugin_fence *fence;
    uint32_t kind;
    uint32_t reserved;
} hal_plugin_wait;

typedef struct hal_plugin_collective {
    hal_plugin_comm *comm;
    uint64_t count;
    uint32_t kind;
    uint32_t reduction;
    uint32_t root;
    uint32_t type;
} hal_plugin_collective;

typedef struct hal_plugin_comm_backend {
    uint32_t size;
    uint32_t version;
    char name[16];
    char description[232];
    uint32_t sum_types;
    uint32_t mean_types;
    uint32_t min_max_types;
    uint32_t reserved;
    uint32_t ordered_types;
    uint32_t ordered_bytes;
    uint32_t ordered_ranks;
} hal_plugin_comm_backend;

typedef struct hal_plugin_comm_id {
    uint8_t bytes[256];
} hal_plugin_comm_id;

typedef enum hal_host_flag {
    HAL_HOST_VALIDATE = 1
} hal_host_flag;

typedef struct hal_host hal_host;
struct hal_host {
    uint32_t size;
    uint32_t abi;

    void *(*allocate)(const hal_host *host, uint64_t bytes, uint64_t alignment);

    void (*release)(const hal_host *host, void *memory);

    void (*log)(const hal_host *host, uint32_t level, const char *message);

    hal_status (*fail)(const hal_host *host, hal_status status, const char *message);

    hal_status (*cache_load)(const hal_host *host, const char *device_id, const uint64_t key[2],
                             void **data, uint64_t *bytes);

    hal_status (*cache_store)(const hal_host *host, const char *device_id, const uint64_t key[2],
                              const void *data, uint64_t bytes);

    uint32_t flags;
    uint32_t reserved;

    void (*report)(const hal_host *host, const char *message);

    void (*queue_reached)(const hal_host *host, hal_plugin_queue *queue, uint64_t value);

    void (*queue_failed)(const hal_host *host, hal_plugin_queue *queue, const char *message);
};

#define HAL_EXTENSION_VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

#define HAL_EXTENSION_MEMORY_INFO "hal.memory_info"
typedef struct hal_extension_memory_info {
    uint32_t size;
    uint32_t version;

    hal_status (*memory_info)(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes);
} hal_extension_memory_info;

#define HAL_EXTENSION_COHERENCE "hal.coherence"
typedef struct hal_extension_coherence {
    uint32_t size;
    uint32_t version;

    hal_status (*memory_flush)(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes);
    hal_status (*memory_invalidate)(hal_plugin_device *device, hal_plugin_memory *memory,
                                    uint64_t offset, uint64_t bytes);
} hal_extension_coherence;

#define HAL_EXTENSION_TIMING "hal.timing"
typedef struct hal_extension_timing {
    uint32_t size;
    uint32_t version;

    hal_status (*queue_elapsed)(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);
} hal_extension_timing;

#define HAL_EXTENSION_NATIVE "hal.native"
typedef struct hal_extension_native {
    uint32_t size;
    uint32_t version;

    const char *formats;

    hal_status (*kernel_create_native)(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature,
                                       hal_plugin_kernel **kernel);
} hal_extension_native;

#define HAL_EXTENSION_GEMM "hal.gemm"
typedef struct hal_extension_gemm {
    uint32_t size;
    uint32_t version;

    hal_status (*gemm)(hal_plugin_device *device, const hal_gemm_description *description,
                       hal_plugin_kernel **kernel, uint64_t *workspace_bytes);

    hal_status (*gemm_estimate)(hal_plugin_device *device, const hal_gemm_description *description,
                                double most_ns, double *nanoseconds);
} hal_extension_gemm;

#define HAL_EXTENSION_PEERS "hal.peers"
typedef struct hal_extension_peers {
    uint32_t size;
    uint32_t version;

    uint32_t (*device_can_access_peer)(hal_plugin_device *device, hal_plugin_device *other);
} hal_extension_peers;

#define HAL_EXTENSION_HOST_COPY "hal.host_copy"
typedef struct hal_extension_host_copy {
    uint32_t size;
    uint32_t version;

    void (*host_copy)(hal_plugin_device *device, void *target, const void *source, uint64_t bytes);
} hal_extension_host_copy;

#define HAL_EXTENSION_COLLECTIVES "hal.collectives"
typedef struct hal_extension_collectives {
    uint32_t size;
    uint32_t version;

    hal_status (*comm_backend)(hal_plugin_instance *instance, hal_plugin_comm_backend *backend);

    hal_status (*comm_id)(hal_plugin_instance *instance, hal_plugin_comm_id *id);

    hal_status (*comm_create)(hal_plugin_device *device, const hal_plugin_comm_id *id,
                              uint32_t rank, uint32_t count, hal_plugin_comm **comm);

    hal_status (*comm_poll)(hal_plugin_comm *comm);

    void (*comm_abort)(hal_plugin_comm *comm);

    void (*comm_destroy)(hal_plugin_comm *comm);
} hal_extension_collectives;

typedef struct hal_plugin {
    uint32_t size;
    uint32_t abi;
    const char *name;
    const char *version;
    const char *build_id;
    uint32_t ir_version;
    uint32_t reserved;

    void (*instance_destroy)(hal_plugin_instance *instance);

    hal_status (*enumerate)(hal_plugin_instance *instance, hal_device_info *infos,
                            uint32_t capacity, uint32_t *count);

    hal_status (*device_open)(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **device);

    void (*device_close)(hal_plugin_device *device);

    hal_status (*memory_allocate)(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);

    void (*memory_free)(hal_plugin_device *device, hal_plugin_memory *memory);

    hal_status (*memory_map)(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

    hal_status (*kernel_create)(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);

    void (*kernel_destroy)(hal_plugin_device *device, hal_plugin_kernel *kernel);

    hal_status (*queue_create)(hal_plugin_device *device, hal_plugin_queue **queue);

    void (*queue_destroy)(hal_plugin_device *device, hal_plugin_queue *queue);

    hal_status (*submit)(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

    hal_status (*wait)(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);

    const void *(*query_extension)(hal_plugin_instance *instance, const char *name, uint32_t major);
} hal_plugin;

typedef const hal_plugin *(*hal_plugin_create_function)(uint32_t host_abi, const hal_host *host,
                                                        hal_plugin_instance **instance);
#define HAL_PLUGIN_CREATE_SYMBOL "hal_plugin_create"

#define HAL_PLUGIN_HAS(table, entry)                                                              \
    ((uint64_t)((const char *)&(table)->entry - (const char *)(table)) + sizeof((table)->entry) <= \
         (table)->size &&                                                                         \
     (table)->entry != 0)

#ifdef __cplusplus
}
#endif
#endif
