/* What the classes of the stand-in share: violations, memory, commands and the order of commands.
 * The C files of this folder use no Objective-C. */
#ifndef TESTS_METAL_STANDIN_H
#define TESTS_METAL_STANDIN_H

#include "msl/msl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* -- control.c: variables of the environment, and what is said about violations. -- */
/* A violation: printed, and with METAL_STANDIN_STRICT the process aborts. Writes the sentence to
 * message unless it is null. */
void standin_violation(char message[256], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The value of a variable as a number; without it, the other. */
uint64_t standin_setting(const char *name, uint64_t otherwise);
bool standin_is_discrete(void);
/* Seconds of a clock that only goes forwards. */
double standin_now(void);

/* -- memory.c -- */
/* Memory of a buffer, between pages that no access may meet. It outlives its object for as long as
 * commands name it, so that a use after release is found. */
typedef struct standin_memory {
    atomic_uint references;
    atomic_bool released; /* its object is gone */
    unsigned char *bytes, *mapping;
    size_t length, mapped;
    uint64_t options;
    struct standin_shadow *shadow; /* one for each 4 bytes, when accesses are watched */
    struct standin_memory *next;   /* in the list of all */
    bool is_adopted;               /* `mapping` is the program's */
} standin_memory;

/* Null when the device has no such memory. */
standin_memory *standin_memory_create(size_t length, uint64_t options);
/* Pages of the program, which stay as they are. */
standin_memory *standin_memory_adopt(void *pages, size_t length, uint64_t options);
void standin_memory_ref(standin_memory *memory);
void standin_memory_unref(standin_memory *memory);
/* No access is allowed any more. */
void standin_memory_release(standin_memory *memory);
/* Memory with an address, by its list; null: none. */
standin_memory *standin_memory_find(uint64_t address);
size_t standin_memory_total(void);

/* -- program.c -- */
typedef struct standin_library {
    atomic_uint references;
    msl_library *compiled;
} standin_library;

/* A pipeline, for commands. */
typedef struct standin_program {
    atomic_uint references;
    atomic_bool released;
    standin_library *library;
    const msl_function *function;
    uint32_t max_threads;
    bool full_simdgroups;
} standin_program;

void standin_library_ref(standin_library *library);
void standin_library_unref(standin_library *library);
void standin_program_ref(standin_program *program);
void standin_program_unref(standin_program *program);

/* -- order.c: which encoders are known to have run before others. -- */
enum { STANDIN_WINDOW = 4096 };

/* Encoders of the last STANDIN_WINDOW that have finished, by their number modulo the window. */
typedef struct standin_order {
    uint64_t bits[STANDIN_WINDOW / 64];
    uint64_t newest;
} standin_order;

uint64_t standin_order_next(void);
void standin_order_add(standin_order *order, uint64_t encoder);
void standin_order_join(standin_order *order, const standin_order *other);
bool standin_order_has(const standin_order *order, uint64_t encoder);

/* -- commands -- */
typedef enum standin_kind {
    STANDIN_BEGIN, /* of an encoder */
    STANDIN_END,
    STANDIN_DISPATCH,
    STANDIN_COPY,
    STANDIN_FILL,
    STANDIN_BARRIER,
    STANDIN_WAIT_FENCE,
    STANDIN_UPDATE_FENCE,
    STANDIN_WAIT_EVENT,
    STANDIN_SIGNAL_EVENT
} standin_kind;

/* Place of a buffer; or bytes that the command owns. */
typedef struct standin_place {
    standin_memory *memory;
    uint64_t offset;
    unsigned char *bytes;
} standin_place;

typedef struct standin_command {
    standin_kind kind;
    bool concurrent;                       /* BEGIN */
    standin_program *program;              /* DISPATCH */
    standin_place *places;                 /* DISPATCH: one for each parameter of the function */
    uint32_t groups[3], group_size[3], threads[3], threadgroup_bytes[MSL_BUFFERS];
    standin_place from, to;                /* COPY, FILL */
    uint64_t size, value;                  /* COPY, FILL; events */
    void *object;                          /* fence or event, retained */
} standin_command;

typedef struct standin_commands {
    standin_command *list;
    uint32_t count, capacity;
} standin_commands;

standin_command *standin_commands_add(standin_commands *commands, standin_kind kind);
/* Frees all but the objects of fences and events. */
void standin_commands_clear(standin_commands *commands);

/* -- run.c: the commands of one encoder. -- */
typedef struct standin_run {
    uint64_t encoder;     /* number */
    standin_order before; /* encoders that finished before this one, as the commands say */
    uint32_t interval, command;
    char message[256];
    uint64_t code; /* of an MTLCommandBufferError */
    bool watches;
} standin_run;

/* Runs commands from BEGIN to END. Returns false with a message and a code after a fault. */
bool standin_run_encoder(standin_run *run, const standin_commands *commands, uint32_t first,
                         uint32_t last);
/* One access of the command that runs; false after a violation, whose sentence is in run. */
bool standin_watch(standin_run *run, standin_memory *memory, uint64_t offset, uint64_t size,
                   bool writes, bool is_atomic);

#endif
