/* suite_sequential.c: many small operations, one after the other, as eager programs make them: how
 * much of a step is the device's and the library's overhead, and from which size on a device is
 * faster than the second device. Called by main.c; the parts are sequential_*.c. */
#include "sequential.h"

void suite_sequential(bench_state *bench)
{
    static const struct {
        const char *name;
        void (*run)(bench_state *bench);
    } parts[] = {{"chain", sequential_chain},
                 {"alone", sequential_alone},
                 {"steps", sequential_steps},
                 {"trees", sequential_trees}};
    const char *cases = bench->options.cases;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (cases == NULL || bench_lists(cases, parts[i].name)) {
            parts[i].run(bench);
        }
    }
}

int sequential_places(const bench_state *bench, bench_place places[2])
{
    places[0] = (bench_place){bench->device, bench->info, bench->queue, bench->ops};
    places[1] = bench->beside;
    return bench->beside.device != NULL ? 2 : 1;
}

bool sequential_finish(bench_state *bench, const bench_place *place, ops_array *last)
{
    return bench_ok(bench, ops_array_evaluate(&last, 1), "ops_array_evaluate") &&
           bench_ok(bench, hal_queue_wait(place->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

measurement sequential_share(const measurement *time, double parts)
{
    measurement shared = *time;
    shared.median_us /= parts;
    shared.min_us /= parts;
    shared.spread_us /= parts;
    return shared;
}
