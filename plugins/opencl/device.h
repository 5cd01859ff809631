/* Devices: the object, and the entries that list, open and close devices. */
#ifndef PLUGINS_OPENCL_DEVICE_H
#define PLUGINS_OPENCL_DEVICE_H

#include "card.h"
#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* Whether the device uses memory of the host in place, see external.c. */
typedef enum opencl_host_memory {
    OPENCL_HOST_UNKNOWN,
    OPENCL_HOST_IN_PLACE,
    OPENCL_HOST_COPIED
} opencl_host_memory;

struct hal_plugin_device {
    const hal_host *host; /* of the instance; set by the kit */
    const opencl_card *card;
    cl_context context;
    cl_command_queue transfers; /* for mapping and writing new memory */
    pid_t owner;                /* a child of fork cannot use the driver */
    pthread_mutex_t
        lock; /* of the list of kernels, of creating the buffers of shadowed memory, of the next */
    opencl_host_memory host_memory;
    hal_plugin_kernel *kernels;
    atomic_bool lost;        /* a command failed while it ran, or a submit after its first one */
    _Atomic uint64_t serial; /* the last one given to a memory or queue */
};

hal_status opencl_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status opencl_device_open(uint32_t index, hal_plugin_device **device);
void opencl_device_close(hal_plugin_device *device);
hal_status opencl_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk);
/* INVALID_STATE in a child of fork. */
hal_status opencl_device_check(const hal_plugin_device *device);
/* DEVICE_LOST once the device is. */
hal_status opencl_device_check_lost(const hal_plugin_device *device);

#endif
