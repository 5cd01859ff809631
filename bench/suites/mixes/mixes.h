/* Random eager programs on small arrays, as in programs that nobody tuned. Shared by
 * program.c, which draws and prints them, and suites/mixes/suite.c, which runs them.
 *
 * A program has nine variables: four of [rows, columns], two rows [1, columns], two columns
 * [rows, 1] and one of [1, 1]. Each operation overwrites one variable. */
#ifndef BENCH_SUITES_MIXES_MIXES_H
#define BENCH_SUITES_MIXES_MIXES_H

#include <stdint.h>
#include <stdio.h>

#include "harness/bench.h"

enum { MIXES_VARIABLES = 9, MIXES_MOST_OPERATIONS = 128, MIXES_ELEMENTS = 4096 };

typedef enum mixes_kind { MIXES_UNARY, MIXES_BINARY, MIXES_REDUCE, MIXES_READ } mixes_kind;

typedef struct mixes_operation {
    mixes_kind kind;
    int function; /* ops_unary_function, ops_binary_function or ops_reduction */
    int target, x, y;
    int axis; /* of a reduction */
} mixes_operation;

typedef struct mixes_program {
    char name[64];
    int64_t shape[2];
    int count;
    uint64_t seed; /* of the variables: variable i has seed + i */
    mixes_operation operations[MIXES_MOST_OPERATIONS];
} mixes_program;

/* Whether a variable has the axis. */
bool mixes_has_axis(int variable, int axis);

/* Draws program number `number` of a seed, with at most `most` elements in an array. */
void mixes_draw(uint64_t seed, int number, uint64_t most, mixes_program *program);

/* Prints a program as an object of JSON. */
void mixes_print(const mixes_program *program);

#endif
