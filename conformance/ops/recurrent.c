/* recurrent.c: layers of LSTM and GRU over all time steps, and their gradients. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/recurrent.h>

#include "case/cases.h"
#include "ops/fixture.h"

#define MAX_VALUES 4u

typedef struct recurrent_case {
    hal_type type;
    bool is_gru, is_reversed;
    int64_t steps, batch, hidden;
} recurrent_case;

static const case_size recurrent_sizes[] = {
    CASE_SIZE(recurrent_case, steps, "steps", 0, 1),
    CASE_SIZE(recurrent_case, batch, "batch", 0, 1),
    CASE_SIZE(recurrent_case, hidden, "hidden", 0, 1),
};

/* The layer in double precision: operands by element, and what the gradient needs. */
typedef struct model {
    const recurrent_case *tested;
    size_t steps, batch, hidden, gates;
    double *x, *w, *bias, *h0, *c0; /* [steps, batch, gates hidden], [gates hidden, hidden], ... */
    double *h, *c, *values;         /* [steps + 1, batch, hidden] twice, [steps, batch, 4 hidden] */
    double *gx, *gs, *gh, *gc, *add; /* of x and of the sums of h; of the state; gh of each step */
} model;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Where the state before or after a step is. */
static size_t state_at(const model *m, size_t step, bool is_after, size_t row)
{
    return ((step + (is_after != m->tested->is_reversed)) * m->batch + row) * m->hidden;
}

static size_t step_at(const model *m, size_t i)
{
    return m->tested->is_reversed ? m->steps - 1 - i : i;
}

static void forward_value(model *m, size_t step, size_t row, size_t j)
{
    const size_t before = state_at(m, step, false, row), after = state_at(m, step, true, row);
    const double *x = m->x + (step * m->batch + row) * m->gates * m->hidden;
    double *values = m->values + (step * m->batch + row) * MAX_VALUES * m->hidden;
    double sums[MAX_VALUES], v[MAX_VALUES];
    for (size_t g = 0; g < m->gates; g++) {
        sums[g] = m->tested->is_gru ? m->bias[g * m->hidden + j] : x[g * m->hidden + j];
        for (size_t k = 0; k < m->hidden; k++) {
            sums[g] += m->h[before + k] * m->w[(g * m->hidden + j) * m->hidden + k];
        }
    }
    if (m->tested->is_gru) {
        v[0] = sigmoid(x[j] + sums[0]);
        v[1] = sigmoid(x[m->hidden + j] + sums[1]);
        v[2] = tanh(x[2 * m->hidden + j] + v[0] * sums[2]);
        v[3] = sums[2];
        m->h[after + j] = v[2] + v[1] * (m->h[before + j] - v[2]);
    } else {
        v[0] = sigmoid(sums[0]);
        v[1] = sigmoid(sums[1]);
        v[2] = tanh(sums[2]);
        v[3] = sigmoid(sums[3]);
        m->c[after + j] = v[1] * m->c[before + j] + v[0] * v[2];
        m->h[after + j] = v[3] * tanh(m->c[after + j]);
    }
    for (size_t g = 0; g < MAX_VALUES; g++) {
        values[g * m->hidden + j] = v[g];
    }
}

/* The gradients of a step's sums from m->gh and m->gc, which become those of the state before but
 * for the products with the weights. */
static void back_value(model *m, size_t step, size_t row, size_t j)
{
    const size_t hidden = m->hidden, line = step * m->batch + row, at = row * hidden + j;
    const size_t before = state_at(m, step, false, row) + j,
                 after = state_at(m, step, true, row) + j;
    const double *v = m->values + line * MAX_VALUES * hidden + j;
    double *gx = m->gx + line * m->gates * hidden + j, *gs = m->gs + line * m->gates * hidden + j;
    const double h = m->gh[at] + m->add[line * hidden + j];
    if (m->tested->is_gru) {
        const double r = v[0], z = v[hidden], n = v[2 * hidden], sum = v[3 * hidden];
        gx[hidden] = gs[hidden] = h * (m->h[before] - n) * z * (1 - z);
        gx[2 * hidden] = h * (1 - z) * (1 - n * n);
        gs[2 * hidden] = gx[2 * hidden] * r;
        gx[0] = gs[0] = gx[2 * hidden] * sum * r * (1 - r);
        m->gh[at] = h * z;
        return;
    }
    const double in = v[0], forget = v[hidden], cell = v[2 * hidden], out = v[3 * hidden];
    const double squashed = tanh(m->c[after]);
    const double c = h * out * (1 - squashed * squashed) + m->gc[at];
    gs[0] = c * cell * in * (1 - in);
    gs[hidden] = c * m->c[before] * forget * (1 - forget);
    gs[2 * hidden] = c * in * (1 - cell * cell);
    gs[3 * hidden] = h * squashed * out * (1 - out);
    for (size_t g = 0; g < m->gates; g++) {
        gx[g * hidden] = gs[g * hidden];
    }
    m->gc[at] = c * forget;
    m->gh[at] = 0;
}

static void reference(model *m)
{
    const size_t first = (m->tested->is_reversed ? m->steps : 0) * m->batch * m->hidden;
    for (size_t i = 0; i < m->batch * m->hidden; i++) {
        m->h[first + i] = m->h0[i];
        m->c[first + i] = m->c0[i];
    }
    for (size_t i = 0; i < m->steps * m->batch * m->hidden; i++) {
        const size_t line = i / m->hidden;
        forward_value(m, step_at(m, line / m->batch), line % m->batch, i % m->hidden);
    }
    for (size_t i = m->steps; i-- > 0;) {
        const size_t step = step_at(m, i);
        for (size_t k = 0; k < m->batch * m->hidden; k++) {
            back_value(m, step, k / m->hidden, k % m->hidden);
        }
        for (size_t k = 0; k < m->batch * m->gates * m->hidden; k++) {
            const size_t row = k / (m->gates * m->hidden), sum = k % (m->gates * m->hidden);
            const double slope = m->gs[step * m->batch * m->gates * m->hidden + k];
            for (size_t j = 0; j < m->hidden; j++) {
                m->gh[row * m->hidden + j] += slope * m->w[sum * m->hidden + j];
            }
        }
    }
}

static double *take(case_run *run, const operand *from, size_t count)
{
    double *numbers = case_allocate(run, count, sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = from ? operand_get(from, i) : 0;
    }
    return numbers;
}

static operand input(case_run *run, const recurrent_case *tested, random_state *random,
                     uint32_t rank, const int64_t *shape, double size)
{
    operand o = operand_create(run, tested->type, rank, shape, LAYOUT_PLAIN);
    operand_fill(&o, random, -size, size);
    operand_upload(run, &o);
    return o;
}

static operand output(case_run *run, const recurrent_case *tested, uint32_t rank,
                      const int64_t *shape)
{
    operand o = operand_create(run, tested->type, rank, shape, LAYOUT_PLAIN);
    operand_poison(run, &o);
    return o;
}

/* Errors of a step are a few roundoffs for each product; each step passes on what it got times a
 * factor, which weights of this size keep near 1. */
static void check(case_run *run, const recurrent_case *tested, operand *o, const double *expected,
                  const char *what)
{
    long double *values = case_allocate(run, o->count, sizeof *values);
    double *bounds = case_allocate(run, o->count, sizeof *bounds);
    const double unit = number_roundoff(tested->type);
    for (size_t i = 0; i < o->count; i++) {
        values[i] = (long double)expected[i];
        bounds[i] = 64 * unit * (double)(tested->steps * tested->hidden + 8);
    }
    operand_download(run, o, what);
    operand_check_bounds(run, o, values, bounds, what);
}

/* The transpose of w, as the layers take it. */
static operand turned(case_run *run, const operand *w, const int64_t shape[2])
{
    operand o =
        operand_create(run, w->type, 2, (const int64_t[2]){shape[1], shape[0]}, LAYOUT_PLAIN);
    for (size_t i = 0; i < o.count; i++) {
        const size_t row = i % (size_t)shape[0], column = i / (size_t)shape[0];
        number_store(o.type, o.elements, i,
                     number_load(w->type, w->elements, row * (size_t)shape[1] + column));
    }
    operand_upload(run, &o);
    return o;
}

static void run_recurrent(case_run *run, const void *parameters)
{
    const recurrent_case *tested = parameters;
    random_state random = {run->seed};
    const int64_t gates = tested->is_gru ? 3 : 4, hidden = tested->hidden, all = gates * hidden;
    const int64_t sums[3] = {tested->steps, tested->batch, all}, state[2] = {tested->batch, hidden};
    const int64_t values[3] = {tested->steps, tested->batch, 4 * hidden},
                  weights[2] = {all, hidden};
    const int64_t states[3] = {tested->steps + 1, tested->batch, hidden};
    const int64_t steps[3] = {tested->steps, tested->batch, hidden};
    case_claim(run, run->info->max_bindings >= 9, "a binding for each tensor");
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    operand x = input(run, tested, &random, 3, sums, 2),
            h0 = input(run, tested, &random, 2, state, 1);
    operand w = input(run, tested, &random, 2, weights, 1 / sqrt((double)hidden));
    operand bias = input(run, tested, &random, 1, &all, 1),
            c0 = input(run, tested, &random, 2, state, 1);
    operand add = input(run, tested, &random, 3, steps, 1),
            gh = input(run, tested, &random, 2, state, 1);
    operand gc = input(run, tested, &random, 2, state, 1), wt = turned(run, &w, weights);
    operand h = output(run, tested, 3, states), c = output(run, tested, 3, states);
    operand kept = output(run, tested, 3, values), gx = output(run, tested, 3, sums);
    operand gs = output(run, tested, 3, sums), gh0 = output(run, tested, 2, state);
    operand gc0 = output(run, tested, 2, state);
    model m = {tested,
               (size_t)tested->steps,
               (size_t)tested->batch,
               (size_t)hidden,
               (size_t)gates,
               take(run, &x, x.count),
               take(run, &w, w.count),
               take(run, &bias, bias.count),
               take(run, &h0, h0.count),
               take(run, &c0, c0.count),
               take(run, NULL, h.count),
               take(run, NULL, h.count),
               take(run, NULL, kept.count),
               take(run, NULL, x.count),
               take(run, NULL, x.count),
               take(run, &gh, gh.count),
               take(run, &gc, gc.count),
               take(run, &add, add.count)};
    reference(&m);
    const uint32_t is_reversed = tested->is_reversed;
    if (tested->is_gru) {
        const ops_gru_layer layer = {sizeof layer, is_reversed, x.tensor, h.tensor, kept.tensor};
        case_ok(run, ops_gru(run->ops, &wt.tensor, &bias.tensor, &h0.tensor, &layer), "ops_gru");
        case_ok(run,
                ops_gru_gradient(run->ops, &w.tensor, &add.tensor, &gh.tensor, &layer, &gx.tensor,
                                 &gs.tensor, &gh0.tensor),
                "ops_gru_gradient");
        check(run, tested, &gs, m.gs, "gs");
    } else {
        const ops_lstm_layer layer = {sizeof layer, is_reversed, x.tensor,
                                      h.tensor,     c.tensor,    kept.tensor};
        case_ok(run, ops_lstm(run->ops, &wt.tensor, &h0.tensor, &c0.tensor, &layer), "ops_lstm");
        case_ok(run,
                ops_lstm_gradient(run->ops, &w.tensor, &add.tensor, &gh.tensor, &gc.tensor, &layer,
                                  &gx.tensor, &gh0.tensor, &gc0.tensor),
                "ops_lstm_gradient");
        check(run, tested, &c, m.c, "c");
        check(run, tested, &gc0, m.gc, "gc0");
    }
    check(run, tested, &h, m.h, "h");
    check(run, tested, &kept, m.values, "gates");
    check(run, tested, &gx, m.gx, "gx");
    check(run, tested, &gh0, m.gh, "gh0");
}

static void print_recurrent(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const recurrent_case *tested = parameters;
    snprintf(name, bytes,
             "ops/recurrent(cell=%s,type=%s,steps=%lld,batch=%lld,hidden=%lld,reversed=%d,"
             "seed=%llu)",
             tested->is_gru ? "gru" : "lstm", hal_type_name(tested->type), (long long)tested->steps,
             (long long)tested->batch, (long long)tested->hidden, tested->is_reversed,
             (unsigned long long)seed);
}

static const case_family layers = {.function = run_recurrent,
                                   .bytes = sizeof(recurrent_case),
                                   .sizes = recurrent_sizes,
                                   .size_count = 3,
                                   .print = print_recurrent};

void cases_ops_recurrent(case_list *list)
{
    static const int64_t widths[] = {12, 16, 7, 1}; /* four fit each device's groups */
    for (uint32_t i = 0; i < 4; i++) {
        const recurrent_case tested = {.type = i < 2 ? HAL_TYPE_F32 : HAL_TYPE_F64,
                                       .is_gru = i % 2 == 1,
                                       .is_reversed = i == 1 || i == 2,
                                       .steps = 5,
                                       .batch = i < 2 ? 7 : 1,
                                       .hidden = widths[i]};
        case_add_member(list, &layers, &tested);
    }
}
