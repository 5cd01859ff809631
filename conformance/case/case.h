/* case.h: a case, the services of its run, and the list of all cases. All cases include it;
 * runner.c executes the list.
 *
 * A case is a function over a copy of its parameters. Its first report, by case_fail,
 * case_unsupported or a check below, ends it: they do not return. A case that returns has passed.
 * What it makes by the functions below is released at its end. */
#ifndef CONFORMANCE_CASE_CASE_H
#define CONFORMANCE_CASE_CASE_H

#include <hal/hal.h>
#include <ops/ops.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CASE_LEVEL_CORE = 1,
    CASE_LEVEL_OPS = 2,
    CASE_LEVEL_STRESS = 4,
    CASE_LEVEL_COMM = 8,
    CASE_LEVEL_PROCESS = 16,
    CASE_LEVEL_SANITIZE = 32 /* with HAL_SANITIZE, whose findings the cases themselves judge */
};

typedef enum case_status {
    CASE_PASSED = 0,
    CASE_FAILED = 1,
    CASE_UNSUPPORTED = 2,      /* the device does not claim it and said so */
    CASE_EXPECTED_FAILURE = 3, /* failed, as expect.txt says */
    CASE_UNEXPECTED_PASS = 4   /* passed, though expect.txt says otherwise: a failure */
} case_status;

/* ---- While a case runs ---- */

typedef struct case_run {
    const char *selection; /* that opens the device again */
    const char *name;      /* of the case */
    uint64_t seed;         /* of this case: from the program's seed and the case's name */
    hal_device *device;
    const hal_device_info *info;
    hal_queue *queue;
    ops_context *ops;
    case_status status;
    const char *lacking; /* what the case needs and the device does not claim; null: nothing */
    bool may_work;       /* though the device lacks it: hal may rewrite it */
    hal_status failure;  /* that case_ok reported */
    jmp_buf *end;        /* where a report continues */
    struct case_object *objects; /* to be released, the last one first */
    size_t object_count, object_capacity;
    char detail[1536];
} case_run;

typedef void (*case_function)(case_run *run, const void *parameters);

/* Calls a case's function, or a part of a case on a thread or in a callback, which has to return to
 * its caller. Objects remain until case_release. True when there was no report. */
bool case_execute(case_run *run, case_function function, const void *parameters);

/* Ends the case after a part of it, executed in a callback, reported; else does nothing. */
void case_end_reported(case_run *run);

/* Releases the objects that were made since there were `count`; all of them for 0. */
void case_release(case_run *run, size_t count);

/* Says that the case failed and why. */
_Noreturn void case_fail(case_run *run, const char *format, ...) HAL_PRINTF(2, 3);

/* Says that the device does not offer what the case needs. */
_Noreturn void case_unsupported(case_run *run, const char *format, ...) HAL_PRINTF(2, 3);

/* Declares that the case needs `what`. A device that does not claim it has to answer UNSUPPORTED to
 * some checked call of the case, which makes the case unsupported; if it never does, it failed. */
void case_claim(case_run *run, bool claimed, const char *what);

/* The same where hal may rewrite the kernel: it works, or some call answers UNSUPPORTED. */
void case_claim_or_rewrite(case_run *run, bool claimed, const char *what);

/* Whether a driver's compiler makes the device's kernels: it keeps something of each new one, and
 * may take long. */
bool case_has_compiler(const case_run *run);

/* case_claim for values, and for memory, of a type; hal may rewrite 16-bit
 * floats and BOOL as integers. */
void case_claim_arithmetic(case_run *run, hal_type type);
void case_claim_storage(case_run *run, hal_type type);

/* Any status but HAL_OK is reported with `what` and its message. */
void case_ok(case_run *run, hal_status status, const char *what);

/* The status has to be the wanted one and its message not empty; it has to contain `mention`
 * unless that is null. */
void case_expect(case_run *run, hal_status status, hal_status wanted, const char *mention,
                 const char *what);

#define case_check(run, condition, ...)    \
    do {                                   \
        if (!(condition)) {                \
            case_fail((run), __VA_ARGS__); \
        }                                  \
    } while (0)

/* ---- Objects of a case, released at its end ---- */

/* Passes an object to the case; null is allowed. */
void case_own(case_run *run, void (*release)(void *object), void *object);
void case_own_kernel(case_run *run, hal_kernel *kernel);
void case_own_builder(case_run *run, hal_ir_builder *builder);

/* Host memory of zeros. */
void *case_allocate(case_run *run, size_t count, size_t bytes);

hal_queue *case_queue(case_run *run, hal_device *device);
hal_buffer *case_buffer(case_run *run, hal_device *device, hal_memory_kind kind, uint64_t bytes);
hal_ir_builder *case_builder(case_run *run, const char *name);

/* The IR that a builder holds, and a kernel of it. */
hal_ir_kernel *case_ir(case_run *run, hal_ir_builder *builder);
hal_kernel *case_kernel(case_run *run, hal_ir_builder *builder);

/* ---- The list of cases ---- */

/* A cell of the printed table that a case fills: a row, such as "add" or "load x4 guarded", a type,
 * and a kind of memory. */
typedef enum case_memory { CASE_VALUES = 0, CASE_BINDING = 1, CASE_SHARED = 2 } case_memory;

typedef struct case_cover {
    char row[28];
    hal_type type;
    uint8_t memory;
} case_cover;

/* ---- Families: one function over sizes, so that a case that fails can be tried with smaller ones
 * and a name with other sizes can be run ---- */

/* A whole number in a case's parameters, not negative, that its name shows as "key=VALUE", or in
 * the n-th place of "key=1x2x3". An omitted value is the least one. */
typedef struct case_size {
    const char *key;
    uint32_t place;
    uint32_t offset, bytes; /* in the parameters; of 1 byte, which is a bool, 4 or 8 */
    int64_t least;          /* lower limit of shrinking */
} case_size;

#define CASE_SIZE(parameters, field, key, place, least)                                \
    {                                                                                  \
        key, place, offsetof(parameters, field), sizeof((parameters *)0)->field, least \
    }

enum { CASE_PARAMETER_BYTES = 256, CASE_NAME_BYTES = 256 };

typedef struct case_family {
    case_function function;
    size_t bytes; /* of the parameters, at most CASE_PARAMETER_BYTES */
    const case_size *sizes;
    size_t size_count;
    /* Writes the name: everything that the case depends on. */
    void (*print)(const void *parameters, uint64_t seed, char *name, size_t bytes);
    bool (*fits)(const void *parameters); /* null: all sizes from their least on go together */
    bool one_stream; /* the random numbers do not depend on the sizes: fewer steps are the first */
} case_family;

typedef struct case_entry {
    char *name;
    const char *group; /* cases of a group share a process */
    unsigned level;
    case_function function;
    const case_family *family; /* null: the case is of no family */
    void *parameters;
    case_cover *covers;
    size_t cover_count;
    char *faults; /* HAL_FAULT of the case's own process, where no device is open; null: none */
} case_entry;

typedef struct case_list {
    case_entry *entries;
    size_t count, capacity;
    const char *group; /* of the cases that are added now */
    unsigned level;
    uint64_t seed;
    bool out_of_memory;
} case_list;

/* Adds a case to the present group; `parameters` (may be null) are copied. */
void case_add(case_list *list, case_function function, const void *parameters, size_t bytes,
              const char *format, ...) HAL_PRINTF(5, 6);

/* Adds a case of a family to the present group; the parameters are copied. */
void case_add_member(case_list *list, const case_family *family, const void *parameters);

/* Adds the case of that name when a family of the list makes it with other sizes, in the group of
 * that family. False when none does. */
bool case_add_by_name(case_list *list, const char *name);

/* The seed of a case's random numbers, from the program's seed and the case's name. */
uint64_t case_seed_of(const case_entry *entry, uint64_t seed);

/* Reads and writes a size in parameters. */
int64_t case_size_get(const case_size *size, const void *parameters);
void case_size_set(const case_size *size, void *parameters, int64_t value);

/* Says what the case that was added last covers. */
void case_covers(case_list *list, hal_type type, case_memory memory, const char *format, ...)
    HAL_PRINTF(4, 5);

/* Runs the case that was added last in a separate process, in which hal's fault layer does what the
 * text says, as in HAL_FAULT; "": nothing. Its run has no device: the case opens what it needs. */
void case_has_faults(case_list *list, const char *format, ...) HAL_PRINTF(2, 3);

/* Adds all cases (cases.c); case_list_free frees them. */
void case_list_fill(case_list *list);
void case_list_free(case_list *list);

#endif
