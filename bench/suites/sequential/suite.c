/* Many small dependent operations, as in eager programs: the overhead of device and library per
 * step, and the size from which a device is faster than the second device. Called by main.c; the
 * parts are sequential_*.c. */
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
        if (!cases || bench_lists(cases, parts[i].name)) {
            parts[i].run(bench);
        }
    }
}

int sequential_places(const bench_state *bench, bench_place places[2])
{
    places[0] = (bench_place){bench->device, bench->info, bench->queue, bench->ops};
    places[1] = bench->second;
    return bench->second.device ? 2 : 1;
}

bool sequential_finish(bench_state *bench, const bench_place *place, ops_array *last)
{
    return bench_ok(bench, ops_array_evaluate(&last, 1), "ops_array_evaluate") &&
           bench_ok(bench, hal_queue_wait(place->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}
