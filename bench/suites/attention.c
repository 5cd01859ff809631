/* Attention and its gradients over named and random shapes: the form that the library chooses, and
 * each by itself. */
#include <inttypes.h>
#include <math.h>
#include <ops/attention.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench.h"
#include "harness/interrupt.h"
#include "suites/suites.h"

/* `heads` share `groups` matrices of keys and values. */
typedef struct cell {
    hal_type type;
    int64_t heads, groups, m, n, d;
    int causal;
    bool is_random, has_gradients; /* the latter: they are measured, not the result */
    char name[96];
} cell;

typedef struct run {
    bench_state *bench;
    const cell *cell;
    uint32_t form;
    bool computes_gradients;
    ops_tensor q, k, v, y, dy, dq, dk, dv; /* from dy on: for gradients */
} run;

static const cell named[] = {
    {HAL_TYPE_BF16, 32, 32, 1500, 1500, 128, 0, 0, 0, ""},
    {HAL_TYPE_F16, 32, 32, 1500, 1500, 128, 0, 0, 0, ""},
    {HAL_TYPE_F32, 32, 32, 1500, 1500, 128, 0, 0, 0, ""},
    {HAL_TYPE_BF16, 48, 48, 512, 512, 64, 0, 0, 0, ""},
    {HAL_TYPE_F32, 48, 48, 512, 512, 64, 0, 0, 0, ""},
    {HAL_TYPE_BF16, 32, 32, 2048, 2048, 128, 1, 0, 0, ""},
    {HAL_TYPE_BF16, 32, 8, 4096, 4096, 128, 1, 0, 0, ""},
    {HAL_TYPE_F16, 16, 16, 8192, 8192, 64, 0, 0, 0, ""},
    {HAL_TYPE_BF16, 16, 16, 16384, 16384, 128, 1, 0, 0, ""},
    {HAL_TYPE_BF16, 12, 12, 197, 197, 64, 0, 0, 0, ""},
    {HAL_TYPE_F32, 12, 12, 128, 128, 64, 1, 0, 0, ""},
    {HAL_TYPE_BF16, 32, 8, 1, 4096, 128, 0, 0, 0, ""},
    {HAL_TYPE_BF16, 32, 32, 1500, 1500, 128, 0, 0, 1, ""},
    {HAL_TYPE_BF16, 48, 48, 512, 512, 64, 0, 0, 1, ""},
    {HAL_TYPE_F16, 32, 8, 4096, 4096, 128, 1, 0, 1, ""},
    {HAL_TYPE_F32, 12, 12, 128, 128, 64, 1, 0, 1, ""},
};
enum { NAMED = sizeof named / sizeof named[0] };

/* ---- Cells ---- */

static int64_t draw_length(uint64_t *state, double most)
{
    const double place = (double)(bench_word(state) >> 11) * 0x1p-53;
    return llround(pow(most, place));
}

static cell cell_draw(uint64_t seed, uint64_t number)
{
    static const hal_type types[3] = {HAL_TYPE_BF16, HAL_TYPE_F16, HAL_TYPE_F32};
    uint64_t state = bench_seed(seed * 1000003 + number);
    cell drawn = {.type = types[bench_word(&state) % 3], .is_random = true};
    drawn.groups = draw_length(&state, 32);
    drawn.heads = drawn.groups << bench_word(&state) % 3;
    drawn.m = draw_length(&state, 4096);
    drawn.n = bench_word(&state) % 2 ? drawn.m : draw_length(&state, 4096);
    drawn.d = bench_word(&state) % 2 ? 64 << bench_word(&state) % 2 : draw_length(&state, 256);
    drawn.causal = bench_word(&state) % 2 && drawn.n >= drawn.m;
    return drawn;
}

static bool cell_passes(const bench_options *options, cell *c)
{
    const uint64_t most = options->largest ? options->largest : UINT64_MAX;
    snprintf(c->name, sizeof c->name,
             "%s %" PRId64 "/%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 "%s%s%s",
             hal_type_name(c->type), c->heads, c->groups, c->m, c->n, c->d,
             c->causal ? " causal" : "", c->has_gradients ? " gradients" : "",
             c->is_random ? " random" : "");
    return (uint64_t)(c->heads * c->m * c->n) <= most &&
           bench_name_passes(c->name, options->filter) &&
           (!options->types || bench_lists(options->types, hal_type_name(c->type)));
}

/* Calls `use` for each cell that the options select: --random N, or those with a name and 8. */
static void cells_each(const bench_options *options, void *user,
                       void (*use)(void *user, const cell *c, uint64_t seed))
{
    const uint64_t seed = bench_seed_of(options);
    const uint64_t drawn = options->random ? options->random : 8;
    for (uint64_t i = options->random ? NAMED : 0; i < NAMED + drawn; i++) {
        cell c = i < NAMED ? named[i] : cell_draw(seed, i - NAMED);
        if (cell_passes(options, &c)) {
            use(user, &c, seed);
        }
    }
}

static void cell_list(void *user, const cell *c, uint64_t seed)
{
    int *count = user;
    printf(*count == 0 ? "{\"seed\": %" PRIu64 ", \"cells\": [\n" : ",\n", seed);
    printf("{\"case\": \"%s\", \"type\": \"%s\", \"heads\": %" PRId64 ", \"groups\": %" PRId64
           ", \"m\": %" PRId64 ", \"n\": %" PRId64 ", \"d\": %" PRId64
           ", \"causal\": %s, \"gradients\": %s}",
           c->name, hal_type_name(c->type), c->heads, c->groups, c->m, c->n, c->d,
           c->causal ? "true" : "false", c->has_gradients ? "true" : "false");
    (*count)++;
}

bool attention_list(const bench_options *options)
{
    int count = 0;
    cells_each(options, &count, cell_list);
    printf(count > 0 ? "\n]}\n" : "{\"cells\": []}\n");
    return true;
}

/* ---- Runs ---- */

static void run_calls(void *user, int calls)
{
    run *r = user;
    bench_state *bench = r->bench;
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = r->cell->causal;
    options.form = r->form;
    options.precision = bench->options.precision;
    if (r->cell->type != HAL_TYPE_F32 && options.precision == HAL_GEMM_STRICT) {
        options.precision = HAL_GEMM_FAST;
    }
    const ops_tensor *const inputs[3] = {&r->q, &r->k, &r->v};
    const ops_tensor *const gradients[3] = {&r->dq, &r->dk, &r->dv};
    for (int i = 0; i < calls && !bench->failed; i++) {
        bench_ok(
            bench,
            r->computes_gradients
                ? ops_attention_gradients(bench->ops, &options, inputs, &r->y, &r->dy, gradients)
                : ops_attention(bench->ops, &options, &r->q, &r->k, &r->v, &r->y),
            r->cell->name);
    }
    bench_ok(bench, hal_queue_wait(bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* A tensor of random elements [groups, shared, rows, d], whose elements go to *elements. */
static bool tensor_fill(run *r, int64_t shared, int64_t rows, uint64_t seed, ops_tensor *x,
                        void **elements)
{
    const cell *c = r->cell;
    const int64_t shape[4] = {c->groups, shared, rows, c->d};
    const size_t count = (size_t)(c->groups * shared * rows * c->d);
    *elements = malloc(count * hal_type_size(c->type));
    if (!*elements) {
        return bench_fail(r->bench, "no memory");
    }
    bench_random(c->type, *elements, count, seed);
    return bench_ok(r->bench, ops_tensor_create(r->bench->ops, c->type, 4, shape, x), c->name) &&
           bench_ok(r->bench,
                    ops_tensor_write(r->bench->ops, x, *elements, count * hal_type_size(c->type)),
                    c->name);
}

/* Row `row` of a head in double precision. */
static void reference_row(const cell *c, void *const inputs[3], int64_t head, int64_t row,
                          double *scores, double *expected)
{
    const int64_t q = (head * c->m + row) * c->d;
    const int64_t k = head / (c->heads / c->groups) * c->n * c->d;
    double greatest = -HUGE_VAL, total = 0.0;
    const int64_t end = c->causal && row + c->n - c->m < c->n ? row + c->n - c->m + 1 : c->n;
    for (int64_t j = 0; j < end; j++) {
        scores[j] = 0.0;
        for (int64_t i = 0; i < c->d; i++) {
            scores[j] += bench_value(c->type, inputs[0], (size_t)(q + i)) *
                         bench_value(c->type, inputs[1], (size_t)(k + j * c->d + i));
        }
        scores[j] /= sqrt((double)c->d);
        greatest = fmax(greatest, scores[j]);
    }
    for (int64_t i = 0; i < c->d; i++) {
        expected[i] = 0.0;
    }
    for (int64_t j = 0; j < end; j++) {
        const double weight = exp(scores[j] - greatest);
        total += weight;
        for (int64_t i = 0; i < c->d; i++) {
            expected[i] += weight * bench_value(c->type, inputs[2], (size_t)(k + j * c->d + i));
        }
    }
    for (int64_t i = 0; i < c->d; i++) {
        expected[i] /= total;
    }
}

/* The row of dq, from the expected row of y. */
static void reference_gradient(const cell *c, void *const inputs[4], int64_t head, int64_t row,
                               double *scores, double *expected)
{
    const int64_t q = (head * c->m + row) * c->d;
    const int64_t k = head / (c->heads / c->groups) * c->n * c->d;
    const int64_t end = c->causal && row + c->n - c->m < c->n ? row + c->n - c->m + 1 : c->n;
    double total = 0.0, delta = 0.0;
    reference_row(c, inputs, head, row, scores, expected);
    for (int64_t i = 0; i < c->d; i++) {
        delta += expected[i] * bench_value(c->type, inputs[3], (size_t)(q + i));
        expected[i] = 0.0;
    }
    for (int64_t j = 0; j < end; j++) {
        total += exp(scores[j]);
    }
    for (int64_t j = 0; j < end; j++) {
        double change = -delta;
        for (int64_t i = 0; i < c->d; i++) {
            change += bench_value(c->type, inputs[3], (size_t)(q + i)) *
                      bench_value(c->type, inputs[2], (size_t)(k + j * c->d + i));
        }
        change *= exp(scores[j]) / total / sqrt((double)c->d);
        for (int64_t i = 0; i < c->d; i++) {
            expected[i] += change * bench_value(c->type, inputs[1], (size_t)(k + j * c->d + i));
        }
    }
}

/* Some rows of the result, or of dq; values are in [-1, 1). */
static bool check(run *r, void *const inputs[4])
{
    const cell *c = r->cell;
    const size_t count = (size_t)(c->heads * c->m * c->d);
    void *y = malloc(count * hal_type_size(c->type));
    double *scores = malloc((size_t)(c->n + c->d) * sizeof *scores);
    bool well = (y && scores) || bench_fail(r->bench, "no memory");
    run_calls(r, 1);
    well = well && !r->bench->failed &&
           bench_ok(r->bench,
                    ops_tensor_read(r->bench->ops, r->computes_gradients ? &r->dq : &r->y,
                                    count * hal_type_size(c->type), y),
                    c->name);
    const double bound = c->type == HAL_TYPE_F32 ? 1e-5 : c->type == HAL_TYPE_F16 ? 2e-3 : 1.6e-2;
    for (int64_t s = 0; s < 6 && well; s++) {
        const int64_t head = (c->heads - 1) * (s % 3) / 2, row = (c->m - 1) * s / 5;
        double *expected = scores + c->n;
        if (r->computes_gradients) {
            reference_gradient(c, inputs, head, row, scores, expected);
        } else {
            reference_row(c, inputs, head, row, scores, expected);
        }
        for (int64_t i = 0; i < c->d && well; i++) {
            const double got = bench_value(c->type, y, (size_t)((head * c->m + row) * c->d + i));
            well = fabs(got - expected[i]) <= bound ||
                   bench_fail(r->bench,
                              "%s: form %u: element %" PRId64 " of row %" PRId64 " of head %" PRId64
                              " is %g instead of %g",
                              c->name, r->form, i, row, head, got, expected[i]);
        }
    }
    free(y);
    free(scores);
    return well;
}

static bool has_kernel(run *r)
{
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = r->cell->causal;
    options.form = OPS_ATTENTION_KERNEL;
    options.precision = r->cell->type == HAL_TYPE_F32 ? HAL_GEMM_STRICT : HAL_GEMM_FAST;
    return ops_attention(r->bench->ops, &options, &r->q, &r->k, &r->v, &r->y) == HAL_OK;
}

/* The forms of a result; gradients have one. */
static int list_competitors(run *r, run forms[3], measured *competitors)
{
    int count = 0;
    for (uint32_t form = OPS_ATTENTION_ANY; form <= OPS_ATTENTION_BLOCKS; form++) {
        const bool is_wanted = form == OPS_ATTENTION_ANY || !r->computes_gradients;
        if (is_wanted && (form != OPS_ATTENTION_KERNEL || has_kernel(r))) {
            forms[count] = *r;
            forms[count].form = form;
            competitors[count] = (measured){.function = run_calls, .user = &forms[count]};
            count++;
        }
    }
    return count;
}

static void run_measure(run *r, double first_ms)
{
    static const char *const peers[3] = {"", "kernel", "blocks"};
    const cell *c = r->cell;
    run forms[3];
    measured competitors[3];
    const int count = list_competitors(r, forms, competitors);
    measure_alternating(competitors, count, r->bench->options.seconds);
    bench_row *row = r->bench->failed ? NULL : bench_add(r->bench, c->name, c->type);
    if (row) {
        row->time = competitors[0].time;
        row->first_ms = first_ms;
        row->m = c->m;
        row->n = c->n;
        row->k = c->d;
        for (int i = 1; i < count; i++) {
            bench_add_peer(row, peers[forms[i].form], &competitors[i].time);
        }
        const double products = c->has_gradients ? 10.0 : 4.0;
        const double flops = products * (double)(c->heads * c->m) * (double)(c->n * c->d);
        bench_rate(row, c->causal ? flops / 2.0 : flops, 0.0);
    }
}

/* The tensors; elements[0] to [3] are those of q, k, v and dy. */
static bool run_open(run *r, void *elements[8])
{
    const cell *c = r->cell;
    const int64_t shared = c->heads / c->groups;
    bool well = tensor_fill(r, shared, c->m, 1, &r->q, &elements[0]) &&
                tensor_fill(r, 1, c->n, 2, &r->k, &elements[1]) &&
                tensor_fill(r, 1, c->n, 3, &r->v, &elements[2]) &&
                tensor_fill(r, shared, c->m, 4, &r->y, &elements[4]);
    return well && (!c->has_gradients || (tensor_fill(r, shared, c->m, 5, &r->dy, &elements[3]) &&
                                          tensor_fill(r, shared, c->m, 6, &r->dq, &elements[5]) &&
                                          tensor_fill(r, 1, c->n, 7, &r->dk, &elements[6]) &&
                                          tensor_fill(r, 1, c->n, 8, &r->dv, &elements[7])));
}

static void cell_measure(void *user, const cell *c, uint64_t seed)
{
    bench_state *bench = user;
    const bool failed_before = bench->failed;
    run r = {.bench = bench, .cell = c};
    void *elements[8] = {NULL};
    if (interrupt_was_asked()) {
        return;
    }
    if (bench->note_count == 0) {
        bench_note(bench, "Random cells: --seed %" PRIu64, seed);
    }
    bench->failed = false;
    if (run_open(&r, elements)) {
        run_calls(&r, c->has_gradients ? 1 : 0); /* y, from which gradients are computed */
        r.computes_gradients = c->has_gradients;
        const double start = measure_now();
        run_calls(&r, 1);
        const double first_ms = 1e3 * (measure_now() - start);
        if (!bench->failed && check(&r, elements)) {
            run_measure(&r, first_ms);
        }
    }
    ops_tensor *const tensors[8] = {&r.q, &r.k, &r.v, &r.y, &r.dy, &r.dq, &r.dk, &r.dv};
    for (int i = 0; i < 8; i++) {
        ops_tensor_release(tensors[i]);
        free(elements[i]);
    }
    bench->failed |= failed_before;
}

void suite_attention(bench_state *bench)
{
    interrupt_watch();
    cells_each(&bench->options, bench, cell_measure);
}
