/* One operation and the wait for it, also with results of several sizes read back, compared with
 * the driver's own launch. */
#include <stdio.h>
#include <string.h>

#include "suites/sequential/sequential.h"
#include "peers/raw/raw.h"

enum { MOST = RAW_READ_MOST / sizeof(float) };

typedef struct reading {
    const char *name;
    int64_t elements;
} reading;

/* Sizes around the limit for results in host-readable memory (docs/batching.md). */
static const reading readings[] = {{"one operation and its 4 B read back", 1},
                                   {"one operation and its 4 KB read back", 1024},
                                   {"one operation and its 16 KB read back", 4096},
                                   {"one operation and its 64 KB read back", MOST}};

typedef struct lone {
    bench_state *bench;
    bench_place place;
    ops_array *x;
    int64_t elements;
    float numbers[MOST];
} lone;

static bool make(lone *made, int64_t elements)
{
    bench_random(HAL_TYPE_F32, made->numbers, elements, 5);
    ops_context_set_fusion(made->place.ops, 1);
    made->elements = elements;
    made->x = ops_array_from_host(made->place.ops, HAL_TYPE_F32, 1, &elements, made->numbers);
    return made->x || bench_fail(made->bench, "an input: %s", hal_status_message());
}

static void run_read(void *user, int calls)
{
    lone *l = user;
    for (int i = 0; i < calls && !l->bench->failed; i++) {
        ops_array *y = ops_neg(l->x);
        bench_ok(l->bench, ops_array_read(y, (uint64_t)l->elements * sizeof(float), l->numbers),
                 "ops_array_read");
        ops_array_release(y);
    }
}

/* The result is -x. */
static bool check(lone *l)
{
    static float before[MOST];
    memcpy(before, l->numbers, sizeof before);
    run_read(l, 1);
    for (int i = 0; i < l->elements && !l->bench->failed; i++) {
        if (l->numbers[i] != -before[i]) {
            return bench_fail(l->bench, "the negative of %.9g is %.9g", (double)before[i],
                              (double)l->numbers[i]);
        }
    }
    return !l->bench->failed;
}

static void add(bench_state *bench, const char *name, measure_function function, lone *lones,
                int count, measure_function raw)
{
    measured competitors[3];
    int all = 0;
    for (; all < count; all++) {
        competitors[all] = (measured){.function = function, .user = &lones[all]};
    }
    if (raw) {
        competitors[all++] = (measured){.function = raw, .user = bench->raw};
    }
    measure_alternating(competitors, all, bench->options.seconds);
    if (bench->raw && bench->raw->failed) {
        bench_fail(bench, "%s", bench->raw->message);
    }
    bench_row *row = bench->failed ? NULL : bench_add(bench, name, HAL_TYPE_F32);
    if (!row) {
        return;
    }
    row->n = lones[0].elements;
    row->time = competitors[0].time;
    if (raw) {
        bench_add_peer(row, "raw", &competitors[all - 1].time);
    }
    if (count == 2) {
        bench_add_peer(row, hal_device_get_plugin_name(lones[1].place.device),
                       &competitors[1].time);
    }
    bench_rate(row, 0.0, 0.0);
}

static void run_wait(void *user, int calls)
{
    lone *l = user;
    for (int i = 0; i < calls && !l->bench->failed; i++) {
        ops_array *y = ops_neg(l->x);
        sequential_finish(l->bench, &l->place, y);
        ops_array_release(y);
    }
}

static void run(bench_state *bench, const reading *of, lone *lones, int count)
{
    raw_device *raw = bench->raw;
    bool well = true;
    for (int i = 0; i < count; i++) {
        well = well && make(&lones[i], of->elements) && check(&lones[i]);
    }
    if (well && of->elements == SEQUENTIAL_ELEMENTS) {
        add(bench, "one operation and the wait for it", run_wait, lones, count,
            !raw ? NULL : raw->api->alone);
    }
    if (well) {
        if (raw) {
            raw->read_bytes = (size_t)of->elements * sizeof(float);
        }
        add(bench, of->name, run_read, lones, count, !raw ? NULL : raw->api->alone_read);
    }
    for (int i = 0; i < count; i++) {
        ops_array_release(lones[i].x);
        lones[i].x = NULL;
    }
}

void sequential_alone(bench_state *bench)
{
    static lone lones[2];
    bench_place places[2];
    const int count = sequential_places(bench, places);
    for (int i = 0; i < count; i++) {
        lones[i] = (lone){.bench = bench, .place = places[i]};
    }
    for (size_t i = 0; i < sizeof readings / sizeof readings[0] && !bench->failed; i++) {
        run(bench, &readings[i], lones, count);
    }
}
