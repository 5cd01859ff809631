/* transfer.c: transfers between two devices of one plugin, where it has two. */
#include <hal/queue.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "hal/hal_case.h"

/* The other device, with a queue. */
typedef struct other_side {
    hal_device *device;
    hal_queue *queue;
} other_side;

typedef struct kinds {
    uint32_t from, to; /* HAL_MEMORY_* */
} kinds;

/* False, with the reason reported, if there is none. */
static bool open_other(case_run *run, other_side *other)
{
    char selection[96];
    *other = (other_side){NULL, NULL};
    snprintf(selection, sizeof selection, "%s:%u", hal_device_get_plugin_name(run->device),
             hal_device_get_index(run->device) == 0 ? 1u : 0u);
    const hal_status status = hal_device_open(selection, &other->device);
    if (status == HAL_ERROR_NOT_FOUND) {
        return case_unsupported(run, "there is no second device: %s", hal_status_message());
    }
    return case_ok(run, status, "the second device") &&
           case_ok(run, hal_queue_create(other->device, &other->queue), "hal_queue_create");
}

static void close_other(other_side *other)
{
    hal_queue_destroy(other->queue);
    hal_device_release(other->device);
}

/* A part at odd offsets; bytes around it stay. */
static void between_kinds(case_run *run, const void *parameters)
{
    const kinds *pair = parameters;
    enum { BYTES = 10007, FROM = 1003, TO = 2001, LENGTH = 7001 };
    other_side other;
    hal_buffer *x = NULL, *y = NULL;
    uint8_t sent[BYTES], seen[BYTES], around[BYTES];
    for (uint32_t i = 0; i < BYTES; i++) {
        sent[i] = (uint8_t)(i * 31 + (i >> 8));
        around[i] = (uint8_t)~sent[i];
    }
    if (open_other(run, &other) &&
        case_ok(run, hal_buffer_create(run->device, pair->from, BYTES, &x), "source") &&
        case_ok(run, hal_buffer_create(other.device, pair->to, BYTES, &y), "target") &&
        case_ok(run, hal_queue_write(run->queue, x, 0, sent, BYTES), "hal_queue_write") &&
        case_ok(run, hal_queue_write(other.queue, y, 0, around, BYTES), "hal_queue_write") &&
        case_ok(run, hal_queue_transfer(run->queue, x, FROM, other.queue, y, TO, LENGTH),
                "hal_queue_transfer") &&
        case_ok(run, hal_queue_read(other.queue, y, 0, BYTES, seen), "hal_queue_read")) {
        for (uint32_t i = 0; i < BYTES; i++) {
            const uint8_t expected =
                i >= TO && i < TO + LENGTH ? sent[i - TO + FROM] : around[i];
            case_check(run, seen[i] == expected, "byte %u is %u instead of %u", i, seen[i],
                       expected);
        }
    }
    hal_buffer_release(x);
    hal_buffer_release(y);
    close_other(&other);
}

static void large(case_run *run, const void *parameters)
{
    enum { COUNT = 16 << 20 };
    other_side other;
    if (open_other(run, &other)) {
        hal_buffer *x = words_create(run, run->queue, COUNT, 11, 3);
        hal_buffer *y = words_create(run, other.queue, COUNT, 0, 0);
        if (x != NULL && y != NULL &&
            case_ok(run, hal_queue_transfer(run->queue, x, 0, other.queue, y, 0, 4ull * COUNT),
                    "hal_queue_transfer")) {
            words_check(run, other.queue, y, COUNT, 11, 3, "what arrived");
        }
        hal_buffer_release(x);
        hal_buffer_release(y);
    }
    close_other(&other);
}

/* Kernels on either device by turns, each over what the other one made, and nothing waited for: a
 * copy that comes too early or too late spoils the numbers. */
static void back_and_forth(case_run *run, const void *parameters)
{
    enum { COUNT = 1 << 18, BYTES = 4 * COUNT, TURNS = 20 };
    other_side other;
    hal_queue *queues[2] = {run->queue, NULL};
    hal_kernel *kernels[2] = {NULL, NULL};
    hal_buffer *x[2] = {NULL, NULL}, *y[2] = {NULL, NULL};
    uint32_t start = 1, step = 1;
    bool well = open_other(run, &other);
    queues[1] = other.queue;
    for (int i = 0; i < 2 && well; i++) {
        kernels[i] = scale_kernel(run, hal_queue_get_device(queues[i]));
        x[i] = words_create(run, queues[i], COUNT, i == 0, i == 0);
        y[i] = words_create(run, queues[i], COUNT, 0, 0);
        well = kernels[i] != NULL && x[i] != NULL && y[i] != NULL;
    }
    for (int i = 0; i < TURNS && well; i++) {
        const int here = i % 2, there = 1 - here;
        well = scale_dispatch(run, queues[here], kernels[here], x[here], y[here], COUNT, 3, 7) &&
               case_ok(run,
                       hal_queue_transfer(queues[here], y[here], 0, queues[there], x[there], 0,
                                          BYTES),
                       "hal_queue_transfer") &&
               case_ok(run, hal_queue_fill(queues[here], (hal_range){y[here], 0, HAL_WHOLE}, 9),
                       "hal_queue_fill"); /* after the copy */
        start = start * 3 + 7;
        step *= 3;
    }
    if (well) {
        words_check(run, queues[TURNS % 2], x[TURNS % 2], COUNT, start, step, "the last buffer");
    }
    for (int i = 0; i < 2; i++) {
        hal_buffer_release(x[i]);
        hal_buffer_release(y[i]);
        hal_kernel_release(kernels[i]);
    }
    close_other(&other);
}

/* Buffers, queue and device are released while copies may be in flight. */
static void sides_go_at_once(case_run *run, const void *parameters)
{
    enum { COUNT = 1 << 20, TIMES = 10 };
    bool well = true;
    for (int i = 0; i < TIMES && well; i++) {
        other_side other;
        well = open_other(run, &other);
        if (well) {
            hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
            hal_buffer *y = words_create(run, other.queue, COUNT, 2, 2);
            well = x != NULL && y != NULL &&
                   case_ok(run,
                           hal_queue_transfer(run->queue, x, 0, other.queue, y, 0, 4ull * COUNT),
                           "hal_queue_transfer") &&
                   case_ok(run,
                           hal_queue_transfer(other.queue, y, 0, run->queue, x, 0, 2ull * COUNT),
                           "hal_queue_transfer");
            hal_buffer_release(x);
            hal_buffer_release(y);
        }
        close_other(&other);
    }
    if (well) {
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    }
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
    case_add(list, large, NULL, 0, "transfer/of_64_mib");
    case_add(list, back_and_forth, NULL, 0, "transfer/back_and_forth");
    case_add(list, sides_go_at_once, NULL, 0, "transfer/sides_go_at_once");
}
