/* Device-to-device copies. */
#include "peers/copy.h"

#include "peers/raw/raw.h"

/* The last word of the source arrives. */
static bool check(copy_baseline *c)
{
    hal_queue *queue = c->bench->queue;
    const hal_range target = {c->target, 0, HAL_WHOLE}, source = {c->source, 0, HAL_WHOLE};
    const uint32_t mark = 0x5eed5eedu;
    const uint64_t last = c->bytes - sizeof mark;
    uint32_t found = 0;
    if (!bench_ok(c->bench, hal_queue_fill(queue, target, 0), "hal_queue_fill") ||
        !bench_ok(c->bench, hal_queue_fill(queue, source, mark), "hal_queue_fill")) {
        return false;
    }
    copy_run(c, 1);
    return !c->bench->failed &&
           bench_ok(c->bench, hal_queue_read(queue, c->target, last, sizeof found, &found),
                    "hal_queue_read") &&
           (found == mark || bench_fail(c->bench, "hal_queue_copy: the last word is %#x", found));
}

bool copy_create(bench_state *bench, uint64_t bytes, copy_baseline *made)
{
    *made = (copy_baseline){.bench = bench, .bytes = bytes / 4 * 4};
    hal_device *device = bench->device;
    const bool well =
        bench_ok(bench, hal_buffer_create(device, HAL_MEMORY_DEVICE, made->bytes, &made->source),
                 "a buffer to copy from") &&
        bench_ok(bench, hal_buffer_create(device, HAL_MEMORY_DEVICE, made->bytes, &made->target),
                 "a buffer to copy to") &&
        check(made);
    if (well && bench->raw && !bench->raw->api->make_copy(bench->raw, made->bytes)) {
        return bench_fail(bench, "%s", bench->raw->message);
    }
    return well;
}

void copy_destroy(copy_baseline *made)
{
    hal_buffer_release(made->source);
    hal_buffer_release(made->target);
    made->source = made->target = NULL;
}

void copy_run(void *user, int calls)
{
    copy_baseline *c = user;
    hal_queue *queue = c->bench->queue;
    const hal_range source = {c->source, 0, HAL_WHOLE}, target = {c->target, 0, HAL_WHOLE};
    for (int i = 0; i < calls && !c->bench->failed; i++) {
        bench_ok(c->bench, hal_queue_copy(queue, source, target), "hal_queue_copy");
    }
    bench_ok(c->bench, hal_queue_wait(queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}
