/* What the files of the validate layer share: the table of objects, and how a finding is told. All
 * of it is under one lock, which hal calls nothing else under but the log. */
#ifndef HAL_SRC_LAYERS_VALIDATE_STATE_H
#define HAL_SRC_LAYERS_VALIDATE_STATE_H

#include "validate.h"

#include <pthread.h>

typedef struct hal_object hal_object;

/* Bytes `begin` to `end`; sorted, and no two of them touch. Begins as {0}. */
typedef struct hal_ranges {
    struct {
        uint64_t begin, end;
    } *items;
    uint32_t count, capacity;
} hal_ranges;

/* A use of a buffer that later ones on other queues have to come after. */
typedef struct hal_access {
    const hal_object *queue;
    uint64_t epoch;
    uint64_t begin, end;
    uint64_t batch;   /* its value */
    uint32_t command; /* in the batch, from 1 on; 0: the host's own */
    uint32_t access;  /* HAL_ACCESS_* */
    char what[64];    /* such as "kernel blur" */
} hal_access;

/* Up to which epoch of each queue something comes after. Begins as {0}. */
typedef struct hal_vector_clock {
    struct {
        const hal_object *queue;
        uint64_t epoch;
    } *items;
    uint32_t count, capacity;
} hal_vector_clock;

/* What the batch of a queue that was handed over as `value` comes after. */
typedef struct hal_passed {
    uint64_t value, epoch;
    hal_vector_clock clock;
} hal_passed;

typedef struct hal_buffer_facts {
    hal_ranges written;
    hal_access *accesses;
    uint32_t access_count, access_capacity;
    int mapped;
} hal_buffer_facts;

typedef struct hal_queue_facts {
    uint64_t epoch; /* of the present batch: grows with each, also with those that fail */
    hal_vector_clock clock;
    hal_passed *passed; /* in the order of their values, each one more than the last */
    uint32_t passed_count;
    uint64_t forgotten; /* the last value that there was no room to keep */
} hal_queue_facts;

/* Bytes that the bindings of a matrix product need, from the first on. */
typedef struct hal_gemm_facts {
    uint32_t count;
    uint64_t bytes[4 + HAL_GEMM_MAX_INPUTS];
} hal_gemm_facts;

struct hal_object {
    hal_object *next, *previous; /* among those that are not retired */
    const void *address;
    uint32_t kind;
    uint32_t references; /* the program's */
    uint32_t generation; /* of the process */
    int retired;         /* hal has no use for it any more */
    uint64_t number;     /* of its kind, from 1 on */
    uint64_t bytes;
    char device[48];
    char name[64];
    /* The call that is in flight on a queue or graph. */
    const char *call;
    uint32_t depth;
    pthread_t thread;
    union { /* by kind; null when memory was out: then less is found */
        void *facts;
        hal_buffer_facts *buffer;
        hal_queue_facts *queue;
        hal_gemm_facts *gemm;
    } known;
};

/* ---- validate_table.c ---- */

extern pthread_mutex_t hal_validate_lock;

const char *hal_validate_kind_name(uint32_t kind);

/* A new object of this address; one that was there is freed. Null when memory is out. Needs the
 * lock, as all of the table. */
hal_object *hal_validate_add(uint32_t kind, const void *address);

/* Takes an object that is retired out of the list, but not out of the table. */
void hal_validate_unlink(hal_object *object);

/* Frees the object of an address, if there is one. */
void hal_validate_forget(const void *address);

/* An object by its address, or null of the kind. Needs the lock. */
hal_object *hal_validate_find(uint32_t kind, const void *address);

/* The first object that is not retired; the others follow by `next`. Needs the lock. */
hal_object *hal_validate_first(void);

enum { HAL_OBJECT_TEXT = 160 };

/* An object in words, such as: buffer "weights". Gives `text` back. */
const char *hal_validate_words(const hal_object *object, char text[HAL_OBJECT_TEXT]);

/* ---- validate_objects.c ---- */

/* Once, when the layer is switched on: objects that are left at exit are findings. */
hal_status hal_validate_begin(void);

/* ---- validate_findings.c ---- */

/* A finding of a plugin. Threads: any. */
void hal_validate_plugin_finding(const char *message);

/* A finding of a kind, which `format` tells, at a place: the first at that place is counted and
 * logged as "validate: <place>: <sentence>". Makes it the thread's message, and gives `status`
 * back. Threads: any, with the lock or without. */
hal_status hal_validate_found(hal_status status, const char *place, const char *format, ...)
    HAL_PRINTF(3, 4);

/* ---- validate_facts.c ---- */

void hal_ranges_add(hal_ranges *ranges, uint64_t begin, uint64_t end);
/* Whether any byte is in them; whether all are, else the first that is not, in *missing. */
int hal_ranges_meet(const hal_ranges *ranges, uint64_t begin, uint64_t end);
int hal_ranges_have(const hal_ranges *ranges, uint64_t begin, uint64_t end, uint64_t *missing);
void hal_ranges_free(hal_ranges *ranges);

/* Drops the first `count` of the batches that are kept of a queue. */
void hal_validate_drop_passed(hal_queue_facts *queue, uint32_t count);
void hal_validate_free_queue(hal_queue_facts *facts);

/* ---- validate_order.c ---- */

/* Nothing needs to come after a queue any more. Needs the lock. */
void hal_validate_forget_queue(hal_object *queue);

#endif
