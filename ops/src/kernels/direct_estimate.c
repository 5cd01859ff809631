/* See direct_estimate.h. */
#include "direct_estimate.h"

#include "direct_phase.h"

#include "tensor/indexing.h"

enum { LANES = 16 };

/* Along the axis of lanes: what phases add up to. */
typedef struct direct_cost {
    const ops_direct_form *form;
    const ops_direct_lengths *lengths;
    int64_t step; /* of the planes, along the first axis */
    bool fits;
    double loads, sums;     /* of x and multiply-adds, for each vector of LANES lanes */
    double groups, weights; /* and weights that groups read */
} direct_cost;

/* Elements of x that a work-item reads of one channel. */
static double loads_of(const ops_direct_phase *p, uint32_t rank, uint32_t lines)
{
    const uint32_t axis = ops_direct_line_axis(rank);
    const int64_t reach = (p->taps[axis] - 1) * p->apart[axis] + (lines - 1) * p->stride[axis] + 1;
    const int64_t most = p->taps[axis] * lines;
    double loads = (double)(reach < most ? reach : most);
    for (uint32_t i = 0; i < rank; i++) {
        loads *= i == axis ? 1.0 : (double)p->taps[i];
    }
    return loads;
}

static hal_status cost_add(void *user, const ops_direct_phase *p)
{
    direct_cost *c = user;
    const uint32_t rank = c->form->rank;
    const ops_direct_lengths *n = c->lengths;
    const uint32_t results = ops_direct_results(p, rank, n->outputs, c->step);
    ops_direct_key k = {0};
    c->fits = c->fits && results > 0;
    if (results == 0) {
        return HAL_OK;
    }
    ops_direct_shape(p, rank, results, c->step, &k);
    double window = 1, parts = (double)(n->images * c->form->groups) * k.number[OPS_DIRECT_DEPTH];
    for (uint32_t i = 0; i < rank; i++) {
        window *= (double)p->taps[i];
    }
    parts *= (double)n->outputs / results;
    const double across = parts * (double)ops_ceil_divide(k.number[OPS_DIRECT_COLUMNS], k.lanes);
    const double groups = across * (double)ops_ceil_divide(k.number[OPS_DIRECT_ROWS], k.rows);
    const double items = across * k.lanes / LANES * k.number[OPS_DIRECT_ROWS] * (double)n->inputs;
    c->loads += items * loads_of(p, rank, k.lines);
    c->sums += items * results * k.lines * window;
    c->groups += groups;
    c->weights += groups * (double)n->inputs * results * window;
    return HAL_OK;
}

/* Elements of the planes, and groups of the kernels that copy them. */
static void planes_cost(const ops_planes *p, double *elements, double *groups)
{
    enum { ROWS = 16 };
    const uint32_t last = p->rank - 1;
    *elements = (double)p->elements;
    *groups = 1;
    for (uint32_t i = 0; i < last; i++) {
        const double lines = (double)(p->cells[i] * p->step[i]);
        *groups *= i + 1 < last ? lines : 1.0 + lines / ROWS;
    }
}

/* Nanoseconds with the lanes along the last axis, or -1. */
static double estimate(const ops_direct_form *form, const ops_direct_lengths *n,
                       const ops_convolution_tuning *t, bool copies_x, bool copies_y)
{
    ops_planes planes;
    direct_cost c = {.form = form, .lengths = n, .fits = true};
    const bool has_zeros = ops_direct_planes(form, n, &planes);
    double image = (double)n->inputs, results = (double)n->outputs, of_planes, of_groups;
    double weights = (double)form->groups * (double)n->inputs * (double)n->outputs;
    bool has_steps = false;
    for (uint32_t i = 0; i < form->rank; i++) {
        image *= (double)n->x[i];
        results *= (double)n->y[i];
        weights *= (double)n->window[i];
        has_steps = has_steps || planes.step[i] > 1;
    }
    const double channels = (double)(n->images * form->groups) * (double)n->inputs;
    if ((double)planes.elements * (double)n->inputs > INT32_MAX / 2 ||
        (double)(n->images * form->groups) * results > INT32_MAX / 2 || weights > INT32_MAX / 2 ||
        ops_direct_grid(form, n) > UINT16_MAX) {
        return -1;
    }
    c.step = planes.step[0];
    (void)ops_direct_each_phase(form, n, &c, cost_add);
    planes_cost(&planes, &of_planes, &of_groups);
    const double moved = (copies_x ? image : 0) + (copies_y ? results : 0);
    double ns = t->direct_load_ns * c.loads + t->direct_sum_ns * c.sums +
                t->direct_group_ns * c.groups + t->direct_weight_ns * c.weights +
                t->direct_transposed_ns * (double)(n->images * form->groups) * moved +
                t->direct_call_ns;
    if (has_zeros || has_steps) {
        ns += channels * (t->direct_plane_ns * of_planes + t->direct_plane_group_ns * of_groups);
    }
    return c.fits ? ns : -1;
}

double ops_direct_estimate(const ops_direct_form *form, const ops_direct_lengths *n,
                           const ops_convolution_tuning *tuning, int32_t line_of_x,
                           int32_t line_of_y, uint32_t *axis)
{
    double least = -1;
    *axis = form->rank - 1;
    for (uint32_t i = form->rank; i-- > 0;) {
        ops_direct_form moved = *form;
        ops_direct_lengths lengths = *n;
        ops_direct_move_axis(i, &moved, &lengths);
        const double ns =
            estimate(&moved, &lengths, tuning, line_of_x != (int32_t)i, line_of_y != (int32_t)i);
        if (ns >= 0 && (least < 0 || ns < least)) {
            least = ns;
            *axis = i;
        }
    }
    return least;
}
