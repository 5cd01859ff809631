/* What direct.c and its estimate know of a convolution before it is recorded: phases of results,
 * the planes that they read, and what a work-item computes. */
#ifndef OPS_SRC_KERNELS_DIRECT_PHASE_H
#define OPS_SRC_KERNELS_DIRECT_PHASE_H

#include "direct_form.h"
#include "direct_task.h"
#include "planes.h"

/* The results of one phase, whose windows have the same elements: the first one along each axis,
 * how far apart and how many they are, and the elements of the window: the first one, the next
 * ones, how many, and their places in the padded image. */
typedef struct ops_direct_phase {
    int64_t first[OPS_MAX_SPATIAL], step[OPS_MAX_SPATIAL], places[OPS_MAX_SPATIAL];
    int64_t tap[OPS_MAX_SPATIAL], tap_step[OPS_MAX_SPATIAL], taps[OPS_MAX_SPATIAL];
    int64_t position[OPS_MAX_SPATIAL], apart[OPS_MAX_SPATIAL], stride[OPS_MAX_SPATIAL];
} ops_direct_phase;

/* Whether there are few phases, each of which takes a kernel: a step of a transposed convolution
 * has as many as it is long, as far as there are results. */
#define OPS_DIRECT_PHASES 64
bool ops_direct_has_few_phases(const ops_direct_form *form, const ops_direct_lengths *lengths);

/* Calls `use` with each phase: one, or of a transposed convolution one for each combination of
 * coordinates modulo the steps. */
hal_status ops_direct_each_phase(const ops_direct_form *form, const ops_direct_lengths *lengths,
                                 void *user,
                                 hal_status (*use)(void *user, const ops_direct_phase *phase));

/* Whether a phase has an element of the window. */
bool ops_direct_has_taps(const ops_direct_phase *phase, uint32_t rank);

/* The planes that all phases read, without what of x none reads; whether they have zeros. */
bool ops_direct_planes(const ops_direct_form *form, const ops_direct_lengths *lengths,
                       ops_planes *planes);

/* The axis along which a work-item has several lines, and the rows of groups are. */
static inline uint32_t ops_direct_line_axis(uint32_t rank)
{
    return rank > 1 ? rank - 2 : 0;
}

/* Results of a work-item, of which whole blocks are equal; 0: the window has too many elements.
 * `step`: of the planes, along the first axis. */
uint32_t ops_direct_results(const ops_direct_phase *phase, uint32_t rank, int64_t outputs,
                            int64_t step);

/* What a work-item and a group compute. */
void ops_direct_shape(const ops_direct_phase *phase, uint32_t rank, uint32_t results, int64_t step,
                      ops_direct_key *key);

/* The same in the general kernel of a class, for `outputs` results. */
void ops_direct_shape_general(const ops_direct_phase *phase, uint32_t rank, uint32_t outputs,
                              ops_direct_key *key);

/* Groups of the kernel's third dimension for a group of channels, at most. */
static inline int64_t ops_direct_grid(const ops_direct_form *form,
                                      const ops_direct_lengths *lengths)
{
    return lengths->outputs * (form->rank > 2 ? lengths->y[0] : 1);
}

/* Moves an axis to the last place, that of lanes. */
void ops_direct_move_axis(uint32_t axis, ops_direct_form *form, ops_direct_lengths *lengths);

#endif
