/* The one device: its instruction set and its threads. Entries of the plugin's table. */
#ifndef PLUGINS_CPU_DEVICE_H
#define PLUGINS_CPU_DEVICE_H

#include "gemm/types.h"
#include "lanes/steps.h"
#include "threads/pool.h"
#include "threads/share.h"

#include <hal/plugin.h>

struct hal_plugin_device {
    const hal_host *host; /* of the instance; set by the kit */
    const cpu_lanes *lanes;
    enum cpu_gemm_isa gemm_isa;
    bool compiles;         /* kernels to machine code */
    uint64_t stream_bytes; /* of a dispatch's output, from which its stores bypass the caches */
    uint64_t background_ns; /* after which a batch runs on a thread of its queue; 0: never */
    cpu_thread_pool *pool; /* null with one thread, as `share` */
    cpu_share *share;
    uint32_t threads;
    uint32_t generation; /* of the process that opened it, see threads/process.h */
    _Atomic bool lost;   /* a batch failed after commands of it had run */
    /* Maxima over the kernels so far, which workers allocate. */
    _Atomic size_t arena_bytes;
    _Atomic uint32_t slot_count;
    _Atomic uint32_t memory_count;
};

hal_status cpu_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status cpu_device_open(uint32_t index, hal_plugin_device **device);
void cpu_device_close(hal_plugin_device *device);

#endif
