/* The devices of the run, which take turns. */
#include "suites/sequential/sequential.h"

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
