/* What is planned for the kernel of a row program. */
#ifndef OPS_SRC_KERNELS_ROWS_PASS_H
#define OPS_SRC_KERNELS_ROWS_PASS_H

#include "rows_program.h"
#include "tensor/bindings.h"

#include <stdbool.h>

/* Elements that work-items side by side store at once: whole sectors of memory where they begin at
 * a multiple of as many. */
#define OPS_ROW_PART 32u

/* How a general kernel folds: by loops; the same with the text of one element, where accumulators
 * take turns; or without a loop over barriers. */
enum { OPS_ROW_ANY_NONE, OPS_ROW_ANY_LOOPS, OPS_ROW_ANY_ROTATING, OPS_ROW_ANY_STRAIGHT };

/* What the kernel depends on, apart from program, bindings, layout, group and axis. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_row_form {
    uint32_t cached_length; /* elements of a row that shared memory has room for; 0: not cached */
    uint32_t stored_length; /* the same of the value `stored`; 0: the output's memory holds it */
    uint8_t chunks;         /* of a work-item, kept in registers; 0: loops over the row */
    uint8_t is_exact;       /* the row has a whole number of steps */
    uint8_t is_sliced;      /* groups take slices of the axis, along z of the grid */
    uint8_t rest_by_chunks; /* the last, partial step of a loop: for compilers of processors */
    uint8_t all_store;      /* all work-items store the row's values: a CPU needs no mask then */
    uint8_t last_unroll;    /* chunks of a step of the loop that stores elements */
    uint8_t ends_backwards; /* the last loop starts with what was read last */
    uint8_t stored;         /* 1 + value that memory holds until the last loop; or 0 */
    uint8_t full_groups;    /* that a compute unit is to hold at once; 0: no wish */
    uint8_t parts;          /* 1 + the output whose memory the last loop stores by whole parts,
                               though its rows begin anywhere; or 0 */
    uint8_t any;            /* a general kernel: ops_row_any are scalars; OPS_ROW_ANY_ */
    uint8_t takes_turns; /* of its chunks at the accumulators, or one has all: ops_row_any.turns */
    uint8_t is_vector[OPS_MAX_VIEWS]; /* chunks of the view are aligned vectors */
    uint8_t is_cached[OPS_MAX_VIEWS]; /* an input whose elements shared memory keeps */
} ops_row_form;
OPS_KEY_STRUCTURES_END

typedef struct ops_row_emitter ops_row_emitter;

/* The layout of a general kernel's work-items (rows_any.c). Names without a unit are logarithms. */
#define OPS_ROW_ANY_SCALARS 10u
typedef struct ops_row_any {
    uint32_t items; /* of a group, compiled in */
    uint32_t along, width;
    uint32_t q, p;      /* places of both coordinates in the number of a work-item */
    uint32_t turn;      /* elements of a work-item in a step of the special kernel */
    uint32_t block;     /* the same in a block of steps, not a logarithm */
    uint32_t pairs;     /* work-items of a subgroup along the axis */
    uint32_t halves;    /* those along the axis where there are no subgroups */
    uint32_t subgroups; /* along the axis, their number; 1 without */
    uint32_t turns;     /* accumulators less one, which chunks take in turns; not a logarithm */
} ops_row_any;

typedef struct ops_row_pass {
    const ops_row_program *program;
    ops_row_form form;
    ops_row_schedule schedule;
    uint8_t slots[OPS_MAX_VIEWS];
    ops_bindings bindings;
    ops_space space;
    ops_axis axis;
    ops_reduce_layout group;
    ops_layout layout;
    ops_row_any any;
    uint32_t slice_length;
    int64_t slice_stride, mean_length;
    ops_row_emitter *emitter; /* memory for ops_row_emit */
} ops_row_pass;

#endif
