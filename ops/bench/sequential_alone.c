/* sequential_alone.c: one operation on 1,024 floats and the wait for it, without and with its 4 KB
 * read back, beside the driver's own launch; sequential.h says who calls it. */
#include <stdio.h>

#include "sequential.h"

typedef struct lone {
    bench_state *bench;
    bench_place place;
    ops_array *x;
    float numbers[SEQUENTIAL_ELEMENTS];
} lone;

static bool make(bench_state *bench, lone *made);
static bool check(lone *l);
static void run_wait(void *user, int calls);
static void run_read(void *user, int calls);
static void add(bench_state *bench, const char *name, measure_function function, lone *lones,
                int count, measure_function raw);

void sequential_alone(bench_state *bench)
{
    static lone lones[2];
    bench_place places[2];
    const int count = sequential_places(bench, places);
    bool well = !bench->failed;
    for (int i = 0; i < count; i++) {
        lones[i] = (lone){.bench = bench, .place = places[i]};
        well = well && make(bench, &lones[i]) && check(&lones[i]);
    }
    if (well) {
        const raw_api *raw = bench->raw == NULL ? NULL : bench->raw->api;
        add(bench, "one operation and the wait for it", run_wait, lones, count,
            raw == NULL ? NULL : raw->alone);
        add(bench, "one operation and its 4 KB read back", run_read, lones, count,
            raw == NULL ? NULL : raw->alone_read);
    }
    for (int i = 0; i < count; i++) {
        ops_array_release(lones[i].x);
    }
}

static bool make(bench_state *bench, lone *made)
{
    const int64_t shape[1] = {SEQUENTIAL_ELEMENTS};
    bench_random(HAL_TYPE_F32, made->numbers, SEQUENTIAL_ELEMENTS, 5);
    ops_context_set_fusion(made->place.ops, 1);
    made->x = ops_array_from_host(made->place.ops, HAL_TYPE_F32, 1, shape, made->numbers);
    return made->x != NULL || bench_fail(bench, "an input: %s", hal_status_message());
}

/* What is read back is -x. */
static bool check(lone *l)
{
    float before[SEQUENTIAL_ELEMENTS];
    bench_random(HAL_TYPE_F32, before, SEQUENTIAL_ELEMENTS, 5);
    run_read(l, 1);
    for (int i = 0; i < SEQUENTIAL_ELEMENTS && !l->bench->failed; i++) {
        if (l->numbers[i] != -before[i]) {
            return bench_fail(l->bench, "the negative of %.9g is %.9g", (double)before[i],
                              (double)l->numbers[i]);
        }
    }
    return !l->bench->failed;
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

static void run_read(void *user, int calls)
{
    lone *l = user;
    for (int i = 0; i < calls && !l->bench->failed; i++) {
        ops_array *y = ops_neg(l->x);
        bench_ok(l->bench, ops_array_read(y, l->numbers, sizeof l->numbers), "ops_array_read");
        ops_array_release(y);
    }
}

static void add(bench_state *bench, const char *name, measure_function function, lone *lones,
                int count, measure_function raw)
{
    measured competitors[3];
    int all = 0;
    for (; all < count; all++) {
        competitors[all] = (measured){.function = function, .user = &lones[all]};
    }
    if (raw != NULL) {
        competitors[all++] = (measured){.function = raw, .user = bench->raw};
    }
    measure_alternating(competitors, all, bench->options.seconds);
    if (bench->raw != NULL && bench->raw->failed) {
        bench_fail(bench, "%s", bench->raw->message);
    }
    bench_row *row = bench->failed ? NULL : bench_add(bench, name, HAL_TYPE_F32);
    if (row == NULL) {
        return;
    }
    row->n = SEQUENTIAL_ELEMENTS;
    row->time = competitors[0].time;
    if (raw != NULL) {
        bench_add_peer(row, "raw", &competitors[all - 1].time);
    }
    if (count == 2) {
        bench_add_peer(row, hal_device_plugin_name(lones[1].place.device), &competitors[1].time);
    }
    bench_rate(row, 0.0, 0.0);
}
