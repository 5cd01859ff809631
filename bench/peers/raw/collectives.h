/* collectives.h: collectives by NCCL's own calls, for suites/collectives.c: all ranks in this
 * process, one on each device, in a unit of calls by one thread. */
#ifndef BENCH_PEERS_RAW_COLLECTIVES_H
#define BENCH_PEERS_RAW_COLLECTIVES_H

#include <hal/device.h>
#include <hal/comm.h>
#include <stddef.h>

typedef struct raw_collectives raw_collectives;

/* Communicators, streams and memory: `bytes` to send and as many to receive on each device. Null
 * with a message, as for devices of another plugin than cuda. The devices are open already, and
 * stay so. */
raw_collectives *raw_collectives_open(hal_device *const *devices, uint32_t ranks, uint64_t bytes,
                                      char *message, size_t message_bytes);
void raw_collectives_close(raw_collectives *raw); /* null is allowed */

/* What raw_collectives_run does from now on: a kind of hal_collective_kind, of sums of f32. */
void raw_collectives_choose(raw_collectives *raw, uint32_t kind, uint64_t count);

/* `user` is the raw_collectives: `calls` of them on all ranks, and the wait for all. */
void raw_collectives_run(void *user, int calls);

/* What failed first; null while nothing has. */
const char *raw_collectives_failure(const raw_collectives *raw);

#endif
