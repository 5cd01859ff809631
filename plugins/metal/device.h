/* Devices: the object, and the entries that list, open and close devices. */
#ifndef PLUGINS_METAL_DEVICE_H
#define PLUGINS_METAL_DEVICE_H

#include "card.h"
#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* Kernels for fills and copies that blit encoders do not take: bytes, and words of 4 bytes. */
typedef enum metal_transfer {
    METAL_FILL_BYTES = 0,
    METAL_FILL_WORDS = 1,
    METAL_COPY_BYTES = 2,
    METAL_COPY_WORDS = 3,
    METAL_TRANSFER_COUNT = 4
} metal_transfer;

struct hal_plugin_device {
    const hal_host *host; /* of the instance; set by the kit */
    const metal_card *card;
    pid_t owner;          /* a child of fork cannot use Metal */
    metal_buffer *unused; /* what bindings of no bytes are set to */
    pthread_mutex_t lock; /* of the list of queues, and of creating transfers */
    hal_plugin_queue *queues;
    _Atomic(metal_pipeline *) transfers[METAL_TRANSFER_COUNT];
    _Atomic bool lost;
};

hal_status metal_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status metal_device_open(uint32_t index, hal_plugin_device **device);
void metal_device_close(hal_plugin_device *device);
hal_status metal_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk);
/* INVALID_STATE in a child of fork; DEVICE_LOST after commands have failed. */
hal_status metal_device_check(const hal_plugin_device *device);
bool metal_device_is_after_fork(const hal_plugin_device *device);

#endif
