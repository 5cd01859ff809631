/* Reads a device's memory independently of the program's queues, by copies on a queue that the
 * program does not see. Calls the plugin directly: no layer hears of it. Called by layers/dump.c.
 * */
#ifndef HAL_SRC_LAYERS_DUMP_READ_H
#define HAL_SRC_LAYERS_DUMP_READ_H

#include <hal/device.h>
#include <hal/plugin.h>

/* A range of memory and where its bytes go. */
typedef struct hal_dump_range {
    hal_plugin_memory *memory;
    uint64_t offset, bytes;
    uint8_t *to;
} hal_dump_range;

/* Of one device. Begins as {.device = device}. Threads: one at a time. */
typedef struct hal_dump_reader {
    hal_device *device;
    hal_plugin_queue *queue;
    hal_plugin_memory *staging;
    const uint8_t *view; /* of the staging memory */
    uint64_t staging_bytes;
    uint64_t value; /* the last one submitted */
} hal_dump_reader;

/* Reads ranges as they are once `after` has been reached; a null queue in it waits for nothing.
 * Errors: what the plugin answers. */
hal_status hal_dump_read(hal_dump_reader *reader, hal_plugin_wait after,
                         const hal_dump_range *ranges, uint32_t count);

/* Before the device is closed. */
void hal_dump_reader_end(hal_dump_reader *reader);

#endif
