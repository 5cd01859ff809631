/* Products of quantised weights next to those of bf16 weights, over named and random shapes.
 * Weights are read from device memory: each call of a graph multiplies by other ones, until they
 * exceed what caches hold. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench.h"
#include "suites/suites.h"

enum { MAX_COPIES = 256, CHECKS = 64 };

typedef struct cell {
    ops_quantised_format format;
    int64_t m, n, k, block; /* block 0: a scale for each column */
    bool by_rows;           /* weights are stored k x n, else n x k */
} cell;

static const struct {
    const char *name;
    ops_quantised_format format;
    hal_type type;
    uint32_t bits;
    int64_t block;
} kinds[] = {{"int8", OPS_QUANTISED_I8, HAL_TYPE_I8, 8, 0},
             {"int4", OPS_QUANTISED_U4, HAL_TYPE_U8, 4, 128},
             {"int4", OPS_QUANTISED_I4, HAL_TYPE_U8, 4, 32},
             {"fp8", OPS_QUANTISED_E4M3, HAL_TYPE_F8_E4M3, 8, 128},
             {"mxfp4", OPS_QUANTISED_E2M1, HAL_TYPE_U8, 4, 32}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const int64_t named[][3] = {{1, 4096, 4096},   {1, 14336, 4096},  {1, 4096, 14336},
                                   {4, 14336, 4096},  {8, 14336, 4096},  {16, 14336, 4096},
                                   {32, 14336, 4096}, {2048, 4096, 4096}};
enum { NAMED = sizeof named / sizeof named[0] };

/* One competitor: the graph of a product by each copy of the weights. */
typedef struct competitor {
    bench_state *bench;
    hal_graph *graph;
    int copies, left; /* of the last launch: calls that it had too many */
} competitor;

typedef struct run {
    bench_state *bench;
    const cell *cell;
    uint32_t bits;
    hal_type type; /* of A, C and the weights without quantisation */
    int64_t blocks;
    int copies;
    ops_tensor x, y, values, scales, weights; /* of all copies: the first axis */
    uint64_t packed_bytes;                    /* of one copy, with scales */
} run;

static ops_tensor of_copy(const ops_tensor *all, int copy, bool turned)
{
    ops_tensor t = {all->buffer,
                    all->type,
                    2,
                    all->offset + copy * all->stride[0],
                    {all->shape[1], all->shape[2]},
                    {all->stride[1], all->stride[2]}};
    if (turned) {
        t = (ops_tensor){
            t.buffer, t.type, 2, t.offset, {t.shape[1], t.shape[0]}, {t.stride[1], t.stride[0]}};
    }
    return t;
}

static ops_quantised quantised_of(const run *r, int copy)
{
    ops_quantised q = OPS_QUANTISED_DEFAULT;
    q.format = r->cell->format;
    q.values = of_copy(&r->values, copy, !r->cell->by_rows);
    q.scales = of_copy(&r->scales, copy, !r->cell->by_rows);
    q.zero = q.format == OPS_QUANTISED_U4 ? 8 : 0;
    return q;
}

static bool make_random(run *r, hal_type type, const int64_t shape[3], uint64_t key, double low,
                        double high, ops_tensor *made)
{
    bench_state *bench = r->bench;
    ops_tensor as = {0};
    const int64_t count[1] = {shape[0] * shape[1] * shape[2]};
    const bool is_bytes = type == HAL_TYPE_I8 || type == HAL_TYPE_U8;
    if (!bench_ok(bench, ops_tensor_create(bench->ops, type, 3, shape, made), "weights")) {
        return false;
    }
    as = *made;
    as.rank = 1;
    as.shape[0] = is_bytes ? count[0] / 4 : count[0];
    as.stride[0] = 1;
    as.type = is_bytes ? HAL_TYPE_U32 : type; /* all bits are random */
    return bench_ok(bench, ops_random_uniform(bench->ops, (ops_random_key){key, 0}, low, high, &as),
                    "random weights");
}

static bool run_open(run *r, bench_state *bench, const cell *c, uint32_t bits, hal_type values)
{
    const int64_t row_bytes = c->k * bits / 8, blocks = c->block ? c->k / c->block : 1;
    const int64_t bytes = c->n * row_bytes;
    const bool is_gpu =
        bench->info->kind != HAL_DEVICE_CPU && bench->info->kind != HAL_DEVICE_SOFTWARE;
    const double beyond = is_gpu ? 256e6 : 32e6; /* what caches hold */
    *r = (run){.bench = bench, .cell = c, .bits = bits, .blocks = blocks};
    r->type = is_gpu ? HAL_TYPE_BF16 : HAL_TYPE_F32;
    const double copies = ceil(beyond / (double)bytes);
    r->copies = copies > MAX_COPIES ? MAX_COPIES : copies < 2 ? 2 : (int)copies;
    r->packed_bytes = (uint64_t)(bytes + c->n * blocks * hal_type_size(r->type));
    const int64_t x[3] = {1, c->m, c->k}, y[3] = {1, c->m, c->n};
    const int64_t q[2][3] = {{r->copies, c->n, row_bytes}, {r->copies, row_bytes, c->n}};
    const int64_t s[2][3] = {{r->copies, c->n, blocks}, {r->copies, blocks, c->n}};
    const int64_t w[3] = {r->copies, c->n, c->k};
    return make_random(r, r->type, x, 1, -1, 1, &r->x) &&
           make_random(r, values, q[c->by_rows], 2, -2, 2, &r->values) &&
           make_random(r, r->type, s[c->by_rows], 3, 0.001, 0.01, &r->scales) &&
           make_random(r, r->type, w, 4, -1, 1, &r->weights) &&
           bench_ok(bench, ops_tensor_create(bench->ops, r->type, 3, y, &r->y), "result");
}

static ops_gemm_options fast_options(void)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_FAST;
    return options;
}

static void run_close(run *r)
{
    ops_tensor_release(&r->x);
    ops_tensor_release(&r->y);
    ops_tensor_release(&r->values);
    ops_tensor_release(&r->scales);
    ops_tensor_release(&r->weights);
}

static bool multiply(const run *r, int copy, bool is_quantised)
{
    const ops_tensor x = of_copy(&r->x, 0, false), y = of_copy(&r->y, 0, false);
    const ops_tensor w = of_copy(&r->weights, copy, true);
    const ops_gemm_options options = fast_options();
    const ops_quantised q = quantised_of(r, copy);
    return bench_ok(r->bench,
                    is_quantised ? ops_gemm_quantised(r->bench->ops, &options, &x, &q, &y)
                                 : ops_gemm(r->bench->ops, &options, &x, &w, &y),
                    is_quantised ? "ops_gemm_quantised" : "ops_gemm");
}

static bool competitor_open(competitor *c, const run *r, bool is_quantised)
{
    bench_state *bench = r->bench;
    *c = (competitor){.bench = bench, .copies = r->copies};
    bool well = bench_ok(bench, hal_graph_begin(bench->queue), "hal_graph_begin");
    for (int i = 0; i < r->copies && well; i++) {
        well = multiply(r, i, is_quantised);
    }
    const hal_status status = hal_graph_end(bench->queue, NULL, 0, &c->graph);
    return bench_ok(bench, status, "hal_graph_end") && well;
}

/* A call is one product; launches of the graph have `copies`. */
static void launch(void *user, int calls)
{
    competitor *c = user;
    for (int i = 0; i < calls && !c->bench->failed; i += c->copies) {
        bench_ok(c->bench, hal_graph_launch(c->bench->queue, c->graph, NULL, 0),
                 "hal_graph_launch");
    }
    bench_ok(c->bench, hal_queue_wait(c->bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* Some elements, in double precision, from the weights that ops_dequantise writes. */
static bool check(const run *r)
{
    bench_state *bench = r->bench;
    const cell *c = r->cell;
    const int64_t shape[2] = {c->k, c->n};
    const size_t size = hal_type_size(r->type);
    const ops_tensor x = of_copy(&r->x, 0, false), y = of_copy(&r->y, 0, false);
    const ops_quantised q = quantised_of(r, 0);
    ops_tensor b;
    if (!bench_ok(bench, ops_tensor_create(bench->ops, HAL_TYPE_F32, 2, shape, &b), "weights")) {
        return false;
    }
    float *weights = malloc((size_t)(c->k * c->n) * sizeof *weights);
    uint8_t *a = malloc((size_t)(c->m * c->k) * size), *got = malloc((size_t)(c->m * c->n) * size);
    bool well = (weights && a && got) || bench_fail(bench, "no memory");
    well =
        well && multiply(r, 0, true) &&
        bench_ok(bench, ops_dequantise(bench->ops, &q, &b), "ops_dequantise") &&
        bench_ok(
            bench,
            ops_tensor_read(bench->ops, &b, (uint64_t)(c->k * c->n) * sizeof *weights, weights),
            "weights") &&
        bench_ok(bench, ops_tensor_read(bench->ops, &x, (uint64_t)(c->m * c->k) * size, a), "A") &&
        bench_ok(bench, ops_tensor_read(bench->ops, &y, (uint64_t)(c->m * c->n) * size, got), "C");
    for (int i = 0; i < CHECKS && well; i++) {
        const int64_t at = i * 7919 % (c->m * c->n), row = at / c->n, column = at % c->n;
        double sum = 0, sizes = 0;
        for (int64_t k = 0; k < c->k; k++) {
            const double term = bench_value(r->type, a, (size_t)(row * c->k + k)) *
                                (double)weights[k * c->n + column];
            sum += term;
            sizes += fabs(term);
        }
        const double found = bench_value(r->type, got, (size_t)at);
        well = fabs(found - sum) <= 0x1p-8 * (fabs(sum) + sizes) ||
               bench_fail(bench, "element %" PRId64 " is %g instead of %g", at, found, sum);
    }
    free(weights);
    free(a);
    free(got);
    ops_tensor_release(&b);
    return well;
}

static void add_row(bench_state *bench, const cell *c, int kind)
{
    run r;
    competitor ours = {0}, full = {0};
    char name[96];
    bool well = run_open(&r, bench, c, kinds[kind].bits, kinds[kind].type) && check(&r) &&
                competitor_open(&ours, &r, true) && competitor_open(&full, &r, false);
    if (well) {
        measured competitors[2] = {{.function = launch, .user = &ours, .least = r.copies},
                                   {.function = launch, .user = &full, .least = r.copies}};
        measure_alternating(competitors, 2, bench->options.seconds);
        snprintf(name, sizeof name, "%s %s %" PRId64 "x%" PRId64 "x%" PRId64, kinds[kind].name,
                 c->block ? "blocks" : "columns", c->m, c->n, c->k);
        if (c->block) {
            snprintf(name, sizeof name, "%s/%" PRId64 "%s %" PRId64 "x%" PRId64 "x%" PRId64,
                     kinds[kind].name, c->block, c->by_rows ? " by rows" : "", c->m, c->n, c->k);
        }
        bench_row *row = bench->failed ? NULL : bench_add(bench, name, r.type);
        if (row) {
            const ops_tensor x = of_copy(&r.x, 0, false), y = of_copy(&r.y, 0, false);
            const ops_quantised q = quantised_of(&r, 0);
            row->m = c->m;
            row->n = c->n;
            row->k = c->k;
            row->time = competitors[0].time;
            const ops_gemm_options options = fast_options();
            ops_gemm_quantised_describe(bench->ops, &options, &x, &q, &y, sizeof row->how,
                                        row->how);
            bench_rate(row, 2.0 * (double)(c->m * c->n) * (double)c->k,
                       (double)r.packed_bytes +
                           (double)(c->m * (c->k + c->n) * hal_type_size(r.type)));
            bench_peer *peer = bench_add_peer(row, "full", &competitors[1].time);
            peer->ratio = competitors[1].time.median_us / row->time.median_us;
        }
    }
    hal_graph_destroy(ours.graph);
    hal_graph_destroy(full.graph);
    run_close(&r);
}

/* A random shape: any length of whole blocks, few rows in most. */
static cell cell_draw(uint64_t *state, int kind)
{
    const double place = (double)(bench_word(state) >> 11) * 0x1p-53;
    const int64_t rows[] = {1, 1, 2, 4, 8, 16, 32, 64};
    const uint64_t word = bench_word(state);
    return (cell){.format = kinds[kind].format,
                  .m = rows[word % 8],
                  .n = 64 * (1 + (int64_t)(word >> 8 & 255)),
                  .k = 128 * (1 + (int64_t)(place * place * 127)),
                  .block = kinds[kind].block,
                  .by_rows = word >> 32 & 1};
}

void suite_quantised(bench_state *bench)
{
    uint64_t state = bench_seed(bench_seed_of(&bench->options));
    const int count = bench->options.random       ? (int)bench->options.random
                      : bench->options.size_count ? bench->options.size_count * KINDS
                                                  : NAMED * KINDS;
    for (int i = 0; i < count && !bench->failed; i++) {
        const int kind = i % KINDS;
        cell c = {.format = kinds[kind].format, .block = kinds[kind].block};
        const int64_t *size =
            bench->options.size_count ? bench->options.sizes[i / KINDS] : named[i / KINDS % NAMED];
        c.m = size[0];
        c.n = size[1];
        c.k = size[2];
        c = bench->options.random ? cell_draw(&state, kind) : c;
        add_row(bench, &c, kind);
    }
}
