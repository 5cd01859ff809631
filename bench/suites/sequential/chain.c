/* 10,000 unary operations on 1,024 floats, each on the previous result.
 *
 * The functions come in a seeded random order. Five shrink numbers or keep their size, three
 * enlarge them and are drawn a third as often. So values stay within 2, positive and negative ones
 * remain distinct, and an error fades so slowly (by a factor of e in 24 operations) that the
 * results after 50, 64, 100, ... 10,000 operations show it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/raw/raw.h"
#include "suites/sequential/sequential.h"

#define OPERATIONS 10000
#define ORDER_SEED 2
#define INPUT_SEED 7
#define HELD_EVERY 50

static const ops_unary_function functions[] = {OPS_NEG, OPS_SIN,  OPS_TANH, OPS_ATAN,
                                               OPS_ERF, OPS_SINH, OPS_TAN,  OPS_EXPM1};
enum { OFTEN = 5, SELDOM = 3, DRAWS = 3 * OFTEN + SELDOM };

/* Lengths of chains whose results are checked; each is also a multiple of HELD_EVERY, or 64. */
static const int prefixes[] = {50, 64, 100, 1000, 2500, 5000, 7500, OPERATIONS};
enum { PREFIXES = sizeof prefixes / sizeof prefixes[0], HELD = OPERATIONS / HELD_EVERY };

typedef struct chain {
    bench_state *bench;
    bench_place place;
    ops_array *input;
    int fusion;
} chain;

/* References for both devices. */
typedef struct chain_reference {
    ops_unary_function order[OPERATIONS];
    float input[SEQUENTIAL_ELEMENTS];
    estimate held[HELD][SEQUENTIAL_ELEMENTS]; /* after each HELD_EVERY operations */
    estimate at_64[SEQUENTIAL_ELEMENTS];
} chain_reference;

static chain_reference *reference;

static void work_out(void)
{
    estimate now[SEQUENTIAL_ELEMENTS];
    uint64_t state = bench_seed(ORDER_SEED);
    for (int i = 0; i < OPERATIONS; i++) {
        const unsigned draw = (unsigned)((bench_word(&state) >> 33) % DRAWS);
        reference->order[i] = functions[draw < 3 * OFTEN ? draw % OFTEN : draw - 2 * OFTEN];
    }
    bench_random(HAL_TYPE_F32, reference->input, SEQUENTIAL_ELEMENTS, INPUT_SEED);
    for (int e = 0; e < SEQUENTIAL_ELEMENTS; e++) {
        now[e] = estimate_exact((double)reference->input[e]);
    }
    for (int i = 1; i <= OPERATIONS; i++) {
        for (int e = 0; e < SEQUENTIAL_ELEMENTS; e++) {
            now[e] = estimate_unary(reference->order[i - 1], now[e]);
        }
        if (i == 64) {
            memcpy(reference->at_64, now, sizeof now);
        } else if (i % HELD_EVERY == 0) {
            memcpy(reference->held[i / HELD_EVERY - 1], now, sizeof now);
        }
    }
}

static ops_array *record(chain *c, int operations)
{
    ops_array *x = ops_array_retain(c->input);
    for (int i = 0; i < operations; i++) {
        ops_array *y = ops_array_unary(reference->order[i], x);
        ops_array_release(x);
        x = y;
    }
    if (!x) {
        bench_fail(c->bench, "a chain: %s", hal_status_message());
    }
    return x;
}

static hal_status rehearse(ops_context *context, void *user)
{
    ops_array *last = record(user, OPERATIONS);
    const hal_status status = ops_array_evaluate(&last, 1);
    ops_array_release(last);
    (void)context;
    return status;
}

static const estimate *expected_after(int operations)
{
    return operations == 64 ? reference->at_64 : reference->held[operations / HELD_EVERY - 1];
}

static bool check_prefix(chain *c, int operations)
{
    float values[SEQUENTIAL_ELEMENTS];
    char what[96];
    ops_array *last = record(c, operations);
    const bool well =
        !c->bench->failed &&
        bench_ok(c->bench, ops_array_read(last, sizeof values, values), "ops_array_read");
    ops_array_release(last);
    snprintf(what, sizeof what, "%d operations on %s, %s", operations,
             hal_device_get_plugin_name(c->place.device), c->fusion ? "fused" : "unfused");
    return well &&
           estimate_check(c->bench, what, values, expected_after(operations), SEQUENTIAL_ELEMENTS);
}

/* Keeps every HELD_EVERY-th array and reads it. */
static bool check_held(chain *c)
{
    static ops_array *held[HELD];
    float values[SEQUENTIAL_ELEMENTS];
    bool well = true;
    ops_array *x = ops_array_retain(c->input);
    for (int i = 1; i <= OPERATIONS; i++) {
        ops_array *y = ops_array_unary(reference->order[i - 1], x);
        ops_array_release(x);
        x = y;
        if (i % HELD_EVERY == 0) {
            held[i / HELD_EVERY - 1] = ops_array_retain(x);
        }
    }
    ops_array_release(x);
    for (int i = 0; i < HELD; i++) {
        well =
            well &&
            bench_ok(c->bench, ops_array_read(held[i], sizeof values, values), "ops_array_read") &&
            estimate_check(c->bench, "an array that was held", values, reference->held[i],
                           SEQUENTIAL_ELEMENTS);
        ops_array_release(held[i]);
    }
    return well;
}

static void run(void *user, int calls)
{
    chain *c = user;
    ops_context_set_fusion(c->place.ops, c->fusion);
    for (int i = 0; i < calls && !c->bench->failed; i++) {
        ops_array *last = record(c, OPERATIONS);
        sequential_finish(c->bench, &c->place, last);
        ops_array_release(last);
    }
}

/* Checks that all operations are evaluated once and none is dropped. */
static bool check_counts(chain *c)
{
    ops_array_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    ops_context_get_statistics(c->place.ops, &before);
    run(c, 1);
    ops_context_get_statistics(c->place.ops, &after);
    const uint64_t evaluated = after.evaluated - before.evaluated;
    const uint64_t recorded = after.recorded - before.recorded;
    const uint64_t dropped = after.dropped - before.dropped;
    if (recorded != OPERATIONS || evaluated != OPERATIONS || dropped != 0) {
        return bench_fail(c->bench,
                          "of %d operations %llu were recorded, %llu evaluated, %llu dropped",
                          OPERATIONS, (unsigned long long)recorded, (unsigned long long)evaluated,
                          (unsigned long long)dropped);
    }
    bench_note(c->bench, "%s, %s: all of %d operations evaluated, in %llu kernels; none dropped.",
               hal_device_get_plugin_name(c->place.device), c->fusion ? "fused" : "unfused",
               OPERATIONS, (unsigned long long)(after.kernels - before.kernels));
    return !c->bench->failed;
}

/* Compiles the kernels first: the compile policy would otherwise defer them (docs/batching.md). */
static bool check_place(chain *c)
{
    ops_context_set_fusion(c->place.ops, c->fusion);
    if (!bench_ok(c->bench, ops_prepare(c->place.ops, rehearse, c), "ops_prepare")) {
        return false;
    }
    for (int i = 0; i < PREFIXES; i++) {
        if (!check_prefix(c, prefixes[i])) {
            return false;
        }
    }
    /* Unfused only: fused kernels that store intermediate results would be many. */
    return (c->fusion || check_held(c)) && check_counts(c);
}

static void add_rows(bench_state *bench, chain *chains, int places)
{
    static const char *const names[] = {"10000 unary operations",
                                        "10000 unary operations, unfused"};
    measured competitors[5];
    int count = 0;
    for (; count < 2 * places; count++) {
        competitors[count] = (measured){.function = run, .user = &chains[count]};
    }
    if (bench->raw) {
        competitors[count++] = (measured){.function = bench->raw->api->step, .user = bench->raw};
    }
    measure_alternating(competitors, count, bench->options.seconds);
    if (bench->raw && bench->raw->failed) {
        bench_fail(bench, "%s", bench->raw->message);
    }
    for (int i = 0; i < 2 && !bench->failed; i++) {
        bench_row *row = bench_add(bench, names[i], HAL_TYPE_F32);
        if (!row) {
            return;
        }
        row->n = SEQUENTIAL_ELEMENTS;
        row->k = OPERATIONS;
        row->time = measure_divide(&competitors[i].time, OPERATIONS);
        if (bench->raw) {
            bench_add_peer(row, "raw", &competitors[count - 1].time);
        }
        if (places == 2) {
            const measurement second = measure_divide(&competitors[2 + i].time, OPERATIONS);
            bench_add_peer(row, hal_device_get_plugin_name(chains[2].place.device), &second);
        }
        bench_rate(row, 0.0, 0.0);
    }
}

/* The host's time until the last call returns, including submissions; so few operations that the
 * host never waits for the device. */
static void add_recording(bench_state *bench, chain *c)
{
    enum { RUNS = 101, SHORT = 1000 };
    double samples[RUNS];
    ops_context_set_fusion(c->place.ops, 1);
    for (int i = 0; i < RUNS && !bench->failed; i++) {
        const double start = measure_now();
        ops_array *last = record(c, SHORT);
        samples[i] = (measure_now() - start) / SHORT;
        sequential_finish(bench, &c->place, last);
        ops_array_release(last);
    }
    bench_row *row =
        bench->failed ? NULL : bench_add(bench, "recording 1000 unary operations", HAL_TYPE_F32);
    if (row) {
        row->n = SEQUENTIAL_ELEMENTS;
        row->k = SHORT;
        measure_summarise(&row->time, samples, RUNS, SHORT);
    }
}

void sequential_chain(bench_state *bench)
{
    const int64_t shape[1] = {SEQUENTIAL_ELEMENTS};
    bench_place places[2];
    chain chains[4]; /* of each place the fused one and the other */
    const int count = sequential_places(bench, places);
    reference = malloc(sizeof *reference);
    if (!reference) {
        bench_fail(bench, "out of memory");
        return;
    }
    work_out();
    bool well = !bench->failed;
    for (int i = 0; i < 2 * count; i++) {
        chains[i] = (chain){.bench = bench, .place = places[i / 2], .fusion = i % 2 == 0};
        chains[i].input =
            ops_array_from_host(chains[i].place.ops, HAL_TYPE_F32, 1, shape, reference->input);
        well = well && (chains[i].input || bench_fail(bench, "%s", hal_status_message())) &&
               check_place(&chains[i]);
    }
    if (well) {
        add_rows(bench, chains, count);
        add_recording(bench, &chains[0]);
    }
    for (int i = 0; i < 2 * count; i++) {
        ops_array_release(chains[i].input);
        ops_context_set_fusion(chains[i].place.ops, 1);
    }
    free(reference);
    reference = NULL;
}
