/* Adds checks to a kernel, for the sanitize layer: at each place that can go wrong the kernel
 * counts faults and describes the first one in a binding that is added to it.
 *
 * A check is a pass: functions that are called before and after each record is copied, one file
 * each, instrument_<check>.c. This frame copies the kernel and has what passes share. */
#ifndef HAL_SRC_IR_INSTRUMENT_H
#define HAL_SRC_IR_INSTRUMENT_H

#include "rewrite.h"

enum { /* sets of checks */
       HAL_CHECK_BOUNDS = 1,
       HAL_CHECK_INIT = 2,
       HAL_CHECK_RACE = 4,
       HAL_CHECK_MATH = 8,
       HAL_CHECK_NAN = 16
};

/* X(NAME, check, text): what can be wrong at a place. */
#define HAL_IR_FAULTS(X)                                                    \
    X(BOUNDS, BOUNDS, "access out of range")                                \
    X(SOURCE_BOUNDS, BOUNDS, "copy from out of range")                      \
    X(DIVISION, MATH, "division by zero")                                   \
    X(QUOTIENT, MATH, "quotient of the smallest integer and -1")            \
    X(SHIFT, MATH, "shift by the width or more")                            \
    X(CONVERSION, MATH, "conversion of a float out of the integer's range") \
    X(INDEX, MATH, "index arithmetic that overflows")                       \
    X(NAN, NAN, "NaN or infinity from finite operands")                     \
    X(STORE, NAN, "store of a finite number that becomes NaN or infinity")  \
    X(RACE, RACE, "race")                                                   \
    X(UNINITIALISED, INIT, "use of memory that was never written")

typedef enum hal_ir_fault {
#define HAL_IR_FAULT_(NAME, check, text) HAL_IR_FAULT_##NAME,
    HAL_IR_FAULTS(HAL_IR_FAULT_) HAL_IR_FAULT_COUNT
#undef HAL_IR_FAULT_
} hal_ir_fault;

/* A place: a record of the kernel and what can be wrong with it. */
typedef struct hal_ir_site {
    uint32_t record; /* of the kernel without checks */
    uint32_t memory; /* of it; NONE where the fault is not of a memory */
    hal_ir_fault fault;
} hal_ir_site;

/* Words of U32 in the binding of reports: HAL_IR_REPORT_WORDS for the kernel, of which the first
 * counts faults of all sites, then as many for each site. */
#define HAL_IR_REPORT_WORDS 16u

/* A site's words. All but the count are those of the first fault; a value of 8 bytes is two words,
 * the low one first. */
typedef struct hal_ir_report {
    uint32_t count;
    uint32_t reserved[3];
    uint32_t dispatch; /* HAL_IR_PARAMETER_DISPATCH */
    uint32_t group[3];
    uint32_t item;     /* in the group, counted x first, then y, then z */
    uint32_t index[2]; /* or HAL_IR_ORIGIN_*, of a NaN */
    uint32_t record;   /* that reports a NaN */
    uint32_t values[2][2];
} hal_ir_report;

typedef enum hal_ir_parameter_kind {
    HAL_IR_PARAMETER_DISPATCH, /* U32: names the dispatch */
    HAL_IR_PARAMETER_COUNT,    /* U32: elements of a binding, at most UINT32_MAX */
    HAL_IR_PARAMETER_COUNT_64, /* U64: elements of a binding */
    HAL_IR_PARAMETER_WRITTEN,  /* U32: elements that its shadow has, 0 without one */
    HAL_IR_PARAMETER_ACCESSED, /* the same */
    HAL_IR_PARAMETER_PLACE,    /* U32: its first word among those of ACCESSED */
    HAL_IR_PARAMETER_KINDS
} hal_ir_parameter_kind;

/* A shadow: a binding that says of each element of another binding
 *  WRITTEN: whether it was ever written: bytes of 1, as many as it has, in the same places;
 *  ACCESSED: who accessed it in this dispatch: words of U32, zeros before, HAL_IR_ACCESS_WORDS for
 *            an element. All bindings of a kernel share one, from HAL_IR_PARAMETER_PLACE on. */
typedef enum hal_ir_shadow_kind {
    HAL_IR_SHADOW_WRITTEN,
    HAL_IR_SHADOW_ACCESSED,
    HAL_IR_SHADOW_KINDS
} hal_ir_shadow_kind;

/* Words of an element of a type: its bytes where that is more, so that parts of a binding begin at
 * the same places. */
#define HAL_IR_ACCESS_WORDS(type) (hal_type_size(type) > 4 ? hal_type_size(type) / 4 : 1)

/* A word of ACCESSED, the first value of a race's report: who, and whether several read. */
#define HAL_IR_ACCESS_WHO_BITS 20u
#define HAL_IR_ACCESS_WHO(word) ((word) & ((1u << HAL_IR_ACCESS_WHO_BITS) - 1))
#define HAL_IR_ACCESS_BY_SEVERAL(word) ((word) >> 30 == 2)

/* The index of a NaN's report: which NaN or infinity it was, of which site (its number and 1), and
 * whether the values are those of another work-item. */
#define HAL_IR_ORIGIN_SITE UINT32_C(0x001fffff)
#define HAL_IR_ORIGIN_OF_OTHER UINT32_C(0x00200000)
#define HAL_IR_ORIGIN_NAN UINT32_C(0x00400000)
#define HAL_IR_ORIGIN_NEGATIVE UINT32_C(0x80000000)

typedef struct hal_ir_shadow {
    hal_ir_shadow_kind kind;
    uint32_t binding; /* of WRITTEN */
} hal_ir_shadow;

/* A scalar that a dispatch of the kernel with checks has after those of the kernel without. */
typedef struct hal_ir_parameter {
    hal_ir_parameter_kind kind;
    uint32_t binding;
    uint32_t offset; /* bytes into the block of scalars */
} hal_ir_parameter;

typedef struct hal_ir_instrumented {
    /* Bindings: those of the kernel without checks, the reports, the shadows. */
    hal_ir_kernel *kernel;
    hal_ir_site *sites;
    hal_ir_shadow shadows[HAL_IR_MAX_BINDINGS];
    uint32_t shadow_count;
    hal_ir_parameter *parameters;
    uint32_t site_count, parameter_count;
    uint32_t unchecked; /* shared arrays and bindings for whose checks no room is left */
} hal_ir_instrumented;

/* Adds checks to a verified kernel that is not legalised for `info` yet; neither is the result.
 * `checks`: HAL_CHECK_*. Where nothing is added `kernel` is null.
 * Free by hal_ir_instrumented_free, also after an error.
 * Errors: OUT_OF_MEMORY; INVALID_ARGUMENT without room for the scalars or the binding. */
hal_status hal_ir_instrument(const hal_ir_kernel *kernel, uint32_t checks,
                             const hal_device_info *info, hal_ir_instrumented *made);

void hal_ir_instrumented_free(hal_ir_instrumented *made);

/* The words of a fault. */
const char *hal_ir_fault_text(hal_ir_fault fault);

/* ---- For passes ---- */

enum { HAL_IR_PASSES = 5, HAL_IR_FACTS = 7, HAL_IR_MAX_PENDING = 16, HAL_IR_MAX_ENDS = 32 };

/* A check whose report is still to be written. */
typedef struct hal_ir_pending {
    uint32_t number;          /* of the site, and 1; 0: in `site` */
    hal_ir_value site;        /* the same */
    hal_ir_value condition;   /* that it is wrong; is_right: that it is right */
    hal_ir_value guard;       /* is_right: where that matters; NONE: always */
    hal_ir_value index, x, y; /* NONE: has none */
    uint32_t record;          /* of `from` that reports a NaN; else 0 */
    bool is_right;
} hal_ir_pending;

/* A check of an index whose range is known. */
typedef struct hal_ir_index_check {
    uint32_t site, record;
    hal_ir_value index; /* of `from` */
    hal_ir_value guard; /* NONE: always */
    hal_ir_value fits;  /* whether the range is one of the index's type */
} hal_ir_index_check;

/* What counts the elements that an index may name: those of a memory, or of a shadow. */
typedef enum hal_ir_count_kind {
    HAL_IR_COUNT_ELEMENTS,
    HAL_IR_COUNT_WRITTEN,
    HAL_IR_COUNT_ACCESSED
} hal_ir_count_kind;

/* What indices of a memory are compared with, see instrument_index.c. */
typedef struct hal_ir_index_end {
    hal_ir_count_kind kind;
    uint32_t memory; /* of `from` */
    bool is_wide;    /* of U64, else of U32 */
    uint64_t less, most;
    hal_ir_value value;
} hal_ir_index_end;

typedef struct hal_ir_instrumentation {
    hal_ir_rewrite rewrite;
    hal_ir_builder *b;         /* of the new kernel */
    const hal_ir_kernel *from; /* the kernel without checks */
    uint32_t index;            /* of the record of `from` */
    hal_ir_record record;      /* its copy with renamed operands, before it is appended */
    hal_ir_instrumented *made;
    uint32_t site_capacity, parameter_capacity;
    hal_ir_value parameter[HAL_IR_PARAMETER_KINDS][HAL_IR_MAX_BINDINGS]; /* NONE: not made */
    hal_ir_memory_id shadow[HAL_IR_SHADOW_KINDS][HAL_IR_MAX_BINDINGS];   /* NONE: has none */
    uint64_t shared_bytes;                                               /* of the new kernel */
    /* Whether the operands of the record mean something: false where one comes from a load whose
     * guard is false, as in work-items at the end of a grid. NONE: always. */
    hal_ir_value is_present;
    hal_ir_value *present; /* the same of each record's result */
    /* Reports of the present block. One branch for all of them keeps the block in one piece. */
    hal_ir_pending pending[HAL_IR_MAX_PENDING];
    uint32_t pending_count;
    bool has_room_for_loops; /* that write reports or clear words */
    hal_ir_index_end ends[HAL_IR_MAX_ENDS];
    uint32_t end_count;
    hal_ir_index_check index_checks[HAL_IR_MAX_PENDING]; /* of the present block */
    uint32_t index_check_count;
    uint8_t *used;   /* whether a record's result is used */
    uint8_t *chosen; /* whether a record's result is used, and only as what a SELECT chooses */
    /* For each pass HAL_IR_FACTS values for each record of `from`, and HAL_IR_MAX_SHARED + 4 more;
     * NONE first. */
    hal_ir_value *facts[HAL_IR_PASSES];
} hal_ir_instrumentation;

typedef struct hal_ir_pass {
    uint32_t check;
    /* Before the first record. May be null. */
    void (*begin)(hal_ir_instrumentation *s, hal_ir_value *facts);
    /* Before the record is appended: may change its guard, and may open blocks. May be null. */
    void (*before)(hal_ir_instrumentation *s, hal_ir_value *facts);
    /* After it; `value` is the result. Closes blocks. May be null. */
    void (*after)(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value);
    /* Before a block begins or ends. May be null. */
    void (*edge)(hal_ir_instrumentation *s, hal_ir_value *facts);
} hal_ir_pass;

extern const hal_ir_pass hal_ir_pass_bounds, hal_ir_pass_math, hal_ir_pass_nan, hal_ir_pass_race,
    hal_ir_pass_init;

/* The name of the dispatch, U32; never HAL_IR_NO_DISPATCH. */
#define HAL_IR_NO_DISPATCH UINT32_MAX
hal_ir_value hal_ir_dispatch_name(hal_ir_instrumentation *s);

/* False, which no compiler knows. */
hal_ir_value hal_ir_never(hal_ir_instrumentation *s);

/* The elements of memory `memory` of `from`, as U32 (at most UINT32_MAX) or U64. */
hal_ir_value hal_ir_element_count(hal_ir_instrumentation *s, uint32_t memory, hal_type type);

/* Adds an array of U32 with a cleared word for each element of each shared array; `what` is in its
 * name. words[i]: of the i-th shared array; unchanged, and counted as one that is not checked,
 * where no shared memory is left, or where clearing takes too many stores without a loop and the
 * kernel may have none. Returns whether there is any. */
bool hal_ir_shadow_shared(hal_ir_instrumentation *s, const char *what, hal_ir_memory_id *words);

/* Whether a memory has elements index + offset to index + offset + width - 1, or its shadow. */
hal_ir_value hal_ir_index_holds(hal_ir_instrumentation *s, hal_ir_count_kind kind, uint32_t memory,
                                hal_ir_value index, int64_t offset, uint32_t width);

/* Computes what indices are compared with. Called before the first record. */
void hal_ir_index_ends_make(hal_ir_instrumentation *s, uint32_t checks);

/* The elements of a shadow, U32. */
hal_ir_value hal_ir_shadow_count(hal_ir_instrumentation *s, hal_ir_shadow_kind kind,
                                 uint32_t memory);

/* Whether a binding has a shadow in this dispatch; the same for all work-items. */
hal_ir_value hal_ir_shadow_exists(hal_ir_instrumentation *s, hal_ir_shadow_kind kind,
                                  uint32_t memory);

/* The first word of a binding in ACCESSED, U32. */
hal_ir_value hal_ir_shadow_place(hal_ir_instrumentation *s, uint32_t memory);

/* `x` and, where it is not NONE, `y`. */
hal_ir_value hal_ir_and_maybe(hal_ir_builder *b, hal_ir_value x, hal_ir_value y);

/* The number of a new site of the present record. */
uint32_t hal_ir_site_add(hal_ir_instrumentation *s, hal_ir_fault fault, uint32_t memory);

/* Writes the reports of the present block. Called before a block begins or ends. */
void hal_ir_reports_end(hal_ir_instrumentation *s);

/* Counts a fault of a site where `wrong` is true; written by hal_ir_reports_end. */
void hal_ir_report_at(hal_ir_instrumentation *s, uint32_t site, hal_ir_value wrong,
                      hal_ir_value index, hal_ir_value x, hal_ir_value y);

/* The same of a site that a value names, by its number and 1; names the present record too. */
void hal_ir_report_of(hal_ir_instrumentation *s, hal_ir_value site, hal_ir_value wrong,
                      hal_ir_value index, hal_ir_value x, hal_ir_value y);

/* Counts a fault of the present record where `wrong` is true. `memory`: of `from`, or NONE. `index`
 * is an integer; `x` and `y` are scalars; each may be NONE. */
void hal_ir_report_fault(hal_ir_instrumentation *s, hal_ir_fault fault, hal_ir_value wrong,
                         uint32_t memory, hal_ir_value index, hal_ir_value x, hal_ir_value y);

/* Counts a fault of the present record where `guard`, which may be NONE, is true and `right` is
 * not. */
void hal_ir_report_unless(hal_ir_instrumentation *s, hal_ir_fault fault, hal_ir_value right,
                          hal_ir_value guard, uint32_t memory, hal_ir_value index, hal_ir_value x);

#endif
