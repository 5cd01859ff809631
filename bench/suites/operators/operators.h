/* The cells of hal-bench operators: convolution, pooling, normalisation, resizing, order and
 * scattering, with the shapes of networks and random ones (cells.c), and how each is computed
 * (operations.c). */
#ifndef BENCH_SUITES_OPERATORS_OPERATORS_H
#define BENCH_SUITES_OPERATORS_OPERATORS_H

#include "harness/bench.h"

enum { OPERATOR_NUMBERS = 10, OPERATOR_INPUTS = 3, OPERATOR_TYPES = 3 };

struct operator_cell;

/* Numbers of a cell mean what `numbers` names, in that order; unused ones are 0. */
typedef struct operator_kind {
    const char *name;
    const char *numbers; /* words */
    bool (*create)(bench_state *bench, const struct operator_cell *cell,
                   ops_array *inputs[OPERATOR_INPUTS]);
    ops_array *(*apply)(const struct operator_cell *cell, ops_array *const *inputs);
    double (*bytes)(const struct operator_cell *cell); /* read and written once */
    double (*flops)(const struct operator_cell *cell); /* null: bound by memory */
} operator_kind;

typedef struct operator_cell {
    char name[96]; /* without commas */
    const operator_kind *kind;
    hal_type type;
    uint32_t precision; /* of convolutions */
    int64_t numbers[OPERATOR_NUMBERS];
} operator_cell;

/* Null for an unknown name. */
const operator_kind *operator_kind_find(const char *name);

/* The fixed cells, or --random random ones of the seed, whose names have a word of --filter; those
 * of convolutions once for each type of --type (f32, f16, bf16). Returns their number, or -1
 * without memory; the caller frees *cells. */
int operator_cells_create(const bench_options *options, uint64_t seed, operator_cell **cells);

/* Prints the cells as JSON for pytorch/operators.py. */
void operator_cells_print(const operator_cell *cells, int count, uint64_t seed);

#endif
