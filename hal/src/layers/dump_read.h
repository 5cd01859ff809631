/* Reads a device's memory by copies on a private queue. Calls the plugin directly: no layer sees
 * the calls. */
#ifndef HAL_SRC_LAYERS_DUMP_READ_H
#define HAL_SRC_LAYERS_DUMP_READ_H

#include <hal/device.h>
#include <hal/plugin.h>

/* A range of memory and the destination of its bytes. */
typedef struct hal_dump_range {
    hal_plugin_memory *memory;
    uint64_t offset, bytes;
    uint8_t *to;
} hal_dump_range;

/* The reader of a device. Begins as {.device = device}. Threads: one at a time. */
typedef struct hal_dump_reader {
    hal_device *device;
    hal_plugin_queue *queue;
    hal_plugin_memory *staging;
    const uint8_t *view; /* of the staging memory */
    uint64_t staging_bytes;
    uint64_t value; /* the last one submitted */
} hal_dump_reader;

/* Reads ranges after `after` has been reached; its queue may be null. Errors: the plugin's. */
hal_status hal_dump_read(hal_dump_reader *reader, hal_plugin_wait after,
                         const hal_dump_range *ranges, uint32_t count);

/* Called before the device is closed. */
void hal_dump_reader_end(hal_dump_reader *reader);

#endif
