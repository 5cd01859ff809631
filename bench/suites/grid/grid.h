/* The cells of hal-bench grid: what is measured (cells.c) and what each operation computes
 * (operations.c). */
#ifndef BENCH_SUITES_GRID_GRID_H
#define BENCH_SUITES_GRID_GRID_H

#include "harness/bench.h"

enum { GRID_RANK = 4 };

typedef enum grid_kind {
    GRID_POINTWISE,
    GRID_REDUCTION,   /* one element for each row */
    GRID_ROWS,        /* as many elements as the row */
    GRID_GATHER,      /* rows of x at the indices y */
    GRID_CONCATENATE, /* x and y, one after the other along an axis */
    GRID_WRITE,       /* from ordinary memory of the host, and the wait for it */
    GRID_READ,        /* to ordinary memory of the host */
    GRID_UPLOAD,      /* from memory that is mapped for the host, and the wait for it */
    GRID_DOWNLOAD     /* to such memory */
} grid_kind;

/* A row is a line of elements along the cell's axis. */
typedef struct grid_operation {
    const char *name;
    grid_kind kind;
    int inputs;
    ops_array *(*apply)(ops_array *x, ops_array *y, int32_t axis); /* null for transfers */
    double (*point)(double x, double y);                           /* of POINTWISE */
    void (*row)(const double *x, int64_t count, double *results);  /* of REDUCTION and ROWS */
    double magnitude; /* results of rows of n elements are about n to this power */
} grid_operation;

/* Null for an unknown name. */
const grid_operation *grid_operation_find(const char *name);

/* The operations that random cells draw from. */
const grid_operation *grid_operation_at(uint64_t draw);

/* An array of `shape` in memory, whose axes are permuted: axis i of the operand is
 * axis order[i]. */
typedef struct grid_input {
    int rank;
    int64_t shape[GRID_RANK];
    int order[GRID_RANK];
} grid_input;

typedef struct grid_cell {
    char name[96]; /* without commas */
    const grid_operation *operation;
    hal_type type;
    grid_input x, y; /* y.rank is 0 without y */
    int axis;
    bool is_random;
} grid_cell;

/* The fixed cells, and random ones of the seed, without those that have more than `largest`
 * elements or whose name has none of the words of `filter` (with commas; null: all). Or `random`
 * random cells of up to `largest` elements, if that is not 0. Returns their number, or -1 without
 * memory; the caller frees *cells. */
int grid_cells_create(uint64_t seed, int random, uint64_t largest, const char *filter,
                      grid_cell **cells);

int64_t grid_input_count(const grid_input *input);
int64_t grid_input_length(const grid_input *input, int axis); /* of the operand */
hal_type grid_result_type(const grid_cell *cell);

/* The shape of the result; returns its rank. */
int grid_result_shape(const grid_cell *cell, int64_t shape[GRID_RANK]);

/* Bytes that must be moved: each input and output once, of a gather the rows that it reads. */
double grid_cell_bytes(const grid_cell *cell);

/* Prints the cells as JSON for pytorch/grid.py. */
void grid_cells_print(const grid_cell *cells, int count, uint64_t seed);

#endif
