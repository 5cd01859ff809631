/* Products of groups of rows, as mixtures of experts have them, over named and random shapes: one
 * kernel that reads where groups begin, next to a product for each group. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench.h"
#include "suites/suites.h"

enum { MAX_GROUPS = 256, CHECKS = 64 };

typedef struct cell {
    int64_t groups, rows, n, k;
    bool is_turned; /* weights are stored n x k */
} cell;

/* Groups, rows, n, k: experts with many rows, with few, and of decoding. */
static const int64_t named[][4] = {{8, 4096, 1024, 1024}, {8, 512, 2048, 1024},
                                   {64, 1024, 512, 1024}, {64, 64, 512, 1024},
                                   {128, 16, 768, 512},   {4, 333, 700, 500}};
enum { NAMED = sizeof named / sizeof named[0] };

typedef struct run {
    bench_state *bench;
    cell cell;
    hal_type type;
    ops_tensor a, b, c, offsets; /* b: [groups, k, n] */
    ops_tensor stored;           /* b as it is in memory */
    int64_t at[MAX_GROUPS + 1];
} run;

typedef struct competitor {
    const run *run;
    bool is_apart;
} competitor;

/* Sizes of groups in the proportion of squares of random numbers, the same for each cell: some have
 * most of the rows. */
static void draw_sizes(run *r)
{
    double weights[MAX_GROUPS], all = 0, sum = 0;
    uint64_t state = bench_seed(1);
    for (int64_t i = 0; i < r->cell.groups; i++) {
        const double x = (double)(bench_word(&state) >> 11) * 0x1p-53;
        weights[i] = x * x;
        all += weights[i];
    }
    for (int64_t i = 0; i < r->cell.groups; i++) {
        r->at[i] = (int64_t)((double)r->cell.rows * sum / all);
        sum += weights[i];
    }
    r->at[r->cell.groups] = r->cell.rows;
}

static bool run_open(run *r, bench_state *bench, const cell *c)
{
    const bool is_gpu =
        bench->info->kind != HAL_DEVICE_CPU && bench->info->kind != HAL_DEVICE_SOFTWARE;
    *r = (run){.bench = bench, .cell = *c, .type = is_gpu ? HAL_TYPE_BF16 : HAL_TYPE_F32};
    draw_sizes(r);
    const int64_t a[2] = {c->rows, c->k}, y[2] = {c->rows, c->n}, count[1] = {c->groups + 1};
    const int64_t b[2][3] = {{c->groups, c->k, c->n}, {c->groups, c->n, c->k}};
    ops_context *ops = bench->ops;
    const bool well =
        bench_ok(bench, ops_tensor_create(ops, r->type, 2, a, &r->a), "A") &&
        bench_ok(bench, ops_tensor_create(ops, r->type, 3, b[c->is_turned], &r->stored), "B") &&
        bench_ok(bench, ops_tensor_create(ops, r->type, 2, y, &r->c), "C") &&
        bench_ok(bench, ops_tensor_from_host(ops, HAL_TYPE_I64, 1, count, r->at, &r->offsets),
                 "offsets") &&
        bench_ok(bench, ops_random_uniform(ops, (ops_random_key){1, 0}, -1, 1, &r->a), "A") &&
        bench_ok(bench, ops_random_uniform(ops, (ops_random_key){2, 0}, -1, 1, &r->stored), "B");
    r->b = r->stored;
    return well && (!c->is_turned ||
                    bench_ok(bench, ops_tensor_transpose(&r->stored, 1, 2, &r->b), "transposed B"));
}

static void run_close(run *r)
{
    ops_tensor_release(&r->a);
    ops_tensor_release(&r->stored);
    ops_tensor_release(&r->c);
    ops_tensor_release(&r->offsets);
}

static bool multiply(const run *r, bool is_apart)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = r->type == HAL_TYPE_F32 ? HAL_GEMM_STRICT : HAL_GEMM_FAST;
    return bench_ok(r->bench,
                    ops_gemm_grouped(r->bench->ops, &options, &r->a, &r->b,
                                     is_apart ? NULL : &r->offsets, is_apart ? r->at : NULL, &r->c),
                    "ops_gemm_grouped");
}

static void launch(void *user, int calls)
{
    const competitor *c = user;
    bench_state *bench = c->run->bench;
    for (int i = 0; i < calls && !bench->failed; i++) {
        multiply(c->run, c->is_apart);
    }
    bench_ok(bench, hal_queue_wait(bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* Some elements, in double precision. */
static bool check(const run *r, bool is_apart)
{
    bench_state *bench = r->bench;
    const cell *c = &r->cell;
    const size_t size = hal_type_size(r->type);
    const uint64_t counts[3] = {(uint64_t)(c->rows * c->k), (uint64_t)(c->groups * c->k * c->n),
                                (uint64_t)(c->rows * c->n)};
    const ops_tensor *from[3] = {&r->a, &r->stored, &r->c};
    uint8_t *read[3] = {NULL, NULL, NULL};
    bool well = multiply(r, is_apart);
    for (int i = 0; i < 3 && well; i++) {
        read[i] = malloc(counts[i] * size);
        well = read[i] ? bench_ok(bench,
                                  ops_tensor_read(bench->ops, from[i], counts[i] * size, read[i]),
                                  "a matrix")
                       : bench_fail(bench, "no memory");
    }
    for (int i = 0; i < CHECKS && well; i++) {
        const int64_t at = i * 7919 % (c->rows * c->n), row = at / c->n, column = at % c->n;
        int64_t group = 0;
        while (row >= r->at[group + 1]) {
            group++;
        }
        double sum = 0, sizes = 0;
        for (int64_t k = 0; k < c->k; k++) {
            const int64_t in_b = c->is_turned ? (group * c->n + column) * c->k + k
                                              : (group * c->k + k) * c->n + column;
            const double term = bench_value(r->type, read[0], (size_t)(row * c->k + k)) *
                                bench_value(r->type, read[1], (size_t)in_b);
            sum += term;
            sizes += fabs(term);
        }
        const double found = bench_value(r->type, read[2], (size_t)at);
        well = fabs(found - sum) <= 0x1p-8 * (fabs(sum) + sizes) ||
               bench_fail(bench, "element %" PRId64 " is %g instead of %g", at, found, sum);
    }
    for (int i = 0; i < 3; i++) {
        free(read[i]);
    }
    return well;
}

static void add_row(bench_state *bench, const cell *c)
{
    run r;
    char name[96];
    if (run_open(&r, bench, c) && check(&r, false) && check(&r, true)) {
        competitor ways[2] = {{&r, false}, {&r, true}};
        measured competitors[2] = {{.function = launch, .user = &ways[0]},
                                   {.function = launch, .user = &ways[1]}};
        measure_alternating(competitors, 2, bench->options.seconds);
        snprintf(name, sizeof name, "%" PRId64 " groups of %" PRId64 "%s %" PRId64 "x%" PRId64,
                 c->groups, c->rows, c->is_turned ? " turned" : "", c->n, c->k);
        bench_row *row = bench->failed ? NULL : bench_add(bench, name, r.type);
        if (row) {
            const double size = hal_type_size(r.type);
            row->m = c->rows;
            row->n = c->n;
            row->k = c->k;
            row->time = competitors[0].time;
            ops_gemm_grouped_describe(bench->ops, NULL, &r.a, &r.b, &r.offsets, NULL, &r.c,
                                      sizeof row->how, row->how);
            bench_rate(row, 2.0 * (double)(c->rows * c->n) * (double)c->k,
                       size * (double)(c->rows * (c->k + c->n) + c->groups * c->k * c->n));
            bench_peer *peer = bench_add_peer(row, "apart", &competitors[1].time);
            peer->ratio = competitors[1].time.median_us / row->time.median_us;
        }
    }
    run_close(&r);
}

/* A random shape: few to many groups, of which some are empty. */
static cell cell_draw(uint64_t *state)
{
    const uint64_t word = bench_word(state), more = bench_word(state);
    return (cell){.groups = (int64_t)2 << (word & 63) % 7,
                  .rows =
                      (int64_t)1 + (int64_t)(word >> 8 & 4095) / (1 + (int64_t)(word >> 20 & 15)),
                  .n = 8 * (1 + (int64_t)(more & 127)),
                  .k = 8 * (1 + (int64_t)(more >> 8 & 127)),
                  .is_turned = more >> 16 & 1};
}

void suite_grouped(bench_state *bench)
{
    uint64_t state = bench_seed(bench_seed_of(&bench->options));
    const int count = bench->options.random ? (int)bench->options.random : 2 * NAMED;
    for (int i = 0; i < count && !bench->failed; i++) {
        const int64_t *size = named[i % NAMED];
        const cell fixed = {.groups = size[0],
                            .rows = size[1],
                            .n = size[2],
                            .k = size[3],
                            .is_turned = i >= NAMED};
        const cell c = bench->options.random ? cell_draw(&state) : fixed;
        add_row(bench, &c);
    }
}
