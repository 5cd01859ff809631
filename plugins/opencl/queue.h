/* Queues: the object, its creation and end. */
#ifndef PLUGINS_OPENCL_QUEUE_H
#define PLUGINS_OPENCL_QUEUE_H

#include "device.h"

enum { OPENCL_MARKS = 1024 }; /* of a queue that are kept */

/* The end of a batch, and with it of those before: the event of its last command, or a marker. */
typedef struct opencl_mark {
    uint64_t value;
    uint64_t number; /* of all marks of the queue, from 1 on */
    cl_event event;
} opencl_mark;

struct hal_plugin_queue {
    const hal_host *host; /* of the instance; set by the kit */
    hal_plugin_device *device;
    cl_command_queue commands;
    uint64_t serial;
    _Atomic uint64_t submitted, reached; /* values */
    pthread_mutex_t lock;                /* of the marks */
    opencl_mark marks[OPENCL_MARKS];     /* a ring; values grow */
    uint32_t mark_first, mark_count;
    _Atomic uint64_t marks_made, marks_flushed; /* numbers of the last ones */
    atomic_bool marks_all; /* each batch is a mark, as waits are by event or inside the queue */
    bool has_run;          /* the driver has taken a command of the batch */
    bool unmarked_copies;  /* of the last batch */
    uint32_t unmarked;     /* commands since the last batch with an event */
    bool fails_next;       /* the next batch does, as hal.faults asks */
    _Atomic uint64_t fails_from; /* that batch; 0: none */
    cl_mem arguments;            /* the blocks of a batch that are in a buffer */
    uint64_t argument_capacity;
};

/* On a queue of the driver, which is retained, or with null on a new one. */
hal_status opencl_queue_make(hal_plugin_device *device, cl_command_queue imported,
                             hal_plugin_queue **queue);
/* A queue without marks, see opencl_point_destroy_all. */
void opencl_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);

#endif
