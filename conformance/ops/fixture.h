/* fixture.h: what the cases of the op library share: operands with a layout in memory, canaries
 * around and between their elements, and their elements on the host in row-major order. */
#ifndef CONFORMANCE_OPS_FIXTURE_H
#define CONFORMANCE_OPS_FIXTURE_H

#include "case/case.h"
#include "math/number.h"
#include "math/random.h"
#include "case/redzone.h"
#include "case/reference.h"

typedef enum operand_layout {
    LAYOUT_PLAIN,     /* row-major, without gaps */
    LAYOUT_OFFSET,    /* the same, one element after an aligned address */
    LAYOUT_PERMUTED,  /* the first axis fastest */
    LAYOUT_STRIDED,   /* every second element */
    LAYOUT_REVERSED,  /* the last axis backwards */
    LAYOUT_BROADCAST, /* the first axis has length 1 and is stretched; inputs only */
    LAYOUT_COUNT
} operand_layout;

const char *layout_name(operand_layout layout);

typedef struct operand {
    hal_type type;
    red_zone zone;
    ops_tensor tensor;
    size_t count;      /* logical elements */
    uint8_t *elements; /* their bits, row-major */
} operand;

/* An operand of zeros on the host; nothing is on the device yet. Released at the case's end. */
operand operand_create(case_run *run, hal_type type, uint32_t rank, const int64_t *shape,
                       operand_layout layout);

/* Fills with random numbers in [low, high); of integer types with whole ones. */
void operand_fill(operand *filled, random_state *random, double low, double high);

/* Writes the elements to the device; or poison, for an output. */
void operand_upload(case_run *run, operand *uploaded);
void operand_poison(case_run *run, operand *poisoned);

/* Reads the elements back to `elements` of the host; canaries around and in the gaps are
 * checked. */
void operand_download(case_run *run, operand *downloaded, const char *what);

/* Compare the elements of the host; a difference is reported with `what`, see reference.h. */
void operand_check_bits(case_run *run, const operand *o, const void *expected, bool any_nan,
                        const char *what);
void operand_check_bounds(case_run *run, const operand *o, const long double *expected,
                          const double *bounds, const char *what);

/* A tensor without canaries and an expression, released at the case's end. expression_finish
 * consumes the builder. */
ops_tensor case_tensor(case_run *run, hal_type type, uint32_t rank, const int64_t *shape);
void case_own_tensor(case_run *run, ops_tensor tensor);
hal_ir_builder *expression_begin(case_run *run);
ops_expression *expression_finish(case_run *run, hal_ir_builder *builder);

/* An epilogue of products of F32: the value + the first further input. */
const ops_expression *expression_add_input(case_run *run);

/* Value of a logical element. */
static inline double operand_get(const operand *o, size_t index)
{
    return number_get(o->type, o->elements, index);
}

/* Whether the device may flush the value to zero: it does not claim to keep denormals. */
bool ops_may_flush(const case_run *run, hal_type type, long double value);

/* ops_array_read. An array that calls did not make is UNSUPPORTED where the device lacks what the
 * case claims. */
hal_status read_claimed(const case_run *run, ops_array *array, uint64_t bytes, void *elements);

#endif
