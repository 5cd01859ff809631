/* Shared by the files of the validate layer: the table of objects and findings. One lock guards
 * all; its holder calls nothing but the log. */
#ifndef HAL_SRC_LAYERS_VALIDATE_STATE_H
#define HAL_SRC_LAYERS_VALIDATE_STATE_H

#include "validate.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct hal_object hal_object;

/* Sorted ranges of bytes that do not touch. Begins as {0}. */
typedef struct hal_ranges {
    struct {
        uint64_t begin, end;
    } * items;
    uint32_t count, capacity;
} hal_ranges;

/* A use of a buffer, with which later ones on other queues need an order. */
typedef struct hal_access {
    const hal_object *queue;
    uint64_t epoch;
    uint64_t begin, end;
    uint64_t batch;   /* its value */
    uint32_t command; /* in the batch, from 1; 0: by the host */
    uint32_t access;  /* HAL_ACCESS_* */
    char what[64];    /* such as "kernel blur" */
} hal_access;

/* For each queue, the epoch up to which it has been waited for. Begins as {0}. */
typedef struct hal_vector_clock {
    struct {
        const hal_object *queue;
        uint64_t epoch;
    } * items;
    uint32_t count, capacity;
} hal_vector_clock;

/* A submitted batch and its clock. */
typedef struct hal_passed {
    uint64_t value, epoch;
    hal_vector_clock clock;
} hal_passed;

typedef struct hal_buffer_facts {
    hal_ranges written;
    hal_access *accesses;
    uint32_t access_count, access_capacity;
    bool mapped;
} hal_buffer_facts;

typedef struct hal_queue_facts {
    uint64_t epoch; /* of the present batch; grows with each, also if it fails */
    hal_vector_clock clock;
    hal_passed *passed; /* consecutive values */
    uint32_t passed_count;
    uint64_t forgotten; /* the last dropped value */
} hal_queue_facts;

/* Bytes that the bindings of a plugin's own product or attention need. */
typedef struct hal_sizes_facts {
    uint32_t count;
    uint64_t bytes[5 + HAL_GEMM_MAX_INPUTS];
} hal_sizes_facts;

struct hal_object {
    hal_object *next, *previous; /* among those that are not retired */
    const void *address;
    hal_object_kind kind;
    uint32_t references; /* the program's */
    uint32_t generation; /* of the process */
    bool retired;        /* released; in quarantine */
    uint64_t number;     /* of its kind, from 1 */
    uint64_t bytes;
    char device[48];
    char name[64];
    /* The call that is in flight on a queue or graph. */
    const char *call;
    uint32_t depth;
    pthread_t thread;
    union { /* by kind; null if memory was out: less is found */
        void *facts;
        hal_buffer_facts *buffer;
        hal_queue_facts *queue;
        hal_sizes_facts *sizes;
    } known;
};

/* ---- validate_table.c ---- */

extern pthread_mutex_t hal_validate_lock;

const char *hal_validate_kind_name(hal_object_kind kind);

/* Adds an object, in place of an older one of this address. Null if memory is out. Needs the lock,
 * as all of the table. */
hal_object *hal_validate_add(hal_object_kind kind, const void *address);

/* Removes a retired object from the list, not from the table. */
void hal_validate_unlink(hal_object *object);

/* Removes and frees the object of an address, if there is one. */
void hal_validate_forget(const void *address);

/* The object of a kind at an address; null if there is none. */
hal_object *hal_validate_find(hal_object_kind kind, const void *address);

/* The first object that is not retired; `next` has the others. */
hal_object *hal_validate_first(void);

enum { HAL_OBJECT_TEXT = 160 };

/* Describes an object, such as: buffer "weights". Returns `text`. */
const char *hal_validate_words(const hal_object *object, char text[HAL_OBJECT_TEXT]);

/* ---- validate_objects.c ---- */

/* Called once, when the layer is enabled: registers the report of leaks at exit. */
hal_status hal_validate_begin(void);

/* ---- validate_findings.c ---- */

/* A finding of a plugin. Threads: any. */
void hal_validate_plugin_finding(const char *message);

/* Reports a finding. The first one with this format at this place is counted and logged as
 * "validate: <place>: <message>". Sets the thread's message if `status` is an error. Returns
 * `status`. Threads: any, with or without the lock. */
hal_status hal_validate_found(hal_status status, const char *place, const char *format, ...)
    HAL_PRINTF(3, 4);

/* ---- validate_facts.c ---- */

void hal_ranges_add(hal_ranges *ranges, uint64_t begin, uint64_t end);
/* Whether any byte is in the ranges; whether all are, else *missing is the first that is not. */
bool hal_ranges_meet(const hal_ranges *ranges, uint64_t begin, uint64_t end);
bool hal_ranges_have(const hal_ranges *ranges, uint64_t begin, uint64_t end, uint64_t *missing);
void hal_ranges_free(hal_ranges *ranges);

/* Drops the first `count` submitted batches of a queue. */
void hal_validate_drop_passed(hal_queue_facts *queue, uint32_t count);
void hal_validate_free_queue(hal_queue_facts *facts);

/* ---- validate_order.c ---- */

/* Removes a queue from all clocks and uses. Needs the lock. */
void hal_validate_forget_queue(hal_object *queue);

#endif
