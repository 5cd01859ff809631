/* What rows.c has planned for the kernel of a row program, which rows_kernel.c builds; and what
 * rows_sliced.c needs of rows.c. */
#ifndef OPS_SRC_KERNELS_ROWS_KERNEL_H
#define OPS_SRC_KERNELS_ROWS_KERNEL_H

#include "rows.h"

#include <stdbool.h>

#define OPS_ROW_NEVER 255u

/* Elements that work-items side by side store at once: whole sectors of memory where they begin at
 * a multiple of as many. */
#define OPS_ROW_PART 32u

/* What the kernel depends on, apart from program, bindings, layout, group and axis. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_row_form {
    uint32_t cached_length; /* elements of a row that shared memory has room for; 0: not cached */
    uint8_t chunks;         /* of a work-item, kept in registers; 0: loops over the row */
    uint8_t is_exact;       /* the row has a whole number of steps */
    uint8_t is_sliced;      /* groups take slices of the axis, along z of the grid */
    uint8_t rest_by_chunks; /* the last, partial step of a loop: for compilers of processors */
    uint8_t all_store;      /* all work-items store the row's values: a CPU needs no mask then */
    uint8_t last_unroll;    /* chunks of a step of the loop that stores elements */
    uint8_t ends_backwards; /* the last loop starts with what was read last */
    uint8_t stored;         /* 1 + value that the output's memory holds until the last loop; or 0 */
    uint8_t full_groups;    /* that a compute unit is to hold at once; 0: no wish */
    uint8_t parts;          /* 1 + the output whose memory the last loop stores by whole parts,
                               though its rows begin anywhere; or 0 */
    uint8_t reserved[2];
    uint8_t is_vector[OPS_MAX_VIEWS]; /* chunks of the view are aligned vectors */
    uint8_t is_cached[OPS_MAX_VIEWS]; /* an input whose elements shared memory keeps */
} ops_row_form;
OPS_KEY_STRUCTURES_END

/* The order of a kernel: phase p has a loop over the elements that computes the reductions whose
 * operands are ready; the last one stores elements. */
typedef struct ops_row_schedule {
    uint32_t last; /* phase whose loop stores elements */
    int stores_elements;
    uint8_t is_element[OPS_ROW_VALUES]; /* differs from element to element */
    uint8_t ready[OPS_ROW_VALUES];      /* first phase that can use the value */
    uint8_t first_need[OPS_ROW_VALUES]; /* first phase that uses it; OPS_ROW_NEVER */
    uint32_t live;                      /* elements' values kept from phase to phase, at most */
} ops_row_schedule;

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
    uint32_t slice_length;
    int64_t slice_stride, mean_length;
} ops_row_pass;

static inline bool ops_row_is_reduction(const ops_row_step *step)
{
    return step->kind <= OPS_FOLD_SOFTMAX;
}

static inline const ops_row_step *ops_row_step_of(const ops_row_program *program, uint32_t value)
{
    return &program->steps[value - program->input_count];
}

/* Computes of each value whether it differs from element to element, and the first phase that can
 * use it; `is_element` of inputs is given. */
void ops_row_order(const ops_row_program *program, uint8_t *is_element, uint8_t *ready);

/* Marks the values of elements that the loop of a phase computes, or loads; `stored` as in
 * ops_row_form. */
void ops_row_needs(const ops_row_program *program, const ops_row_schedule *schedule, uint32_t phase,
                   const ops_axis *axis, uint32_t stored, uint8_t *needed);

/* Records the dispatch of one kernel. With slices, outputs are elements (slice_stride 0) or partial
 * results: slice_stride is the distance from one slice's to the next, in elements. */
hal_status ops_row_kernel_record(ops_context *context, const ops_row_call *call,
                                 int64_t slice_stride);

/* Emits the kernel; `pass` is an ops_row_pass. Writes the scalars that the kernel declares. */
void ops_row_emit(hal_ir_builder *b, const void *pass);
void ops_row_put(const ops_row_pass *pass, ops_block *block);

#endif
