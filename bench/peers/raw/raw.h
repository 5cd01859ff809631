/* The cost of hal's commands when a program calls the driver itself: one file raw_*.c per API,
 * which opens the same device once more and uses the fastest calls of the API. The suites measure
 * them in turns with hal's. */
#ifndef BENCH_PEERS_RAW_RAW_H
#define BENCH_PEERS_RAW_RAW_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/measure.h"

#define RAW_GRAPH_COMMANDS 1000

typedef struct raw_api raw_api;

/* The first member of every API's device structure. */
typedef struct raw_device {
    const raw_api *api;
    size_t read_bytes; /* that alone_read copies, up to RAW_READ_MOST */
    void *host;        /* ordinary memory of write and read */
    size_t host_bytes; /* that they copy */
    bool failed;       /* a call failed; nothing more is measured */
    char message[256];
} raw_device;

/* A measure_function takes the raw_device; null where the API has no such call. */
struct raw_api {
    const char *plugin;  /* of the devices */
    size_t device_bytes; /* of the API's device structure */
    /* Opens the device of a description; false with a message, and nothing to close. */
    bool (*open)(raw_device *device, const hal_device_info *info, char *message, size_t bytes);
    bool (*make)(raw_device *device);  /* kernels and memory; false after raw_fail */
    void (*close)(raw_device *device); /* also after a failed make; frees the structure */
    measure_function empty;            /* an empty kernel, many before a wait */
    measure_function bound;            /* the same with two buffers that are bound each time */
    measure_function step;  /* y[i] = 3 x[i] + i of RAW_STEP_WORDS words, each on the result of the
                               previous one; groups of RAW_STEP_GROUP */
    measure_function alone; /* the empty kernel with a wait after each */
    measure_function alone_read;       /* and read_bytes copied to the host before the wait */
    measure_function graph;            /* RAW_GRAPH_COMMANDS empty kernels, recorded once */
    measure_function allocate;         /* RAW_ALLOCATION bytes of device memory, and free */
    measure_function allocate_ordered; /* the same in the order of a stream */
    measure_function copy;             /* of the blocks of make_copy */
    measure_function write, read;      /* of make_copy's second block, from and to `host` */
    /* The result of `calls` steps on zeros. */
    bool (*step_words)(raw_device *device, int calls, uint32_t words[]);
    /* Allocates two blocks of `bytes` bytes, and checks a copy. */
    bool (*make_copy)(raw_device *device, uint64_t bytes);
};

#define RAW_ALLOCATION ((size_t)4 << 20)
#define RAW_READ_MOST ((size_t)65536)
enum { RAW_STEP_WORDS = 1024, RAW_STEP_GROUP = 128 };

/* Keeps the message of the first failure. Returns false. */
bool raw_fail(raw_device *device, const char *call, int code);

#endif
