/* Queues: the object, and the entries that create and destroy it. */
#ifndef PLUGINS_CUDA_QUEUE_H
#define PLUGINS_CUDA_QUEUE_H

#include "device.h"

enum { CUDA_EVENTS = 1024 }; /* batches of a queue whose events are kept */

typedef struct cuda_chain cuda_chain; /* chain/chain.c */
enum { CUDA_ANCHORS = 4, CUDA_SEEN_RUNS = 2048 };

/* Hashes of the dispatches at which the loops seen last were cut, as a ring. */
typedef struct cuda_loop_anchors {
    uint64_t hashes[CUDA_ANCHORS];
    uint32_t next;
} cuda_loop_anchors;

/* The chains of a queue, and how often runs were repeated. */
typedef struct cuda_chain_cache {
    cuda_chain *chains; /* a list */
    cuda_chain *last;   /* the one launched last, or null */
    uint64_t launches;
    uint64_t unloads;              /* of the device, before which no chain was made */
    cuda_chain *stale;             /* a list of those that were made before one */
    uint64_t stale_until;          /* the value from which none of them runs */
    uint64_t seen[CUDA_SEEN_RUNS]; /* hashes of runs; a newer run replaces an older one */
    uint32_t seen_again[CUDA_SEEN_RUNS];
} cuda_chain_cache;

/* The event of a batch. One without a time takes device and host a microsecond less each. */
typedef struct cuda_batch_event {
    cuda_event kinds[2]; /* untimed, timed; created when needed */
    _Atomic bool is_timed;
} cuda_batch_event;

#define CUDA_CHAIN_MAX 1024u /* dispatches of a chain */

struct hal_plugin_queue {
    const hal_host *host; /* of the instance; set by the kit */
    hal_plugin_device *device;
    cuda_stream stream;
    bool is_imported;   /* the stream is another owner's */
    cuda_address parts; /* of matrix products, see gemm/end/partial.h; 0 until a batch needs them */
    cuda_address flags; /* of strict F32 products, see gemm/fma.h; 0 where the device has none */
    volatile uint64_t *counter; /* the stream writes the reached value there; null: events only */
    cuda_address counter_address;
    _Atomic uint64_t reached;   /* a value that is known to be reached */
    _Atomic uint64_t submitted; /* the last value */
    _Atomic uint64_t counted;   /* the last value that the stream writes to the counter */
    _Atomic uint64_t deferred;  /* of a collective that has not begun and has no point; or 0 */
    _Atomic bool awaited;       /* the last batch was waited for, or there is none */
    pthread_mutex_t point_lock; /* of the counter's writes and `submitted` */
    bool fails_next;            /* the next batch does, as hal.faults asks */
    cuda_batch_event events[CUDA_EVENTS]; /* of value v at v modulo CUDA_EVENTS */
    cuda_chain_cache chains;
    cuda_loop_anchors anchors;
    uint64_t run_hashes[CUDA_CHAIN_MAX]; /* of the dispatches of the run that is submitted */
};

/* With a stream of another owner, which stays, or null: one of the plugin. */
hal_status cuda_queue_create(hal_plugin_device *device, cuda_stream imported,
                             hal_plugin_queue **queue);
void cuda_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);

#endif
