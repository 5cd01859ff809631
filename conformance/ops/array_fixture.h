/* array_fixture.h: what the cases of arrays share: leaves, and running one program over them in
 * several forms. */
#ifndef CONFORMANCE_OPS_ARRAY_FIXTURE_H
#define CONFORMANCE_OPS_ARRAY_FIXTURE_H

#include <ops/graph.h>

#include "case/case.h"
#include "math/number.h"
#include "math/random.h"

#define ARRAY_LEAVES 32u
#define ARRAY_VALUES 64u
#define ARRAY_VALUE_BYTES 4096u

/* What a program computed: the bits of each array that it noted. */
typedef struct array_values {
    uint32_t count;
    struct {
        hal_type type;
        size_t elements;
        uint8_t bits[ARRAY_VALUE_BYTES];
    } all[ARRAY_VALUES];
} array_values;

/* A run of a program. Its random numbers are the same in every run. */
typedef struct array_run {
    case_run *run;
    ops_array *leaves[ARRAY_LEAVES];
    uint32_t leaf_count;
    const void *parameters;
    random_state random;
    bool is_rehearsal; /* while a graph is recorded: nothing can be read */
    array_values *values;
} array_run;

/* Makes arrays of leaves and notes some. It releases arrays that it makes outside of scopes. */
typedef void (*array_program)(array_run *r);

/* Begins a scope of run->ops, which a report ends too, and ends it. */
void scope_begin(case_run *run);
void scope_end(case_run *run);

/* Begins to record a graph of run->ops, and ends the recording; the case owns the graph. */
void recording_begin(case_run *run);
ops_graph *recording_end(case_run *run, ops_array *const *inputs, uint32_t input_count,
                         ops_array *const *outputs, uint32_t output_count);

/* The array, which has to exist; otherwise reports `what` with hal's message. */
ops_array *array_check(case_run *run, ops_array *array, const char *what);

/* Passes an array to the case. */
ops_array *array_own(case_run *run, ops_array *array, const char *what);

/* Adds a leaf of random elements in [low, high), of integer types whole ones. Its elements are
 * copied to `bits` unless null. */
void array_add_leaf(array_run *r, hal_type type, uint32_t rank, const int64_t *shape, double low,
                    double high, void *bits);

/* Computes an array, and keeps its elements in the values of the run. */
void array_note(array_run *r, ops_array *array, const char *what);

/* Runs a program with fusion and without, and compares all that it notes: the same bits. It is
 * rehearsed before, so that also a device whose kernels take long to make uses the fused ones.
 * Returns the values, which the case owns. The program has to leave no arrays. */
const array_values *array_run_both_ways(array_run *r, array_program program);

#endif
