/* transfer.c: transfers between two devices of one plugin; where it has one, between two queues of
 * that device. */
#include <hal/queue.h>
#include <stdio.h>

#include "case/cases.h"
#include "hal/fixture.h"

typedef struct kinds {
    hal_memory_kind from, to;
} kinds;

/* A queue of the second device; without one another queue of the first. */
static hal_queue *other_queue(case_run *run)
{
    char selection[96];
    hal_device *device = NULL;
    snprintf(selection, sizeof selection, "%s:%u", hal_device_get_plugin_name(run->device),
             hal_device_get_index(run->device) == 0 ? 1u : 0u);
    const hal_status status = hal_device_open(selection, &device);
    if (status == HAL_ERROR_NOT_FOUND) {
        return case_queue(run, run->device);
    }
    case_ok(run, status, "the second device");
    device_own(run, device);
    return case_queue(run, device);
}

/* A part at odd offsets; bytes around it stay. */
static void between_kinds(case_run *run, const void *parameters)
{
    const kinds *pair = parameters;
    enum { BYTES = 10007, FROM = 1003, TO = 2001, LENGTH = 7001 };
    uint8_t sent[BYTES], seen[BYTES], around[BYTES];
    for (uint32_t i = 0; i < BYTES; i++) {
        sent[i] = (uint8_t)(i * 31 + (i >> 8));
        around[i] = (uint8_t)~sent[i];
    }
    hal_queue *other = other_queue(run);
    hal_buffer *x = case_buffer(run, run->device, pair->from, BYTES);
    hal_buffer *y = case_buffer(run, hal_queue_get_device(other), pair->to, BYTES);
    case_ok(run, hal_queue_write(run->queue, x, 0, sent, BYTES), "hal_queue_write");
    case_ok(run, hal_queue_write(other, y, 0, around, BYTES), "hal_queue_write");
    case_ok(run, hal_queue_transfer(run->queue, x, FROM, other, y, TO, LENGTH),
            "hal_queue_transfer");
    case_ok(run, hal_queue_read(other, y, 0, BYTES, seen), "hal_queue_read");
    for (uint32_t i = 0; i < BYTES; i++) {
        const uint8_t expected = i >= TO && i < TO + LENGTH ? sent[i - TO + FROM] : around[i];
        case_check(run, seen[i] == expected, "byte %u is %u instead of %u", i, seen[i], expected);
    }
}

static void large_copy(case_run *run, const void *parameters)
{
    enum { COUNT = 16 << 20 };
    hal_queue *other = other_queue(run);
    hal_buffer *x = words_create(run, run->queue, COUNT, 11, 3);
    hal_buffer *y = words_create(run, other, COUNT, 0, 0);
    case_ok(run, hal_queue_transfer(run->queue, x, 0, other, y, 0, 4ull * COUNT),
            "hal_queue_transfer");
    words_check(run, other, y, COUNT, 11, 3, "what arrived");
}

/* Kernels on the two devices in turn, each over the result of the other, without waiting: a copy
 * that comes too early or too late spoils the numbers. */
static void back_and_forth(case_run *run, const void *parameters)
{
    enum { COUNT = 1 << 18, BYTES = 4 * COUNT, TURNS = 20 };
    hal_queue *queues[2] = {run->queue, other_queue(run)};
    hal_kernel *kernels[2];
    hal_buffer *x[2], *y[2];
    uint32_t start = 1, step = 1;
    for (int i = 0; i < 2; i++) {
        kernels[i] = scale_kernel(run, hal_queue_get_device(queues[i]));
        x[i] = words_create(run, queues[i], COUNT, i == 0, i == 0);
        y[i] = words_create(run, queues[i], COUNT, 0, 0);
    }
    for (int i = 0; i < TURNS; i++) {
        const int here = i % 2, there = 1 - here;
        scale_dispatch(run, queues[here], kernels[here], x[here], y[here], COUNT, 3, 7);
        case_ok(run,
                hal_queue_transfer(queues[here], y[here], 0, queues[there], x[there], 0, BYTES),
                "hal_queue_transfer");
        case_ok(run, hal_queue_fill(queues[here], range_of(y[here]), 9),
                "hal_queue_fill"); /* after the copy */
        start = start * 3 + 7;
        step *= 3;
    }
    words_check(run, queues[TURNS % 2], x[TURNS % 2], COUNT, start, step, "the last buffer");
}

/* Buffers, queue and device are released while copies may be in flight. */
static void release_in_flight(case_run *run, const void *parameters)
{
    enum { COUNT = 1 << 20, TIMES = 10 };
    for (int i = 0; i < TIMES; i++) {
        hal_queue *other = other_queue(run);
        hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
        hal_buffer *y = words_create(run, other, COUNT, 2, 2);
        case_ok(run, hal_queue_transfer(run->queue, x, 0, other, y, 0, 4ull * COUNT),
                "hal_queue_transfer");
        case_ok(run, hal_queue_transfer(other, y, 0, run->queue, x, 0, 2ull * COUNT),
                "hal_queue_transfer");
        case_release(run, 0);
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

void cases_hal_transfer(case_list *list)
{
    static const char *const names[] = {"device", "upload", "download", "shared"};
    for (uint32_t from = 0; from < HAL_MEMORY_KIND_COUNT; from++) {
        for (uint32_t to = 0; to < HAL_MEMORY_KIND_COUNT; to++) {
            const kinds pair = {from, to};
            case_add(list, between_kinds, &pair, sizeof pair,
                     "transfer/between_devices(from=%s,to=%s)", names[from], names[to]);
        }
    }
    case_add(list, large_copy, NULL, 0, "transfer/of_64_mib");
    case_add(list, back_and_forth, NULL, 0, "transfer/back_and_forth");
    case_add(list, release_in_flight, NULL, 0, "transfer/sides_go_at_once");
}
