/* Layers of LSTM and GRU: one kernel for all time steps gives what loops in double precision give,
 * and its gradient what differences of the loss give. */
#include "ops_fixture.h"

#include <ops/recurrent.h>

#define STEPS 3
#define BATCH 2
#define HIDDEN 6
#define GATES (4 * HIDDEN)

typedef struct lstm {
    double x[STEPS][BATCH][GATES], w[GATES][HIDDEN], h0[BATCH][HIDDEN], c0[BATCH][HIDDEN];
    double h[STEPS + 1][BATCH][HIDDEN], c[STEPS + 1][BATCH][HIDDEN];
} lstm;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static int step_of(int i, int is_reversed)
{
    return is_reversed ? STEPS - 1 - i : i;
}

/* State of step t: after it, or before it. */
static int state_of(int t, int is_after, int is_reversed)
{
    return is_after != is_reversed ? t + 1 : t;
}

static void reference(lstm *l, int is_reversed)
{
    const int first = is_reversed ? STEPS : 0;
    memcpy(l->h[first], l->h0, sizeof l->h0);
    memcpy(l->c[first], l->c0, sizeof l->c0);
    for (int i = 0; i < STEPS; i++) {
        const int t = step_of(i, is_reversed);
        const int before = state_of(t, 0, is_reversed), after = state_of(t, 1, is_reversed);
        for (int row = 0; row < BATCH; row++) {
            double sums[GATES];
            for (int k = 0; k < GATES; k++) {
                sums[k] = l->x[t][row][k];
                for (int j = 0; j < HIDDEN; j++) {
                    sums[k] += l->h[before][row][j] * l->w[k][j];
                }
            }
            for (int j = 0; j < HIDDEN; j++) {
                const double c = sigmoid(sums[HIDDEN + j]) * l->c[before][row][j] +
                                 sigmoid(sums[j]) * tanh(sums[2 * HIDDEN + j]);
                l->c[after][row][j] = c;
                l->h[after][row][j] = sigmoid(sums[3 * HIDDEN + j]) * tanh(c);
            }
        }
    }
}

/* What the test's gradients are of: all h and the last c, with weights that differ. */
static double loss_of(lstm *l, int is_reversed)
{
    const int last = is_reversed ? 0 : STEPS;
    double loss = 0;
    reference(l, is_reversed);
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < BATCH * HIDDEN; i++) {
            loss += (1 + 0.1 * i + t) * (&l->h[state_of(t, 1, is_reversed)][0][0])[i];
        }
    }
    for (int i = 0; i < BATCH * HIDDEN; i++) {
        loss += (0.5 - 0.1 * i) * (&l->c[last][0][0])[i] + 0.3 * (&l->h[last][0][0])[i];
    }
    return loss;
}

static void fill(double *numbers, size_t count, double scale, unsigned *seed)
{
    for (size_t i = 0; i < count; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        numbers[i] = scale * ((double)(*seed >> 8) / 8388608.0 - 1);
    }
}

static ops_tensor tensor_of(int is_double, uint32_t rank, const int64_t *shape, const double *x)
{
    ops_tensor tensor;
    float narrow[(STEPS + 1) * BATCH * GATES + GATES * HIDDEN];
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= shape[i];
    }
    for (int64_t i = 0; i < count; i++) {
        narrow[i] = x ? (float)x[i] : NAN;
    }
    const hal_type type = is_double ? HAL_TYPE_F64 : HAL_TYPE_F32;
    if (!x && is_double) {
        ok(ops_tensor_create(test_context, type, rank, shape, &tensor));
    } else {
        const void *elements = is_double ? (const void *)x : narrow;
        ok(ops_tensor_from_host(test_context, type, rank, shape, elements, &tensor));
    }
    return tensor;
}

static void check_values(const char *name, const ops_tensor *tensor, const double *expected,
                         double bound)
{
    const int64_t count = ops_tensor_get_element_count(tensor);
    union {
        float narrow[(STEPS + 1) * BATCH * GATES];
        double wide[(STEPS + 1) * BATCH * GATES];
    } got;
    const int is_double = tensor->type == HAL_TYPE_F64;
    ok(ops_tensor_read(test_context, tensor, (uint64_t)count * hal_type_size(tensor->type), &got));
    for (int64_t i = 0; i < count; i++) {
        const double value = is_double ? got.wide[i] : (double)got.narrow[i];
        if (!(fabs(value - expected[i]) <= bound)) {
            fail_msg("%s, element %lld: %g, expected %g", name, (long long)i, value, expected[i]);
        }
    }
}

/* Differences of the loss for `count` numbers of l. */
static void differences(lstm *l, double *numbers, int count, int is_reversed, double *slopes)
{
    for (int i = 0; i < count; i++) {
        const double old = numbers[i], step = 1e-5;
        numbers[i] = old + step;
        const double above = loss_of(l, is_reversed);
        numbers[i] = old - step;
        slopes[i] = (above - loss_of(l, is_reversed)) / (2 * step);
        numbers[i] = old;
    }
    reference(l, is_reversed);
}

static const int64_t of_gates[3] = {STEPS, BATCH, GATES}, of_states[3] = {STEPS + 1, BATCH, HIDDEN};
static const int64_t of_steps[3] = {STEPS, BATCH, HIDDEN}, of_state[2] = {BATCH, HIDDEN};

static void check_gradient(lstm *l, const ops_lstm_layer *layer, int is_double)
{
    double gh[STEPS][BATCH * HIDDEN], last_h[BATCH * HIDDEN], last_c[BATCH * HIDDEN];
    double of_x[STEPS * BATCH * GATES], of_h0[BATCH * HIDDEN], of_c0[BATCH * HIDDEN];
    const int is_reversed = (int)layer->is_reversed;
    for (int i = 0; i < BATCH * HIDDEN; i++) {
        for (int t = 0; t < STEPS; t++) {
            gh[t][i] = 1 + 0.1 * i + t;
        }
        last_h[i] = 0.3;
        last_c[i] = 0.5 - 0.1 * i;
    }
    differences(l, &l->x[0][0][0], STEPS * BATCH * GATES, is_reversed, of_x);
    differences(l, &l->h0[0][0], BATCH * HIDDEN, is_reversed, of_h0);
    differences(l, &l->c0[0][0], BATCH * HIDDEN, is_reversed, of_c0);
    ops_tensor w = tensor_of(is_double, 2, (int64_t[]){GATES, HIDDEN}, &l->w[0][0]);
    ops_tensor g = tensor_of(is_double, 3, of_steps, &gh[0][0]);
    ops_tensor h = tensor_of(is_double, 2, of_state, last_h);
    ops_tensor c = tensor_of(is_double, 2, of_state, last_c);
    ops_tensor gx = tensor_of(is_double, 3, of_gates, NULL);
    ops_tensor gh0 = tensor_of(is_double, 2, of_state, NULL);
    ops_tensor gc0 = tensor_of(is_double, 2, of_state, NULL);
    ok(ops_lstm_gradient(test_context, &w, &g, &h, &c, layer, &gx, &gh0, &gc0));
    const double bound = is_double ? 1e-8 : 2e-5;
    check_values("gx", &gx, of_x, bound);
    check_values("gh0", &gh0, of_h0, bound);
    check_values("gc0", &gc0, of_c0, bound);
    /* Without gradients of the last state they are those of zeros. */
    double zeros[BATCH * HIDDEN] = {0}, without[STEPS * BATCH * GATES];
    ops_tensor none = tensor_of(is_double, 2, of_state, zeros);
    ok(ops_lstm_gradient(test_context, &w, &g, &none, &none, layer, &gx, &gh0, &gc0));
    ok(ops_tensor_read(test_context, &gh0, sizeof(double) / (is_double ? 1 : 2) * BATCH * HIDDEN,
                       without));
    ops_tensor again = tensor_of(is_double, 2, of_state, NULL);
    ok(ops_lstm_gradient(test_context, &w, &g, NULL, NULL, layer, &gx, &again, &gc0));
    double read[STEPS * BATCH * GATES];
    ok(ops_tensor_read(test_context, &again, sizeof(double) / (is_double ? 1 : 2) * BATCH * HIDDEN,
                       read));
    assert_memory_equal(read, without, sizeof(double) / (is_double ? 1 : 2) * BATCH * HIDDEN);
    ops_tensor *all[] = {&w, &g, &h, &c, &gx, &gh0, &gc0, &none, &again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ops_tensor_release(all[i]);
    }
}

static void check_layer(int is_double, int is_reversed)
{
    static lstm l;
    unsigned seed = 7;
    fill(&l.x[0][0][0], STEPS * BATCH * GATES, 1.5, &seed);
    fill(&l.w[0][0], GATES * HIDDEN, 0.8, &seed);
    fill(&l.h0[0][0], BATCH * HIDDEN, 1, &seed);
    fill(&l.c0[0][0], BATCH * HIDDEN, 1, &seed);
    reference(&l, is_reversed);
    double turned[HIDDEN][GATES];
    for (int k = 0; k < GATES * HIDDEN; k++) {
        turned[k % HIDDEN][k / HIDDEN] = l.w[k / HIDDEN][k % HIDDEN];
    }
    ops_tensor w = tensor_of(is_double, 2, (int64_t[]){HIDDEN, GATES}, &turned[0][0]);
    ops_tensor h0 = tensor_of(is_double, 2, of_state, &l.h0[0][0]);
    ops_tensor c0 = tensor_of(is_double, 2, of_state, &l.c0[0][0]);
    ops_lstm_layer layer = {.size = sizeof layer,
                            .is_reversed = (uint32_t)is_reversed,
                            .x = tensor_of(is_double, 3, of_gates, &l.x[0][0][0]),
                            .h = tensor_of(is_double, 3, of_states, NULL),
                            .c = tensor_of(is_double, 3, of_states, NULL),
                            .gates = tensor_of(is_double, 3, of_gates, NULL)};
    ok(ops_lstm(test_context, &w, &h0, &c0, &layer));
    check_values("h", &layer.h, &l.h[0][0][0], is_double ? 1e-14 : 1e-6);
    check_values("c", &layer.c, &l.c[0][0][0], is_double ? 1e-14 : 1e-6);
    check_gradient(&l, &layer, is_double);
    ops_tensor *all[] = {&w, &h0, &c0, &layer.x, &layer.h, &layer.c, &layer.gates};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ops_tensor_release(all[i]);
    }
}

static void layers_of_every_kind(void **state)
{
    for (int is_reversed = 0; is_reversed < 2; is_reversed++) {
        check_layer(0, is_reversed);
        check_layer(1, is_reversed);
    }
}

/* ---- GRU ---- */

#define SUMS (3 * HIDDEN)

typedef struct gru {
    double x[STEPS][BATCH][SUMS], w[SUMS][HIDDEN], bias[SUMS], h0[BATCH][HIDDEN];
    double h[STEPS + 1][BATCH][HIDDEN];
} gru;

/* The loss of all h, with weights that differ; l->h receives them. */
static double gru_loss(gru *l, int is_reversed)
{
    double loss = 0;
    memcpy(l->h[is_reversed ? STEPS : 0], l->h0, sizeof l->h0);
    for (int i = 0; i < STEPS * BATCH; i++) {
        const int t = step_of(i / BATCH, is_reversed), row = i % BATCH;
        const double *before = l->h[state_of(t, 0, is_reversed)][row], *x = l->x[t][row];
        double *after = l->h[state_of(t, 1, is_reversed)][row], sums[SUMS];
        for (int k = 0; k < SUMS; k++) {
            sums[k] = l->bias[k];
            for (int j = 0; j < HIDDEN; j++) {
                sums[k] += before[j] * l->w[k][j];
            }
        }
        for (int j = 0; j < HIDDEN; j++) {
            const double r = sigmoid(x[j] + sums[j]);
            const double z = sigmoid(x[HIDDEN + j] + sums[HIDDEN + j]);
            const double n = tanh(x[2 * HIDDEN + j] + r * sums[2 * HIDDEN + j]);
            after[j] = n + z * (before[j] - n);
            loss += (1 + 0.1 * (row * HIDDEN + j) + t) * after[j];
        }
    }
    return loss;
}

static void gru_differences(gru *l, double *numbers, int count, int is_reversed, double *slopes)
{
    for (int i = 0; i < count; i++) {
        const double old = numbers[i], step = 1e-5;
        numbers[i] = old + step;
        const double above = gru_loss(l, is_reversed);
        numbers[i] = old - step;
        slopes[i] = (above - gru_loss(l, is_reversed)) / (2 * step);
        numbers[i] = old;
    }
    gru_loss(l, is_reversed);
}

static void check_gru(int is_double, int is_reversed)
{
    static gru l;
    unsigned seed = 11;
    fill(&l.x[0][0][0], STEPS * BATCH * SUMS, 1.5, &seed);
    fill(&l.w[0][0], SUMS * HIDDEN, 0.8, &seed);
    fill(l.bias, SUMS, 0.5, &seed);
    fill(&l.h0[0][0], BATCH * HIDDEN, 1, &seed);
    double of_x[STEPS * BATCH * SUMS], of_h0[BATCH * HIDDEN], of_bias[SUMS],
        gh[STEPS][BATCH][HIDDEN];
    gru_differences(&l, &l.x[0][0][0], STEPS * BATCH * SUMS, is_reversed, of_x);
    gru_differences(&l, &l.h0[0][0], BATCH * HIDDEN, is_reversed, of_h0);
    gru_differences(&l, l.bias, SUMS, is_reversed, of_bias);
    double turned[HIDDEN][SUMS];
    for (int k = 0; k < SUMS * HIDDEN; k++) {
        turned[k % HIDDEN][k / HIDDEN] = l.w[k / HIDDEN][k % HIDDEN];
    }
    for (int i = 0; i < STEPS * BATCH * HIDDEN; i++) {
        (&gh[0][0][0])[i] = 1 + 0.1 * (i % (BATCH * HIDDEN)) + i / (BATCH * HIDDEN);
    }
    static const int64_t of_sums[3] = {STEPS, BATCH, SUMS};
    ops_tensor w = tensor_of(is_double, 2, (int64_t[]){HIDDEN, SUMS}, &turned[0][0]);
    ops_tensor plain = tensor_of(is_double, 2, (int64_t[]){SUMS, HIDDEN}, &l.w[0][0]);
    ops_tensor bias = tensor_of(is_double, 1, of_sums + 2, l.bias);
    ops_tensor h0 = tensor_of(is_double, 2, of_state, &l.h0[0][0]);
    ops_tensor g = tensor_of(is_double, 3, of_steps, &gh[0][0][0]);
    ops_tensor gx = tensor_of(is_double, 3, of_sums, NULL);
    ops_tensor gs = tensor_of(is_double, 3, of_sums, NULL);
    ops_tensor gh0 = tensor_of(is_double, 2, of_state, NULL);
    ops_gru_layer layer = {.size = sizeof layer,
                           .is_reversed = (uint32_t)is_reversed,
                           .x = tensor_of(is_double, 3, of_sums, &l.x[0][0][0]),
                           .h = tensor_of(is_double, 3, of_states, NULL),
                           .gates = tensor_of(is_double, 3, of_gates, NULL)};
    const double bound = is_double ? 1e-8 : 2e-5;
    ok(ops_gru(test_context, &w, &bias, &h0, &layer));
    check_values("h", &layer.h, &l.h[0][0][0], is_double ? 1e-14 : 1e-6);
    ok(ops_gru_gradient(test_context, &plain, &g, NULL, &layer, &gx, &gs, &gh0));
    check_values("gx", &gx, of_x, bound);
    check_values("gh0", &gh0, of_h0, bound);
    ops_tensor rows, sum;
    ok(ops_tensor_reshape(&gs, 2, (int64_t[]){STEPS * BATCH, SUMS}, &rows));
    ok(ops_tensor_create(test_context, gs.type, 1, of_sums + 2, &sum));
    ok(ops_reduce(test_context, OPS_REDUCE_SUM, 0, &rows, NULL, &sum));
    check_values("gradient of the bias", &sum, of_bias, 4 * bound);
    ops_tensor *all[] = {&w,  &plain, &bias,    &h0,      &g,           &gx,
                         &gs, &gh0,   &layer.x, &layer.h, &layer.gates, &sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ops_tensor_release(all[i]);
    }
}

static void gru_layers_of_every_kind(void **state)
{
    for (int i = 0; i < 4; i++) {
        check_gru(i / 2, i % 2);
    }
}

static void shapes_that_do_not_fit(void **state)
{
    const double zeros[GATES * HIDDEN] = {0};
    ops_tensor w = tensor_of(0, 2, (int64_t[]){HIDDEN, GATES}, zeros);
    ops_tensor h0 = tensor_of(0, 2, of_state, zeros);
    ops_lstm_layer layer = {.size = sizeof layer,
                            .x = tensor_of(0, 3, of_gates, NULL),
                            .h = tensor_of(0, 3, of_states, NULL),
                            .c = tensor_of(0, 3, of_steps, NULL),
                            .gates = tensor_of(0, 3, of_gates, NULL)};
    assert_int_equal(ops_lstm(test_context, &w, &h0, &h0, &layer), HAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(hal_status_message(), "layer.c: expected a contiguous f32[4, 2, 6]"));
    layer.size = 0;
    assert_int_equal(ops_lstm(test_context, &w, &h0, &h0, &layer), HAL_ERROR_INVALID_ARGUMENT);
    ops_tensor *all[] = {&w, &h0, &layer.x, &layer.h, &layer.c, &layer.gates};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ops_tensor_release(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_of_every_kind),
                                       cmocka_unit_test(gru_layers_of_every_kind),
                                       cmocka_unit_test(shapes_that_do_not_fit)};
    return RUN_ON_ALL(tests);
}
