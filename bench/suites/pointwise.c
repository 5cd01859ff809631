/* Expressions over large arrays, compared with the triad on CPUs and with copies on devices with
 * device memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench.h"
#include "peers/bandwidth.h"
#include "suites/suites.h"

#define ELEMENTS INT64_C(16777216)
#define CHECKS 1000

/* z = f(x, y), and its reference for some elements. */
typedef struct formula {
    const char *name;
    int inputs;
    double flops; /* for each element; 0: not counted */
    hal_ir_value (*build)(hal_ir_builder *b, hal_ir_value x, hal_ir_value y);
    double (*reference)(double x, double y);
} formula;

typedef struct pointwise {
    bench_state *bench;
    const ops_expression *expression;
    ops_tensor inputs[2], output;
    int input_count;
} pointwise;

static hal_ir_value build_copy(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    (void)b;
    (void)y;
    return x;
}

static double copy(double x, double y)
{
    (void)y;
    return x;
}

static hal_ir_value build_add(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_add(b, x, y);
}

static double add(double x, double y)
{
    return x + y;
}

/* relu(x y + x), then sigmoid. */
static hal_ir_value build_chain(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return ops_unary_value(b, OPS_SIGMOID, ops_unary_value(b, OPS_RELU, hal_ir_fma(b, x, y, x)));
}

static double chain(double x, double y)
{
    const double r = x * y + x;
    return 1.0 / (1.0 + exp(r > 0.0 ? -r : 0.0));
}

static hal_ir_value build_exp(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    (void)y;
    return ops_unary_value(b, OPS_EXP, x);
}

static double exponential(double x, double y)
{
    (void)y;
    return exp(x);
}

static hal_ir_value build_tanh(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    (void)y;
    return ops_unary_value(b, OPS_TANH, x);
}

static double hyperbolic(double x, double y)
{
    (void)y;
    return tanh(x);
}

static const formula formulas[] = {
    {"copy", 1, 0.0, build_copy, copy},
    {"x + y", 2, 1.0, build_add, add},
    {"sigmoid(relu(x*y+x))", 2, 0.0, build_chain, chain},
    {"exp", 1, 0.0, build_exp, exponential},
    {"tanh", 1, 0.0, build_tanh, hyperbolic},
};

static void run_device(void *user, int calls)
{
    pointwise *p = user;
    bench_state *bench = p->bench;
    for (int i = 0; i < calls && !bench->failed; i++) {
        bench_ok(bench,
                 ops_pointwise(bench->ops, p->expression, p->inputs, (uint32_t)p->input_count,
                               &p->output, 1),
                 "ops_pointwise");
    }
    bench_ok(bench, hal_queue_wait(bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

static bool make(bench_state *bench, const formula *f, hal_type type, int64_t count,
                 pointwise *made, void **hosts, ops_expression **expression)
{
    const hal_type value = hal_type_of_value(type);
    hal_ir_builder *b = NULL;
    if (!bench_ok(bench, hal_ir_builder_create_fragment("formula", &b), "a fragment")) {
        return false;
    }
    const hal_ir_value x = hal_ir_input(b, 0, value);
    const hal_ir_value y = f->inputs > 1 ? hal_ir_input(b, 1, value) : HAL_IR_NONE;
    hal_ir_output(b, 0, f->build(b, x, y));
    bool well = bench_ok(bench, ops_expression_create(b, expression), "ops_expression_create");
    for (int i = 0; i < f->inputs && well; i++) {
        hosts[i] = malloc((size_t)count * hal_type_size(type));
        if (!hosts[i]) {
            return bench_fail(bench, "out of memory");
        }
        bench_random(type, hosts[i], (size_t)count, (uint64_t)i + 11);
        well = bench_ok(
            bench, ops_tensor_from_host(bench->ops, type, 1, &count, hosts[i], &made->inputs[i]),
            "an input");
    }
    return well && bench_ok(bench, ops_tensor_create(bench->ops, type, 1, &count, &made->output),
                            "an output");
}

static bool check(bench_state *bench, const formula *f, pointwise *made, void *const *hosts,
                  int64_t count)
{
    const hal_type type = made->output.type;
    void *results = malloc((size_t)count * hal_type_size(type));
    bool well =
        results && bench_ok(bench,
                                    ops_tensor_read(bench->ops, &made->output,
                                                    (uint64_t)count * hal_type_size(type), results),
                                    "a result");
    const double tolerance = type == HAL_TYPE_F64 ? 1e-14 : type == HAL_TYPE_F32 ? 1e-6 : 1e-2;
    for (int64_t s = 0; s < CHECKS && well; s++) {
        const size_t at = (size_t)(s == 0 ? count - 1 : s * (count / CHECKS));
        const double x = bench_value(type, hosts[0], at);
        const double y = f->inputs > 1 ? bench_value(type, hosts[1], at) : 0.0;
        const double expected = f->reference(x, y), value = bench_value(type, results, at);
        well = fabs(value - expected) <= tolerance * (fabs(expected) + 1e-3) ||
               bench_fail(bench, "%s: element %zu is %.9g instead of %.9g", f->name, at, value,
                          expected);
    }
    free(results);
    return well;
}

static void run_formula(bench_state *bench, const formula *f, hal_type type, int64_t count,
                        baselines *all)
{
    void *hosts[2] = {NULL, NULL};
    ops_expression *expression = NULL;
    pointwise made = {.bench = bench, .input_count = f->inputs};
    measured competitors[1 + BENCH_MAX_PEERS] = {{.function = run_device, .user = &made}};
    const int competitor_count = baselines_list(all, competitors);
    bool well = make(bench, f, type, count, &made, hosts, &expression);
    if (well) {
        made.expression = expression;
        run_device(&made, 1);
        well = !bench->failed && check(bench, f, &made, hosts, count);
    }
    free(hosts[0]);
    free(hosts[1]);
    bench_row *row = well ? bench_add(bench, f->name, type) : NULL;
    if (row) {
        measure_alternating(competitors, competitor_count, bench->options.seconds);
        row->n = count;
        row->time = competitors[0].time;
        baselines_add(all, competitors, competitor_count, row);
        bench_rate(row, 0.0, (double)count * (f->inputs + 1) * hal_type_size(type));
        row->gflops = f->flops * (double)count / row->time.median_us * 1e-3;
    }
    ops_expression_destroy(expression);
    ops_tensor_release(&made.inputs[0]);
    ops_tensor_release(&made.inputs[1]);
    ops_tensor_release(&made.output);
}

void suite_pointwise(bench_state *bench)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16};
    const int sizes = bench->options.size_count > 0 ? bench->options.size_count : 1;
    for (int s = 0; s < sizes; s++) {
        const int64_t count = bench->options.size_count > 0 ? bench->options.sizes[s][0] : ELEMENTS;
        baselines all;
        const bool well = baselines_create(bench, count, &all);
        for (int t = 0; t < 4 && well; t++) {
            for (size_t f = 0; f < sizeof formulas / sizeof formulas[0]; f++) {
                if (bench_wants(bench, types[t], t == 0)) {
                    run_formula(bench, &formulas[f], types[t], count, &all);
                }
            }
        }
        baselines_destroy(&all);
    }
}
