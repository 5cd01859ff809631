/* array_graph.c: steps over arrays that are recorded once and launched with other inputs give the
 * same bits as when each call is made anew; and rehearsals make kernels ahead. */
#include <inttypes.h>

#include "case/cases.h"
#include "ops/array_fixture.h"
#include "ops/fixture.h"

enum { BATCH = 3, WIDTH = 8, LAUNCHES = 5, MOST_OUTPUTS = 2 };

/* A step from a state and an input to outputs, of which the first is the next state. */
typedef struct step {
    const char *name;
    uint32_t output_count;
    void (*make)(ops_array *state, ops_array *weights, ops_array *x, ops_array **outputs);
} step;

static void recurrent(ops_array *state, ops_array *weights, ops_array *x, ops_array **outputs)
{
    ops_array *sum = ops_add(ops_matmul(state, weights), x);
    outputs[0] = ops_add(ops_mul(ops_sigmoid(sum), ops_tanh(sum)), ops_neg(x));
}

static void pointwise(ops_array *state, ops_array *weights, ops_array *x, ops_array **outputs)
{
    outputs[0] = ops_sin(ops_add(state, x));
    outputs[1] = ops_gelu(ops_mul(outputs[0], x));
}

static void reducing(ops_array *state, ops_array *weights, ops_array *x, ops_array **outputs)
{
    ops_array *norm = ops_array_reduce(OPS_REDUCE_SUM, 1, 1, ops_square(ops_add(state, x)));
    ops_array *one = ops_array_scalar(ops_array_get_context(x), HAL_TYPE_F32, 1.0);
    outputs[0] = ops_div(state, ops_sqrt(ops_add(norm, one)));
    outputs[1] = ops_array_softmax(1, ops_matmul(outputs[0], weights));
}

/* Outputs that are views. */
static void viewing(ops_array *state, ops_array *weights, ops_array *x, ops_array **outputs)
{
    ops_array *y = ops_mul(ops_cos(state), x);
    outputs[0] = ops_array_slice(y, 1, WIDTH - 1, WIDTH, -1);
    outputs[1] = ops_array_transpose(y, 0, 1);
}

static const step steps[] = {{"recurrent", 1, recurrent},
                             {"pointwise", 2, pointwise},
                             {"reducing", 2, reducing},
                             {"viewing", 2, viewing}};

/* A step in a scope; the case owns the outputs. */
static void step_make(array_run *r, const step *tested, ops_array *state, ops_array *x,
                      ops_array **outputs)
{
    scope_begin(r->run);
    tested->make(state, r->leaves[1], x, outputs);
    for (uint32_t i = 0; i < tested->output_count; i++) {
        array_own(r->run, ops_array_keep(outputs[i]), "an output of the step");
    }
    scope_end(r->run);
}

static void compare_launches(array_run *r, const step *tested, ops_graph *graph)
{
    case_run *run = r->run;
    ops_array *eager = r->leaves[0], *launched = eager;
    for (int i = 0; i < LAUNCHES; i++) {
        ops_array *x = r->leaves[2 + i], *want[MOST_OUTPUTS] = {NULL}, *got[MOST_OUTPUTS] = {NULL};
        ops_array *const inputs[2] = {launched, x};
        step_make(r, tested, eager, x, want);
        case_ok(run, ops_graph_launch(graph, inputs, 2, got, tested->output_count),
                "ops_graph_launch");
        for (uint32_t k = 0; k < tested->output_count; k++) {
            float values[2][WIDTH * WIDTH];
            const size_t elements = (size_t)ops_array_get_element_count(want[k]);
            comparison found;
            array_own(run, got[k], "an output of the launch");
            case_ok(run, ops_array_read(want[k], 4 * elements, values[0]), "eager");
            case_ok(run, ops_array_read(got[k], 4 * elements, values[1]), "launched");
            if (!compare_bits(HAL_TYPE_F32, values[1], values[0], elements, true, &found)) {
                case_report(run, &found, "a launch compared with the same calls");
            }
        }
        eager = want[0];
        launched = got[0];
    }
}

/* Leaves: the state, the weights, and an input for each launch. */
static void run_step(case_run *run, const void *parameters)
{
    const step *tested = parameters;
    const int64_t shape[2] = {BATCH, WIDTH}, square[2] = {WIDTH, WIDTH};
    array_run r = {.run = run, .random = {run->seed}};
    ops_array *outputs[MOST_OUTPUTS] = {NULL};
    array_add_leaf(&r, HAL_TYPE_F32, 2, shape, -1.0, 1.0, NULL);
    array_add_leaf(&r, HAL_TYPE_F32, 2, square, -0.5, 0.5, NULL);
    for (int i = 0; i < LAUNCHES; i++) {
        array_add_leaf(&r, HAL_TYPE_F32, 2, shape, -1.0, 1.0, NULL);
    }
    ops_array *const inputs[2] = {r.leaves[0], r.leaves[2]};
    recording_begin(run);
    step_make(&r, tested, r.leaves[0], r.leaves[2], outputs);
    ops_graph *graph = recording_end(run, inputs, 2, outputs, tested->output_count);
    compare_launches(&r, tested, graph);
}

static hal_status rehearse(ops_context *context, void *user)
{
    hal_status status = ops_scope_begin(context);
    if (status == HAL_OK) {
        ops_array *y = ops_tanh(ops_erf(ops_cos(user)));
        status = ops_array_evaluate(&y, 1);
        ops_scope_end(context);
    }
    return status;
}

static void run_rehearsal(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {BATCH, WIDTH};
    ops_array_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    float got[BATCH * WIDTH];
    array_run r = {.run = run, .random = {run->seed}};
    array_add_leaf(&r, HAL_TYPE_F32, 2, shape, -1.0, 1.0, NULL);
    case_ok(run, ops_prepare(run->ops, rehearse, r.leaves[0]), "ops_prepare");
    ops_context_get_statistics(run->ops, &before);
    scope_begin(run);
    ops_array *y =
        array_own(run, ops_array_keep(ops_tanh(ops_erf(ops_cos(r.leaves[0])))), "a chain");
    scope_end(run);
    case_ok(run, ops_array_read(y, sizeof got, got), "ops_array_read");
    ops_context_get_statistics(run->ops, &after);
    case_check(run, after.compiled == before.compiled,
               "%" PRIu64 " kernels were made though the program was rehearsed",
               after.compiled - before.compiled);
    case_check(run, after.kernels == before.kernels + 1,
               "a rehearsed chain took %" PRIu64 " kernels", after.kernels - before.kernels);
}

static void run_misuse(case_run *run, const void *parameters)
{
    const int64_t shape[1] = {WIDTH};
    const hal_status state = HAL_ERROR_INVALID_STATE, argument = HAL_ERROR_INVALID_ARGUMENT;
    float got[WIDTH];
    array_run r = {.run = run, .random = {run->seed}};
    ops_graph *graph = NULL;
    ops_array *number = array_own(run, ops_array_scalar(run->ops, HAL_TYPE_F32, 1.0), "a number");
    array_add_leaf(&r, HAL_TYPE_F32, 1, shape, -1.0, 1.0, NULL);
    ops_array *x = r.leaves[0];
    case_expect(run, ops_graph_end(run->ops, NULL, 0, &x, 1, &graph), state, "ops_graph_begin",
                "an end without a begin");
    recording_begin(run);
    case_expect(run, ops_graph_begin(run->ops), state, NULL, "a second begin");
    ops_array *y = array_own(run, ops_neg(x), "a negation");
    case_expect(run, ops_array_read(x, sizeof got, got), state, "recorded",
                "reading while a graph is recorded");
    case_expect(run, ops_graph_end(run->ops, &number, 1, &y, 1, &graph), argument, "constant",
                "a constant as input");
    case_check(run, !ops_neg(y), "an array of a dropped recording was taken");
    case_ok(run, ops_graph_begin(run->ops), "ops_graph_begin after a dropped recording");
    case_expect(run, ops_graph_end(run->ops, NULL, 0, &x, 1, &graph), argument, "recording",
                "an output from before");
    case_check(run, !graph, "a recording that failed gave a graph");
    case_ok(run, ops_array_read(x, sizeof got, got), "reading afterwards");
}

void cases_ops_array_graph(case_list *list)
{
    const unsigned long long seed = list->seed;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        case_add(list, run_step, &steps[i], sizeof steps[i], "ops/array_graph(step=%s,seed=%llu)",
                 steps[i].name, seed);
    }
    case_add(list, run_rehearsal, NULL, 0, "ops/array_graph(rehearsal,seed=%llu)", seed);
    case_add(list, run_misuse, NULL, 0, "ops/array_graph(misuse,seed=%llu)", seed);
}
