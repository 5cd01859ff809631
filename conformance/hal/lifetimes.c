/* lifetimes.c: objects released in any order, and while work is in flight. */
#include <hal/hal.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/fixture.h"
#include "hal/usage.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 5000u

/* Buffers and kernel are released between the recording and the flush. */
static void release_in_flight(case_run *run, const void *parameters)
{
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    const size_t objects = run->object_count;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *middle = words_create(run, run->queue, COUNT, 0, 0);
    scale_dispatch(run, run->queue, kernel, x, middle, COUNT, 3, 1);
    scale_dispatch(run, run->queue, kernel, middle, y, COUNT, 2, 5);
    case_release(run, objects);
    words_create(run, run->queue, COUNT, 99, 0);
    words_check(run, run->queue, y, COUNT, 13, 6, "the result");
}

/* Buffers in the place of a larger one that was released before. */
static void parts_of_a_released(case_run *run, const void *parameters)
{
    enum { PARTS = 4 };
    const uint32_t count = 400000;
    hal_kernel *kernel = scale_kernel(run, run->device);
    const size_t objects = run->object_count;
    words_create(run, run->queue, PARTS * count, 1, 1);
    case_release(run, objects);
    hal_buffer *parts[PARTS];
    for (uint32_t i = 0; i < PARTS; i++) {
        parts[i] = words_create(run, run->queue, count, i, 1);
    }
    for (uint32_t i = 1; i < PARTS; i++) {
        scale_dispatch(run, run->queue, kernel, parts[i - 1], parts[i], count, 3, i);
        words_check(run, run->queue, parts[i - 1], count, i == 1 ? 0 : i == 2 ? 1 : 5,
                    i == 1 ? 1 : i == 2 ? 3 : 9, "what was read");
    }
    words_check(run, run->queue, parts[PARTS - 1], count, 18, 27, "the last part");
    case_release(run, objects);
    hal_buffer *whole = words_create(run, run->queue, PARTS * count, 7, 2);
    words_check(run, run->queue, whole, PARTS * count, 7, 2, "the whole");
}

/* Objects of a device hold it: its own reference may be released first. */
static void device_first(case_run *run, const void *parameters)
{
    hal_device *device = NULL;
    case_ok(run, hal_device_open(run->selection, &device), "hal_device_open");
    hal_queue *queue = case_queue(run, device);
    hal_kernel *kernel = scale_kernel(run, device);
    hal_buffer *x = words_create(run, queue, COUNT, 1, 2);
    hal_buffer *y = words_create(run, queue, COUNT, 0, 0);
    hal_device_release(device);
    scale_dispatch(run, queue, kernel, x, y, COUNT, 3, 0);
    words_check(run, queue, y, COUNT, 3, 6, "after the device was released");
}

static void memory_returned(case_run *run, const void *parameters)
{
    hal_memory_statistics before, after;
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_device_get_memory(run->device, &before), "hal_device_get_memory");
    for (int turn = 0; turn < 200; turn++) {
        hal_buffer *x = words_create(run, run->queue, 3000, 1, 1);
        hal_buffer *y = words_create(run, run->queue, 3000, 1, 1);
        case_ok(run, hal_queue_copy(run->queue, range_of(x), range_of(y)), "copy");
        case_release(run, 0);
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_device_get_memory(run->device, &after), "hal_device_get_memory");
    case_check(run, after.in_use_bytes == before.in_use_bytes,
               "%llu bytes in use after 200 turns, %llu before",
               (unsigned long long)after.in_use_bytes, (unsigned long long)before.in_use_bytes);
}

/* Memory of a released buffer is taken for the next while the first is still to be read. */
static void reuse_in_flight(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *sums[16];
    for (uint32_t i = 0; i < 16; i++) {
        sums[i] = words_create(run, run->queue, COUNT, 0, 0);
        const size_t objects = run->object_count;
        hal_buffer *x = words_create(run, run->queue, COUNT, i, 1);
        scale_dispatch(run, run->queue, kernel, x, sums[i], COUNT, i + 1, i);
        case_release(run, objects);
        if (i % 5 == 4) {
            case_ok(run, hal_queue_flush(run->queue, NULL), "flush");
        }
    }
    for (uint32_t i = 0; i < 16; i++) {
        words_check(run, run->queue, sums[i], COUNT, i * (i + 1) + i, i + 1, "a result");
    }
}

typedef struct memory_use {
    uint64_t resident, free; /* bytes of the process, and those that the device has left */
} memory_use;

static memory_use memory_in_use(case_run *run)
{
    hal_memory_statistics now = {0};
    case_ok(run, hal_device_get_memory(run->device, &now), "hal_device_get_memory");
    return (memory_use){usage_resident_bytes(), now.free_bytes};
}

/* Large buffers that are filled, released and trimmed return to the system, or to a discrete
 * device (promise 22). Below 32 MiB a C library may keep what is freed, as glibc's malloc does.
 * Other processes take memory of the device too, so it must become less in every round. */
static void process_stays_small(case_run *run, const void *parameters)
{
    enum { TURNS = 25, ROUNDS = 4 };
    const uint64_t bytes = UINT64_C(32) << 20, most = TURNS * bytes / 3 * 2;
    memory_use before = {0}, after = {0};
    int round = 0, is_less = 1;
    if (run->info->max_allocation < bytes) {
        case_unsupported(run, "allocations have at most %llu bytes",
                         (unsigned long long)run->info->max_allocation);
    }
    for (; round < ROUNDS && is_less; round++) {
        for (int turn = 0; turn <= TURNS; turn++) {
            if (turn == 1) { /* the first one warms up */
                before = memory_in_use(run);
            }
            hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes);
            case_ok(run, hal_queue_fill(run->queue, range_of(buffer), 1), "fill");
            case_release(run, 0);
            case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
            case_ok(run, hal_device_trim(run->device), "hal_device_trim");
        }
        after = memory_in_use(run);
        case_check(run, after.resident < before.resident + most,
                   "the process grew from %llu to %llu bytes", (unsigned long long)before.resident,
                   (unsigned long long)after.resident);
        is_less = run->info->kind == HAL_DEVICE_DISCRETE && after.free + most <= before.free;
    }
    case_check(
        run, !is_less,
        "the device's free memory became less in each of %d rounds, in the last from %llu to "
        "%llu bytes",
        ROUNDS, (unsigned long long)before.free, (unsigned long long)after.free);
}

/* What a driver may add to its tables in any round. */
#define SLACK 65536u

/* Fails if the process grows in every round of `work` by `least` bytes for each turn: a plugin or a
 * driver may set memory aside for later, but not without end. A round takes `turns` turns, fewer
 * where a quarter of a second of the processor is over and `may_be_fewer`, or two of the clock. */
static void check_growth(case_run *run, void (*work)(case_run *run, uint32_t turn), uint32_t turns,
                         bool may_be_fewer, uint64_t least, const char *what)
{
    enum { ROUNDS = 12 };
    const clock_t most = CLOCKS_PER_SEC / 4;
    const double longest = 2; /* seconds, for drivers that sleep */
    uint64_t least_grown = UINT64_MAX;
    uint32_t turn = 0, per_round = turns;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t before = usage_resident_bytes();
        const clock_t begin = clock();
        const double begun = child_now();
        uint32_t i = 0;
        for (; i < per_round && (round > 0 || ((!may_be_fewer || clock() - begin < most) &&
                                               child_now() - begun < longest));
             i++) {
            work(run, turn++);
        }
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        const uint64_t after = usage_resident_bytes(), grown = after > before ? after - before : 0;
        per_round = i;
        if (before == 0) {
            return; /* the size of the process is not known */
        }
        if (round > 0 && grown < per_round * least + SLACK) { /* the first one warms up */
            return;
        }
        least_grown = round > 0 && grown < least_grown ? grown : least_grown;
    }
#ifndef CASE_SANITIZED /* sanitizers keep released memory */
    case_fail(run, "in each of %d rounds of %u %s the process grew, by %llu bytes or more", ROUNDS,
              per_round, what, (unsigned long long)least_grown);
#endif
}

static hal_kernel *turn_kernel;
static hal_buffer *turn_buffers[2];
static hal_queue *turn_queue; /* another one than the run's */

static void make_turn_objects(case_run *run)
{
    turn_kernel = scale_kernel(run, run->device);
    for (int i = 0; i < 2; i++) {
        turn_buffers[i] = words_create(run, run->queue, 32, 0, 0);
    }
}

static void flush_batch(case_run *run, uint32_t turn)
{
    scale_dispatch(run, run->queue, turn_kernel, turn_buffers[0], turn_buffers[1], 32, 1, turn);
    case_ok(run, hal_queue_flush(run->queue, NULL), "flush");
    if (turn % 32 == 31) {
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    }
}

/* Each batch returns what it took from the host. */
static void batches_leave_nothing(case_run *run, const void *parameters)
{
    enum { TURNS = 8000, LEAST = 16 };
    make_turn_objects(run);
    check_growth(run, flush_batch, TURNS, true, LEAST, "batches");
}

/* The IR of a kernel of many constants, which no run has had before: a driver may keep kernels from
 * one process to the next. */
static hal_ir_kernel *build_ir(case_run *run, uint32_t turn)
{
    enum { STORES = 40 };
    static uint32_t begun;
    begun = begun == 0 ? (uint32_t)time(NULL) * UINT32_C(2654435761) | 1 : begun;
    hal_ir_builder *b = case_builder(run, "stores");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    for (uint32_t i = 0; i < STORES; i++) {
        const uint32_t value = begun + turn * STORES + i;
        hal_ir_store_wide(b, out, zero, (int32_t)i, HAL_IR_NONE, hal_ir_u32(b, value));
    }
    return case_ir(run, b);
}

static void create_kernel(case_run *run, uint32_t turn)
{
    const size_t before = run->object_count;
    hal_kernel *kernel = NULL;
    case_ok(run, hal_kernel_create(run->device, build_ir(run, turn), &kernel), "hal_kernel_create");
    case_own_kernel(run, kernel);
    case_release(run, before);
}

static void queue_turn(case_run *run, uint32_t turn)
{
    const size_t before = run->object_count;
    hal_queue *queue = case_queue(run, run->device);
    scale_dispatch(run, queue, turn_kernel, turn_buffers[0], turn_buffers[1], 32, 1, turn);
    case_ok(run, hal_queue_wait(queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_release(run, before);
}

static void wait_turn(case_run *run, uint32_t turn)
{
    scale_dispatch(run, run->queue, turn_kernel, turn_buffers[0], turn_buffers[1], 32, 1, turn);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

static void queues_leave_nothing(case_run *run, const void *parameters)
{
    enum { TURNS = 60, LEAST = 4096 };
    make_turn_objects(run);
    check_growth(run, queue_turn, TURNS, true, LEAST, "queues");
}

static void waits_leave_nothing(case_run *run, const void *parameters)
{
    enum { TURNS = 4000, LEAST = 64 };
    make_turn_objects(run);
    check_growth(run, wait_turn, TURNS, true, LEAST, "waits");
}

/* A wait of one queue for another, which has work. */
static void cross_wait_turn(case_run *run, uint32_t turn)
{
    hal_point point = {0};
    scale_dispatch(run, turn_queue, turn_kernel, turn_buffers[0], turn_buffers[1], 32, 1, turn);
    case_ok(run, hal_queue_flush(turn_queue, &point), "flush");
    case_ok(run, hal_queue_wait_point(run->queue, point), "hal_queue_wait_point");
    wait_turn(run, turn);
}

static void map_turn(case_run *run, uint32_t turn)
{
    void *pointer = NULL;
    const size_t before = run->object_count;
    hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_SHARED, 4096 + turn % 7 * 4096);
    case_ok(run, hal_buffer_map_begin(buffer, &pointer), "map_begin");
    case_ok(run, hal_buffer_map_end(buffer), "map_end");
    case_release(run, before);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
}

typedef struct leak_source {
    const char *name;
    void (*work)(case_run *run, uint32_t turn);
    uint32_t turns;
} leak_source;

static const leak_source leak_sources[] = {
    {"batches", flush_batch, 500},         {"waits", wait_turn, 500},
    {"cross_waits", cross_wait_turn, 500}, {"queues", queue_turn, 100},
    {"kernels", create_kernel, 40},        {"mapped_memory", map_turn, 100}};

/* The same kernel each time, which a compiler or its cache has had before. */
static void create_again(case_run *run, uint32_t turn)
{
    const size_t before = run->object_count;
    hal_kernel *kernel = scale_kernel(run, run->device);
    scale_dispatch(run, run->queue, kernel, turn_buffers[0], turn_buffers[1], 32, 1, turn);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_release(run, before);
}

static const leak_source *turn_source;
static uint32_t turn_number;

static void count_turn(case_run *run, void *user)
{
    turn_source->work(run, turn_number++ + UINT32_MAX / 4);
}

static void finish_turns(case_run *run, void *user)
{
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* What is used many times keeps no descriptor, thread or mapping each, and the working folder
 * stays. */
static void process_is_left_alone(case_run *run, const void *parameters)
{
    leak_source source = *(const leak_source *)parameters;
    char folder[1024] = "", now[1024] = "";
    case_check(run, getcwd(folder, sizeof folder) != NULL, "the working folder is not known");
    make_turn_objects(run);
    turn_queue = case_queue(run, run->device);
    if (source.work == create_kernel && case_has_compiler(run)) {
        source.work = create_again;
    }
    turn_number = 0;
    turn_source = &source;
    usage_check(run, &(usage_turns){.turn = count_turn,
                                    .finish = finish_turns,
                                    .name = source.name,
                                    .turns = source.turns,
                                    .bytes = UINT64_MAX});
    case_check(run, getcwd(now, sizeof now) && strcmp(folder, now) == 0,
               "the working folder was %s and is %s", folder, now);
}

static void cross_waits_leave_nothing(case_run *run, const void *parameters)
{
    enum { TURNS = 3000, LEAST = 64 };
    make_turn_objects(run);
    turn_queue = case_queue(run, run->device);
    check_growth(run, cross_wait_turn, TURNS, true, LEAST, "waits for another queue");
}

/* Each kernel returns what it took from the host. Of a compiler the same kernel is created again
 * and again, and more has to be lost. */
static void kernels_leave_nothing(case_run *run, const void *parameters)
{
    enum { TURNS = 1600, LEAST = 512, LEAST_COMPILED = 16384 };
    if (case_has_compiler(run)) {
        for (int i = 0; i < 2; i++) {
            turn_buffers[i] = words_create(run, run->queue, 32, 0, 0);
        }
        check_growth(run, create_again, TURNS, true, LEAST_COMPILED, "kernels, all the same");
        return;
    }
    check_growth(run, create_kernel, TURNS, false, LEAST, "kernels");
}

/* Releases the fixture's references first, so that each turn closes the device. A driver may take
 * some seconds to open a device: the case ends when its time is over. */
static void open_and_close(case_run *run, const void *parameters)
{
    enum { LEAST = 3 };
    const int times = *(const int *)parameters;
    const double begin = child_now(), most = times > 20 ? 30 : 10; /* seconds */
    ops_context_destroy(run->ops);
    hal_queue_destroy(run->queue);
    hal_device_release(run->device);
    run->ops = NULL;
    run->queue = NULL;
    run->device = NULL;
    for (int i = 0; i < times && (i < LEAST || child_now() - begin <= most); i++) {
        hal_device *device = NULL;
        case_ok(run, hal_device_open(run->selection, &device), "hal_device_open");
        hal_queue *queue = case_queue(run, device);
        words_check(run, queue, words_create(run, queue, 100, 1, 1), 100, 1, 1, "a buffer");
        case_release(run, 0);
        hal_device_release(device);
    }
    case_ok(run, hal_device_open(run->selection, &run->device), "hal_device_open");
    run->info = hal_device_get_info(run->device);
    case_ok(run, hal_queue_create(run->device, &run->queue), "hal_queue_create");
    case_ok(run, ops_context_create(run->queue, &run->ops), "ops_context_create");
}

void cases_hal_lifetimes(case_list *list)
{
    const int few = 20, many = 1000;
    for (size_t i = 0; i < sizeof leak_sources / sizeof leak_sources[0]; i++) {
        case_add(list, process_is_left_alone, &leak_sources[i], sizeof leak_sources[i],
                 "lifetimes/process_is_left_alone(by=%s)", leak_sources[i].name);
    }
    case_add(list, release_in_flight, NULL, 0, "lifetimes/release_under_way");
    case_add(list, parts_of_a_released, NULL, 0, "lifetimes/parts_of_a_released_buffer");
    case_add(list, device_first, NULL, 0, "lifetimes/device_released_first");
    case_add(list, memory_returned, NULL, 0, "lifetimes/memory_comes_back");
    case_add(list, reuse_in_flight, NULL, 0, "lifetimes/reuse_under_way");
    case_add(list, process_stays_small, NULL, 0, "lifetimes/process_stays_small");
    case_add(list, batches_leave_nothing, NULL, 0, "lifetimes/batches_leave_nothing");
    case_add(list, kernels_leave_nothing, NULL, 0, "lifetimes/kernels_leave_nothing");
    case_add(list, queues_leave_nothing, NULL, 0, "lifetimes/queues_leave_nothing");
    case_add(list, waits_leave_nothing, NULL, 0, "lifetimes/waits_leave_nothing");
    case_add(list, cross_waits_leave_nothing, NULL, 0, "lifetimes/cross_waits_leave_nothing");
    case_add(list, open_and_close, &few, sizeof few, "lifetimes/open_and_close(times=%d)", few);
    list->level = CASE_LEVEL_STRESS;
    case_add(list, open_and_close, &many, sizeof many, "lifetimes/open_and_close(times=%d)", many);
}
