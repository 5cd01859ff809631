/* host_call.c: functions of the program in the order of a queue. */
#include <hal/hal.h>
#include <hal/host_call.h>
#include <string.h>

#include "case/cases.h"
#include "hal/direct.h"
#include "hal/fixture.h"

enum { COUNT = 256, BYTES = 4 * COUNT, TURNS = 20 };

typedef struct host_step {
    uint32_t *words;   /* mapped memory */
    uint32_t expected; /* the first word, which the device wrote */
    uint32_t seen;
    int calls;
    hal_status status;
} host_step;

/* Reads what the device wrote and writes what it will read. */
static void words_double(void *user, hal_status status)
{
    host_step *step = user;
    step->calls++;
    step->status = status;
    step->seen = step->words[0];
    for (uint32_t i = 0; i < COUNT; i++) {
        step->words[i] *= 2;
    }
}

/* A function can neither flush nor invalidate. */
static void claim_coherence(case_run *run)
{
    direct *plugin = direct_host(run);
    case_ok(run, direct_open(run, plugin), "device_open");
    const bool is_coherent = !plugin->coherence;
    direct_close(plugin);
    if (!is_coherent) {
        case_unsupported(run, "mapped memory is not coherent");
    }
}

/* Device and host change one memory in turn, without a wait of the program in between. */
static void in_turn(case_run *run, const void *parameters)
{
    claim_coherence(run);
    host_step steps[TURNS] = {{0}};
    void *pointer = NULL;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *shared = case_buffer(run, run->device, HAL_MEMORY_SHARED, BYTES);
    hal_buffer *other = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    case_ok(run, hal_buffer_map_begin(shared, &pointer), "hal_buffer_map_begin");
    memset(pointer, 0, BYTES);
    case_ok(run, hal_buffer_map_end(shared), "hal_buffer_map_end");
    uint32_t value = 0;
    for (uint32_t t = 0; t < TURNS; t++) {
        scale_dispatch(run, run->queue, kernel, shared, other, COUNT, 1, t + 1);
        case_ok(run, hal_queue_copy(run->queue, range_of(other), range_of(shared)), "copy");
        value += t + 1;
        steps[t] = (host_step){.words = pointer, .expected = value};
        value *= 2;
        case_ok(run, hal_queue_host_call(run->queue, words_double, &steps[t], 0),
                "hal_queue_host_call");
    }
    words_check(run, run->queue, shared, COUNT, value, 0, "the result of all turns");
    for (uint32_t t = 0; t < TURNS; t++) {
        case_check(run, steps[t].calls == 1 && steps[t].status == HAL_OK,
                   "function %u was called %d times, with %s", t, steps[t].calls,
                   hal_status_name(steps[t].status));
        case_check(run, steps[t].seen == steps[t].expected, "function %u saw %u instead of %u", t,
                   steps[t].seen, steps[t].expected);
    }
}

static void count_call(void *user, hal_status status)
{
    ((host_step *)user)->calls += status == HAL_OK;
}

static void detached(case_run *run, const void *parameters)
{
    host_step step = {0};
    hal_buffer *buffer = words_create(run, run->queue, COUNT, 0, 1);
    case_ok(run, hal_queue_host_call(run->queue, count_call, &step, HAL_HOST_CALL_DETACHED),
            "hal_queue_host_call");
    case_ok(run, hal_queue_fill(run->queue, range_of(buffer), 5), "fill");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_check(run, step.calls == 1, "the function was called %d times", step.calls);
    words_check(run, run->queue, buffer, COUNT, 5, 0, "what came after it");
}

void cases_hal_host_call(case_list *list)
{
    case_add(list, in_turn, NULL, 0, "host_call/in_turn");
    case_add(list, detached, NULL, 0, "host_call/detached");
}
