/* Queues: the object, its creation and end. */
#ifndef PLUGINS_METAL_QUEUE_H
#define PLUGINS_METAL_QUEUE_H

#include "device.h"

enum {
    METAL_IN_FLIGHT = 64, /* command buffers of a queue */
    METAL_POINTS = 1024   /* points of a queue whose times are kept */
};

/* The batch of a value, until its result was read. */
typedef struct metal_slot {
    uint64_t value;
    metal_commands *commands;
    bool fails; /* as hal.faults asks */
} metal_slot;

typedef struct metal_time {
    uint64_t value;
    double end; /* seconds on the device's clock */
} metal_time;

struct hal_plugin_queue {
    const hal_host *host; /* of the instance; set by the kit */
    hal_plugin_device *device;
    hal_plugin_queue *previous, *next; /* of the device */
    metal_stream *stream;
    metal_event *event; /* its value is that of the last batch that ended */
    metal_fence *fence; /* updated by each encoder, waited for by the next */
    bool fence_updated;
    bool fails_next;            /* the next batch does, as hal.faults asks */
    _Atomic uint64_t submitted; /* value */
    _Atomic uint64_t ended;     /* of the last batch whose result was read */
    _Atomic uint64_t reached;   /* the same while no batch of the device has failed */
    pthread_mutex_t lock;       /* of slots and times */
    metal_slot slots[METAL_IN_FLIGHT];
    metal_time times[METAL_POINTS];
};

hal_status metal_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
/* A queue without points, see metal_point_destroy_all. */
void metal_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);

#endif
