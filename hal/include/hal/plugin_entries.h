/* The tables of plugin.h as lists: for hal, the plugin kit and plugins around other plugins, which
 * treat all entries alike. plugin.h includes it. */
#ifndef HAL_PLUGIN_ENTRIES_H
#define HAL_PLUGIN_ENTRIES_H

/* X(entry): what a main table has to have. */
#define HAL_REQUIRED_ENTRIES(X) \
    X(instance_destroy)         \
    X(enumerate)                \
    X(device_open)              \
    X(device_close)             \
    X(memory_allocate)          \
    X(memory_free)              \
    X(memory_map)               \
    X(kernel_create)            \
    X(kernel_destroy)           \
    X(queue_create)             \
    X(queue_destroy)            \
    X(submit)                   \
    X(wait)

/* X(extension, name, needed): each extension, the name of its hal_extension_*, and the entry
 * without which a plugin has none of it. */
#define HAL_EXTENSIONS(X)                                           \
    X(memory_info, HAL_EXTENSION_MEMORY_INFO, memory_info)          \
    X(coherence, HAL_EXTENSION_COHERENCE, memory_flush)             \
    X(timing, HAL_EXTENSION_TIMING, queue_elapsed)                  \
    X(native, HAL_EXTENSION_NATIVE, kernel_create_native)           \
    X(gemm, HAL_EXTENSION_GEMM, gemm)                               \
    X(attention, HAL_EXTENSION_ATTENTION, attention)                \
    X(peers, HAL_EXTENSION_PEERS, device_can_access_peer)           \
    X(host_copy, HAL_EXTENSION_HOST_COPY, host_copy)                \
    X(faults, HAL_EXTENSION_FAULTS, queue_fail_next)                \
    X(external, HAL_EXTENSION_EXTERNAL, external_info)              \
    X(handles, HAL_EXTENSION_HANDLES, device_handle)                \
    X(native_queues, HAL_EXTENSION_NATIVE_QUEUES, queue_import)     \
    X(reports, HAL_EXTENSION_REPORTS, kernel_report)                \
    X(quirks, HAL_EXTENSION_QUIRKS, device_quirk)                   \
    X(virtual_memory, HAL_EXTENSION_VIRTUAL_MEMORY, memory_reserve) \
    X(fences, HAL_EXTENSION_FENCES, fence_import)                   \
    X(collectives, HAL_EXTENSION_COLLECTIVES, comm_create)

/* X(extension, entry): what each extension consists of. */
#define HAL_EXTENSION_ENTRIES(X)           \
    X(memory_info, memory_info)            \
    X(coherence, memory_flush)             \
    X(coherence, memory_invalidate)        \
    X(timing, queue_elapsed)               \
    X(native, formats)                     \
    X(native, kernel_create_native)        \
    X(gemm, gemm)                          \
    X(gemm, gemm_estimate)                 \
    X(gemm, gemm_workspace)                \
    X(attention, attention)                \
    X(peers, device_can_access_peer)       \
    X(host_copy, host_copy)                \
    X(faults, queue_fail_next)             \
    X(handles, device_handle)              \
    X(handles, queue_handle)               \
    X(handles, kernel_handle)              \
    X(native_queues, queue_import)         \
    X(native_queues, queue_wait_native)    \
    X(native_queues, queue_block_native)   \
    X(virtual_memory, part_bytes)          \
    X(virtual_memory, memory_reserve)      \
    X(virtual_memory, memory_commit)       \
    X(virtual_memory, memory_decommit)     \
    X(virtual_memory, memory_protect)      \
    X(reports, kernel_report)              \
    X(reports, clocks_read)                \
    X(reports, queue_time)                 \
    X(quirks, device_quirk)                \
    X(fences, fence_info)                  \
    X(fences, fence_import)                \
    X(fences, fence_create)                \
    X(fences, fence_export)                \
    X(fences, fence_destroy)               \
    X(fences, queue_signal_fence)          \
    X(external, external_info)             \
    X(external, memory_import)             \
    X(external, memory_export)             \
    X(external, memory_allocate_shareable) \
    X(collectives, comm_backend)           \
    X(collectives, comm_id)                \
    X(collectives, comm_create)            \
    X(collectives, comm_poll)              \
    X(collectives, comm_abort)             \
    X(collectives, comm_destroy)

#endif
