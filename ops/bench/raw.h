/* raw.h: what hal's commands cost when a program makes the driver's calls by itself: for each API a
 * file raw_*.c, which opens the same device once more and works in the shortest way that the API
 * has. The suites let them take turns with hal's. */
#ifndef OPS_BENCH_RAW_H
#define OPS_BENCH_RAW_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "measure.h"

#define RAW_GRAPH_COMMANDS 1000

typedef struct raw_api raw_api;

/* The beginning of every API's own structure. */
typedef struct raw_device {
    const raw_api *api;
    size_t read_bytes; /* what alone_read copies, up to RAW_READ_MOST */
    bool failed;       /* a call did; nothing more is measured */
    char message[256];
} raw_device;

/* A measure_function takes the raw_device; null where the API has nothing of the kind. */
struct raw_api {
    const char *plugin;  /* whose devices these are */
    size_t device_bytes; /* of the API's own structure */
    /* Finds the device of that description; false with a sentence, and nothing to close. */
    bool (*open)(raw_device *device, const hal_device_info *info, char *message, size_t bytes);
    bool (*make)(raw_device *device); /* what the measurements need; false after raw_fail */
    void (*close)(raw_device *device); /* also after a make that was false; frees the structure */
    measure_function empty; /* an empty kernel, many before a wait */
    measure_function bound; /* the same with two buffers that are told anew each time */
    measure_function step;  /* y[i] = 3 x[i] + i of RAW_STEP_WORDS words, each on what the one
                               before gave; groups of RAW_STEP_GROUP */
    measure_function alone; /* the empty kernel with a wait after each */
    measure_function alone_read; /* and read_bytes copied to the host before the wait */
    measure_function graph; /* RAW_GRAPH_COMMANDS empty kernels that are kept */
    measure_function allocate;         /* RAW_ALLOCATION bytes of device memory, and free */
    measure_function allocate_ordered; /* the same in the order of a stream */
    measure_function copy;             /* of what make_copy made */
    /* The words that `calls` steps make of zeros. */
    bool (*step_words)(raw_device *device, int calls, uint32_t words[]);
    /* Two blocks of `bytes` bytes; a copy is made and checked. */
    bool (*make_copy)(raw_device *device, uint64_t bytes);
};

#define RAW_ALLOCATION ((size_t)4 << 20)
#define RAW_READ_MOST ((size_t)65536)
enum { RAW_STEP_WORDS = 1024, RAW_STEP_GROUP = 128 };

/* Those of this build; which ones it has is known to raw.c alone. */
extern const raw_api raw_opencl, raw_vulkan, raw_cuda;

/* The API of a plugin's devices; null if there is none or the build lacks its headers. */
const raw_api *raw_find(const char *plugin);

/* The device of that description, open and made; null with a sentence. */
raw_device *raw_open(const raw_api *api, const hal_device_info *info, char *message, size_t bytes);

/* Keeps the first failure's sentence. Always false. */
bool raw_fail(raw_device *device, const char *call, int code);

#endif
