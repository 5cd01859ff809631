/* array_network.c: networks of dense layers, the longest chains of kernels that depend on each
 * other: several evaluations with changing inputs, of which none is waited for before the next. All
 * numbers are small integers times powers of two, so results are exact on every device. */
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "ops/array_fixture.h"

enum { STEPS = 12, TURNS = 6, INPUTS = 3, MOST_LAYERS = 64, MOST_RESULTS = 16 };

/* A weight matrix has one element, 1 or -1, in each row and column: element j of a layer's product
 * is sign[j] times element from[j] of its input. */
typedef struct network_case {
    hal_type type;
    int layers, batch, hidden;
    bool is_training; /* with at most MOST_RESULTS / 2 layers */
    bool is_graph;
    uint32_t levels; /* of Strassen's algorithm, with prepared weights; 0: strict products */
} network_case;

typedef struct layer {
    int32_t *from, *sign, *bias;
} layer;

typedef struct network {
    case_run *run;
    const network_case *tested;
    layer layers[MOST_LAYERS];
    int32_t *inputs[INPUTS], *target;
    ops_array *weights[MOST_LAYERS], *biases[MOST_LAYERS], *x[INPUTS], *y;
    /* Of the checks: outputs[i], batch x hidden, after layer i; the gradient of the last one, then
     * of earlier ones; the expected weights and biases of a layer; a row; what was read. */
    double *outputs[MOST_LAYERS + 1], *gradient, *wanted, *wanted_biases, *row;
    void *found;
} network;

static const double rate = 0x1p-10;

static ops_array *array_upload(network *n, int64_t rows, int64_t columns, const int32_t *elements)
{
    const hal_type type = n->tested->type;
    const int64_t shape[2] = {rows, columns};
    const uint32_t skipped = rows == 0; /* a vector */
    const size_t count = (size_t)((rows == 0 ? 1 : rows) * columns);
    void *bits = case_allocate(n->run, count, hal_type_size(type));
    for (size_t i = 0; i < count; i++) {
        number_put(type, bits, i, elements[i]);
    }
    return array_own(n->run,
                     ops_array_from_host(n->run->ops, type, 2 - skipped, shape + skipped, bits),
                     "ops_array_from_host");
}

static int32_t *random_integers(network *n, random_state *random, size_t count, int most)
{
    int32_t *made = case_allocate(n->run, count, sizeof *made);
    for (size_t i = 0; i < count; i++) {
        made[i] = (int32_t)random_below(random, 2 * (uint64_t)most + 1) - most;
    }
    return made;
}

static void layer_create(network *n, random_state *random, int number)
{
    const int hidden = n->tested->hidden;
    layer *made = &n->layers[number];
    int32_t *matrix = case_allocate(n->run, (size_t)hidden * (size_t)hidden, sizeof *matrix);
    made->from = case_allocate(n->run, (size_t)hidden, sizeof *made->from);
    made->sign = case_allocate(n->run, (size_t)hidden, sizeof *made->sign);
    made->bias = random_integers(n, random, (size_t)hidden, 2);
    for (int j = 0; j < hidden; j++) {
        const int k = (int)random_below(random, (uint64_t)j + 1);
        made->from[j] = made->from[k];
        made->from[k] = j;
        made->sign[j] = random_below(random, 4) == 0 ? -1 : 1;
    }
    for (int j = 0; j < hidden; j++) {
        matrix[made->from[j] * hidden + j] = made->sign[j];
    }
    n->weights[number] = array_upload(n, hidden, hidden, matrix);
    if (n->tested->levels > 0) {
        ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
        options.levels = n->tested->levels;
        n->weights[number] =
            array_own(n->run, ops_array_prepare(n->weights[number], &options), "ops_array_prepare");
    }
    n->biases[number] = array_upload(n, 0, hidden, made->bias);
}

static void network_create(network *n)
{
    const network_case *tested = n->tested;
    const size_t count = (size_t)tested->batch * (size_t)tested->hidden;
    random_state random = {n->run->seed};
    for (int i = 0; i < tested->layers; i++) {
        layer_create(n, &random, i);
    }
    for (int i = 0; i < INPUTS; i++) {
        n->inputs[i] = random_integers(n, &random, count, 8);
        n->x[i] = array_upload(n, tested->batch, tested->hidden, n->inputs[i]);
    }
    n->target = random_integers(n, &random, count, 8);
    n->y = array_upload(n, tested->batch, tested->hidden, n->target);
}

static void checks_allocate(network *n)
{
    const size_t hidden = (size_t)n->tested->hidden, square = hidden * hidden,
                 count = (size_t)n->tested->batch * hidden;
    for (int i = 0; i <= n->tested->layers; i++) {
        n->outputs[i] = case_allocate(n->run, count, sizeof *n->outputs[i]);
    }
    n->gradient = case_allocate(n->run, count, sizeof *n->gradient);
    n->wanted = case_allocate(n->run, square, sizeof *n->wanted);
    n->wanted_biases = case_allocate(n->run, hidden, sizeof *n->wanted_biases);
    n->row = case_allocate(n->run, hidden, sizeof *n->row);
    n->found = case_allocate(n->run, count > square ? count : square, sizeof(double));
}

/* The weights and biases after a step down the gradient of half the squared error. */
static void updates_make(const network *n, ops_array *const *outputs, ops_array **results)
{
    const int layers = n->tested->layers;
    ops_array *zero = ops_array_scalar(n->run->ops, n->tested->type, 0.0);
    ops_array *gradient = ops_sub(outputs[layers], n->y);
    for (int i = layers - 1; i >= 0; i--) {
        gradient = ops_array_where(ops_gt(outputs[i + 1], zero), gradient, zero);
        ops_array *of_weights =
            ops_array_matmul(ops_array_transpose(outputs[i], 0, 1), gradient, HAL_GEMM_STRICT);
        ops_array *of_biases = ops_array_reduce(OPS_REDUCE_SUM, 0, 0, gradient);
        results[2 * i] = ops_sub(n->weights[i], ops_mul_scalar(of_weights, rate));
        results[2 * i + 1] = ops_sub(n->biases[i], ops_mul_scalar(of_biases, rate));
        gradient = i > 0 ? ops_array_matmul(gradient, ops_array_transpose(n->weights[i], 0, 1),
                                            HAL_GEMM_STRICT)
                         : NULL;
    }
}

static uint32_t result_count(const network_case *tested)
{
    return tested->is_training ? 2 * (uint32_t)tested->layers : 1;
}

/* The case owns the results. */
static void step_make(network *n, ops_array *x, ops_array **results)
{
    const network_case *tested = n->tested;
    const uint32_t precision = tested->type == HAL_TYPE_F32 ? HAL_GEMM_STRICT : HAL_GEMM_FAST;
    ops_array *outputs[MOST_LAYERS + 1] = {x};
    scope_begin(n->run);
    for (int i = 0; i < tested->layers; i++) {
        ops_array *product =
            tested->levels > 0
                ? ops_array_matmul_by_levels(outputs[i], n->weights[i], tested->levels)
                : ops_array_matmul(outputs[i], n->weights[i], precision);
        outputs[i + 1] = ops_relu(ops_add(product, n->biases[i]));
    }
    if (tested->is_training) {
        updates_make(n, outputs, results);
    } else {
        results[0] = outputs[tested->layers];
    }
    for (uint32_t i = 0; i < result_count(tested); i++) {
        results[i] = array_own(n->run, ops_array_keep(results[i]), "a result");
    }
    scope_end(n->run);
}

static void result_check(network *n, ops_array *found, const double *wanted, const char *what,
                         int step)
{
    const hal_type type = n->tested->type;
    const size_t count = (size_t)ops_array_get_element_count(found);
    const size_t bytes = count * hal_type_size(type);
    case_ok(n->run, ops_array_read(found, bytes, n->found), what);
    for (size_t i = 0; i < count; i++) {
        const double element = number_get(type, n->found, i);
        case_check(n->run, element == wanted[i], "step %d: %s[%zu] is %g, expected %g", step, what,
                   i, element, wanted[i]);
    }
}

static void forward_compute(const network *n, const int32_t *x)
{
    const int hidden = n->tested->hidden;
    const size_t rows = (size_t)n->tested->batch;
    for (size_t i = 0; i < rows * (size_t)hidden; i++) {
        n->outputs[0][i] = x[i];
    }
    for (int l = 0; l < n->tested->layers; l++) {
        const layer *at = &n->layers[l];
        for (size_t r = 0; r < rows; r++) {
            const double *in = n->outputs[l] + r * (size_t)hidden;
            double *out = n->outputs[l + 1] + r * (size_t)hidden;
            for (int j = 0; j < hidden; j++) {
                const double sum = at->sign[j] * in[at->from[j]] + at->bias[j];
                out[j] = sum > 0 ? sum : 0;
            }
        }
    }
}

/* Layer l backwards: checks its results. */
static void layer_check(network *n, int l, ops_array *const *results, int step)
{
    const layer *at = &n->layers[l];
    const size_t hidden = (size_t)n->tested->hidden, rows = (size_t)n->tested->batch;
    memset(n->wanted, 0, hidden * hidden * sizeof *n->wanted);
    for (size_t j = 0; j < hidden; j++) {
        n->wanted[(size_t)at->from[j] * hidden + j] = at->sign[j];
        n->wanted_biases[j] = at->bias[j];
    }
    for (size_t r = 0; r < rows; r++) {
        double *gradient = n->gradient + r * hidden;
        for (size_t j = 0; j < hidden; j++) {
            gradient[j] = n->outputs[l + 1][r * hidden + j] > 0 ? gradient[j] : 0;
            n->wanted_biases[j] -= rate * gradient[j];
        }
        for (size_t k = 0; k < hidden; k++) {
            const double in = rate * n->outputs[l][r * hidden + k];
            for (size_t j = 0; j < hidden && in != 0; j++) {
                n->wanted[k * hidden + j] -= in * gradient[j];
            }
        }
        for (size_t j = 0; j < hidden; j++) {
            n->row[at->from[j]] = at->sign[j] * gradient[j];
        }
        memcpy(gradient, n->row, hidden * sizeof *gradient);
    }
    result_check(n, results[2 * l], n->wanted, "weights", step);
    result_check(n, results[2 * l + 1], n->wanted_biases, "biases", step);
}

static void step_check(network *n, ops_array *const *results, int step)
{
    const network_case *tested = n->tested;
    const size_t count = (size_t)tested->batch * (size_t)tested->hidden;
    const double *last = n->outputs[tested->layers];
    forward_compute(n, n->inputs[step % INPUTS]);
    if (!tested->is_training) {
        result_check(n, results[0], last, "the result", step);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        n->gradient[i] = last[i] - n->target[i];
    }
    for (int l = tested->layers - 1; l >= 0; l--) {
        layer_check(n, l, results, step);
    }
}

static ops_graph *step_record(network *n)
{
    ops_array *results[MOST_RESULTS];
    recording_begin(n->run);
    step_make(n, n->x[0], results);
    return recording_end(n->run, &n->x[0], 1, results, result_count(n->tested));
}

/* The first steps are read at once, the others after the last one was submitted. */
static void run_network(case_run *run, const void *parameters)
{
    const network_case *tested = parameters;
    const uint32_t count = result_count(tested);
    ops_array *results[STEPS][MOST_RESULTS];
    network n = {.run = run, .tested = tested};
    case_claim_storage(run, tested->type);
    network_create(&n);
    checks_allocate(&n);
    ops_graph *graph = tested->is_graph ? step_record(&n) : NULL;
    for (int step = 0; step < STEPS; step++) {
        ops_array *x = n.x[step % INPUTS];
        if (!graph) {
            step_make(&n, x, results[step]);
            case_ok(run, ops_array_evaluate(results[step], count), "ops_array_evaluate");
        } else {
            case_ok(run, ops_graph_launch(graph, &x, 1, results[step], count), "ops_graph_launch");
            for (uint32_t i = 0; i < count; i++) {
                array_own(run, results[step][i], "a result of the launch");
            }
        }
        if (step < STEPS / 2) {
            step_check(&n, results[step], step);
        }
    }
    for (int step = STEPS / 2; step < STEPS; step++) {
        step_check(&n, results[step], step);
    }
}

/* Two networks take turns, of which the first is large enough for the matrix units. Their chains of
 * kernels are equally long, so that a plugin which keeps some chains for all uses one for both; the
 * second network goes twice, so that the turns do not agree with the number of chains, and its
 * kernels tend to have 13 groups in a row, which no size of clusters divides. */
static void run_turns(case_run *run, const void *parameters)
{
    const network_case *tested = parameters;
    network networks[2];
    ops_array *results[TURNS][3];
    for (int i = 0; i < 2; i++) {
        networks[i] = (network){.run = run, .tested = &tested[i]};
        case_claim_storage(run, tested[i].type);
        network_create(&networks[i]);
        checks_allocate(&networks[i]);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < 3; i++) {
            network *n = &networks[i > 0];
            step_make(n, n->x[turn % INPUTS], &results[turn][i]);
            case_ok(run, ops_array_evaluate(&results[turn][i], 1), "ops_array_evaluate");
        }
    }
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < 3; i++) {
            step_check(&networks[i > 0], &results[turn][i], turn);
        }
    }
}

static void network_add(case_list *list, const network_case *tested)
{
    case_add(list, run_network, tested, sizeof *tested,
             "ops/array_network(type=%s,layers=%d,batch=%d,hidden=%d,training=%d,graph=%d,"
             "levels=%u,seed=%llu)",
             hal_type_name(tested->type), tested->layers, tested->batch, tested->hidden,
             tested->is_training, tested->is_graph, tested->levels, (unsigned long long)list->seed);
}

/* Each layer makes the sums that the next one reads, unless a length leaves a rest. */
static void levels_add(case_list *list)
{
    static const int sizes[][3] = {{8, 64, 64}, {8, 32, 260}, {20, 4, 36}, {3, 33, 70}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t l = 1; l <= HAL_GEMM_MAX_LEVELS; l++) {
            const network_case tested = {.type = HAL_TYPE_F32,
                                         .layers = sizes[i][0],
                                         .batch = sizes[i][1],
                                         .hidden = sizes[i][2],
                                         .is_graph = i % 2 != 0,
                                         .levels = l};
            network_add(list, &tested);
        }
    }
}

static void turns_add(case_list *list, hal_type type)
{
    const network_case tested[2] = {{.type = type, .layers = 4, .batch = 64, .hidden = 1024},
                                    {.type = HAL_TYPE_F32, .layers = 4, .batch = 5, .hidden = 50}};
    case_add(list, run_turns, tested, sizeof tested, "ops/array_network_turns(type=%s,seed=%llu)",
             hal_type_name(type), (unsigned long long)list->seed);
}

void cases_ops_array_network(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16};
    static const int sizes[][3] = {
        {8, 1, 64}, {8, 64, 64}, {8, 512, 64}, {8, 33, 129}, {64, 5, 33}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            network_case tested = {.type = types[t],
                                   .layers = sizes[s][0],
                                   .batch = sizes[s][1],
                                   .hidden = sizes[s][2]};
            network_add(list, &tested);
            tested.is_graph = true;
            network_add(list, &tested);
            tested.is_training = true;
            if (tested.type == HAL_TYPE_F32 && 2 * tested.layers <= MOST_RESULTS) {
                network_add(list, &tested);
                tested.is_graph = false;
                network_add(list, &tested);
            }
        }
    }
    levels_add(list);
    turns_add(list, HAL_TYPE_F16);
    turns_add(list, HAL_TYPE_BF16);
}
