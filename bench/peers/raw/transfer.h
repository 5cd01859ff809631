/* transfer.h: a copy between two devices by the driver's own call, for suites/transfer.c. */
#ifndef BENCH_PEERS_RAW_TRANSFER_H
#define BENCH_PEERS_RAW_TRANSFER_H

#include <hal/plugin.h>
#include <stddef.h>

typedef struct raw_transfer raw_transfer;

/* Memory on both devices of a plugin, and a stream on each. Null with a message, as for plugins
 * whose driver is not called here. The devices are open already, and stay so. */
raw_transfer *raw_transfer_open(const char *plugin, const hal_device_info *from,
                                const hal_device_info *to, uint64_t bytes, char *message,
                                size_t message_bytes);
void raw_transfer_close(raw_transfer *transfer); /* null is allowed */

/* measure_functions over a raw_transfer: on the source's stream, on the target's. */
void raw_transfer_run(void *user, int calls);
void raw_transfer_run_by_target(void *user, int calls);

/* The error, or null. */
const char *raw_transfer_failure(const raw_transfer *transfer);

#endif
