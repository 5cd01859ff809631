/* See direct_phase.h. */
#include "direct_phase.h"

#include "phases.h"
#include "tensor/indexing.h"

#include <string.h>

enum { LANES = 16, MOST_LANES = 64, LONG_LANES = 256, LONG_LINE = 1024, GROUP_ITEMS = 512 };

/* Elements of windows of several axes that general kernels have no loop for. */
enum { UNROLLED_WINDOW = 9 };

static ops_phase_axis axis_of(const ops_direct_form *f, const ops_direct_lengths *n, uint32_t axis)
{
    return (ops_phase_axis){.step = f->stride[axis],
                            .dilation = f->dilation[axis],
                            .before = f->before[axis],
                            .window = n->window[axis],
                            .results = n->y[axis]};
}

/* Along one axis, of results from `first` on: in elements of x, before padding. */
static void phase_of_axis(const ops_direct_form *f, const ops_direct_lengths *n, uint32_t axis,
                          int64_t first, ops_direct_phase *p)
{
    if (f->is_transposed) {
        const ops_phase_axis along = axis_of(f, n, axis);
        const ops_phase phase = ops_phase_of_result(&along, first);
        p->first[axis] = first;
        p->step[axis] = along.step;
        p->places[axis] = phase.places;
        p->stride[axis] = 1;
        p->taps[axis] = phase.taps;
        p->tap[axis] = phase.tap;
        p->tap_step[axis] = -phase.tap_step;
        p->position[axis] = phase.position;
        p->apart[axis] = phase.apart;
    } else {
        p->first[axis] = 0;
        p->step[axis] = 1;
        p->places[axis] = n->y[axis];
        p->stride[axis] = f->stride[axis];
        p->taps[axis] = n->window[axis];
        p->tap[axis] = 0;
        p->tap_step[axis] = 1;
        p->position[axis] = -f->before[axis];
        p->apart[axis] = f->dilation[axis];
    }
}

/* Phases along an axis that have results. */
static int64_t phase_count(const ops_direct_form *f, const ops_direct_lengths *n, uint32_t axis)
{
    const int64_t step = f->is_transposed ? f->stride[axis] : 1;
    return step < n->y[axis] ? step : n->y[axis];
}

bool ops_direct_has_few_phases(const ops_direct_form *f, const ops_direct_lengths *n)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < f->rank && count <= OPS_DIRECT_PHASES; i++) {
        const int64_t along = phase_count(f, n, i);
        count *= along <= OPS_DIRECT_PHASES ? along : OPS_DIRECT_PHASES + 1;
    }
    return count <= OPS_DIRECT_PHASES;
}

hal_status ops_direct_each_phase(const ops_direct_form *f, const ops_direct_lengths *n, void *user,
                                 hal_status (*use)(void *user, const ops_direct_phase *p))
{
    int64_t first[OPS_MAX_SPATIAL] = {0};
    for (bool more = true; more;) {
        ops_direct_phase p;
        bool has_places = true;
        memset(&p, 0, sizeof p);
        for (uint32_t i = 0; i < f->rank; i++) {
            phase_of_axis(f, n, i, first[i], &p);
            has_places = has_places && p.places[i] > 0;
        }
        if (has_places) {
            HAL_TRY(use(user, &p));
        }
        more = false;
        for (uint32_t i = f->rank; i-- > 0 && !more;) {
            more = ++first[i] < phase_count(f, n, i);
            first[i] = more ? first[i] : 0;
        }
    }
    return HAL_OK;
}

bool ops_direct_has_taps(const ops_direct_phase *p, uint32_t rank)
{
    bool has = true;
    for (uint32_t i = 0; i < rank; i++) {
        has = has && p->taps[i] > 0;
    }
    return has;
}

/* Elements of x that phases read along an axis: from -before to `end`. */
static void reach_of_axis(const ops_direct_form *f, const ops_direct_lengths *n, uint32_t axis,
                          int64_t *before, int64_t *end)
{
    const ops_phase_axis along = axis_of(f, n, axis);
    *before = 0;
    *end = 1;
    if (!f->is_transposed) {
        *before = f->before[axis];
        *end = (n->y[axis] - 1) * along.step + (along.window - 1) * along.dilation + 1 - *before;
    } else {
        (void)ops_phase_reach(&along, before, end);
    }
    *before = *before > 0 ? *before : 0;
    *end = *end > 1 ? *end : 1;
}

bool ops_direct_planes(const ops_direct_form *f, const ops_direct_lengths *n, ops_planes *planes)
{
    int64_t padded[OPS_MAX_SPATIAL] = {0};
    bool has_zeros = false;
    memset(planes, 0, sizeof *planes);
    planes->rank = f->rank;
    for (uint32_t i = 0; i < f->rank; i++) {
        int64_t end;
        reach_of_axis(f, n, i, &planes->before[i], &end);
        planes->length[i] = n->x[i] < end ? n->x[i] : end;
        planes->step[i] = f->is_transposed ? 1 : f->stride[i];
        padded[i] = planes->before[i] + end;
        has_zeros = has_zeros || planes->before[i] > 0 || end > n->x[i];
    }
    ops_planes_init(padded, planes);
    return has_zeros;
}

/* Lanes along the last axis of which few are idle. */
static uint32_t lanes_choose(uint32_t rank, int64_t columns)
{
    uint32_t best = LANES;
    int64_t least = INT64_MAX;
    if (rank == 1 && columns >= LONG_LINE) {
        return LONG_LANES;
    }
    for (uint32_t lanes = MOST_LANES; lanes >= LANES; lanes /= 2) {
        const int64_t all = (columns + lanes - 1) / lanes * lanes;
        best = all < least ? lanes : best;
        least = all < least ? all : least;
    }
    return best;
}

/* Lines of a work-item, which share elements of x where windows overlap along their axis. */
static uint32_t lines_choose(uint32_t rank, uint32_t results, const ops_direct_phase *p)
{
    const uint32_t axis = ops_direct_line_axis(rank);
    const bool overlap =
        rank > 1 && p->taps[axis] > 1 && p->stride[axis] <= (p->taps[axis] - 1) * p->apart[axis];
    uint32_t lines = results > OPS_DIRECT_RESULTS / 2   ? 1
                     : results > OPS_DIRECT_RESULTS / 4 ? 2
                                                        : OPS_DIRECT_LINES;
    while (lines > 1 && (!overlap || lines > p->places[axis])) {
        lines /= 2;
    }
    return lines;
}

/* Elements of the window along the first axis that have no loop: all, or as many as weights may
 * be, so that the next ones are as far apart as these in every phase of the planes. */
static uint32_t chunk_choose(const ops_direct_phase *p, uint32_t rank, uint32_t results,
                             int64_t step)
{
    int64_t others = results;
    for (uint32_t i = 1; i < rank; i++) {
        others *= p->taps[i];
    }
    const int64_t unit = step / ops_common_divisor(p->apart[0], step);
    const int64_t most = OPS_DIRECT_WEIGHTS / (others > 0 ? others : 1);
    return (uint32_t)(p->taps[0] <= most ? p->taps[0] : most < unit ? 0 : most / unit * unit);
}

uint32_t ops_direct_results(const ops_direct_phase *p, uint32_t rank, int64_t outputs, int64_t step)
{
    int64_t most = OPS_DIRECT_RESULTS;
    while (most > 0 && p->taps[0] > 0 && chunk_choose(p, rank, (uint32_t)most, step) == 0) {
        most--;
    }
    const int64_t blocks = most > 0 ? (outputs + most - 1) / most : 0;
    return blocks > 0 ? (uint32_t)((outputs + blocks - 1) / blocks) : 0;
}

/* The numbers of results and of rows, with the lines that are chosen. */
static void places_set(const ops_direct_phase *p, ops_direct_key *k)
{
    const int64_t lines = k->rank > 1 ? p->places[ops_direct_line_axis(k->rank)] : 1;
    k->number[OPS_DIRECT_COLUMNS] = (uint32_t)p->places[k->rank - 1];
    k->number[OPS_DIRECT_DEPTH] = k->rank > 2 ? (uint32_t)p->places[0] : 1;
    for (uint32_t t = 0; t < k->lines; t++) {
        k->number[OPS_DIRECT_ROWS + t] = (uint32_t)((lines + k->lines - 1 - t) / k->lines);
    }
}

void ops_direct_shape(const ops_direct_phase *p, uint32_t rank, uint32_t results, int64_t step,
                      ops_direct_key *k)
{
    k->rank = rank;
    k->results = results;
    k->lines = lines_choose(rank, results, p);
    k->chunk = chunk_choose(p, rank, results, step);
    places_set(p, k);
    k->lanes = lanes_choose(rank, p->places[rank - 1]);
    k->rows = ops_even_share(k->number[OPS_DIRECT_ROWS], GROUP_ITEMS / k->lanes);
}

/* Of some widths the one with the least time of all groups or work-items that cover `count`. Each
 * takes `own` more than its width. */
static uint32_t width_choose(const uint32_t *widths, uint32_t widths_count, uint32_t own,
                             int64_t count)
{
    uint32_t best = 0;
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < widths_count; i++) {
        const int64_t all = (count + widths[i] - 1) / widths[i] * (widths[i] + own);
        best = all < least ? widths[i] : best;
        least = all < least ? all : least;
    }
    return best;
}

/* The first axis whose elements of the window the general kernel has no loop for: the last one, or
 * all of small windows that are as long along each axis. */
static uint32_t unrolled_choose(const ops_direct_phase *p, uint32_t rank)
{
    int64_t volume = p->taps[rank - 1];
    uint32_t first = rank;
    if (ops_direct_has_taps(p, rank) && volume <= OPS_DIRECT_TAPS) {
        first = rank - 1;
        while (first > 0 && p->taps[first - 1] == p->taps[rank - 1] &&
               volume * p->taps[first - 1] <= UNROLLED_WINDOW) {
            volume *= p->taps[--first];
        }
    }
    return first;
}

void ops_direct_shape_general(const ops_direct_phase *p, uint32_t rank, uint32_t outputs,
                              ops_direct_key *k)
{
    static const uint32_t results[] = {8, 4, 1}, rows[] = {16, 4}, lanes[] = {256, 64, 16};
    k->rank = rank;
    k->lines = 1;
    k->is_general = 1;
    k->results = width_choose(results, 3, 1, outputs);
    k->unrolled = unrolled_choose(p, rank);
    places_set(p, k);
    k->lanes = rank > 1 ? LANES : width_choose(lanes, 3, 64, p->places[0]);
    k->rows = rank > 1 ? width_choose(rows, 2, 4, k->number[OPS_DIRECT_ROWS]) : 1;
}

static void number_move(uint32_t axis, uint32_t rank, int64_t *numbers)
{
    const int64_t moved = numbers[axis];
    memmove(numbers + axis, numbers + axis + 1, (rank - 1 - axis) * sizeof *numbers);
    numbers[rank - 1] = moved;
}

void ops_direct_move_axis(uint32_t axis, ops_direct_form *form, ops_direct_lengths *n)
{
    int64_t *const all[] = {form->stride, form->dilation, form->before, n->x, n->window, n->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        number_move(axis, form->rank, all[i]);
    }
}
