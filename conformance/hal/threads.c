/* threads.c: what the headers allow from several threads at once. */
#include <hal/hal.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "case/cases.h"
#include "hal/fixture.h"

#define THREADS 4u

/* Each thread has its own run; a failure is reported in the case's run. */
typedef struct worker {
    case_run run;
    pthread_t thread;
    uint32_t number;
    hal_kernel *kernel;
    void (*work)(case_run *run, struct worker *self);
} worker;

/* Each thread records, flushes and reads on its own queue. */
static void own_queues(case_run *run, worker *self)
{
    hal_queue *queue = case_queue(run, run->device);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, queue, 4000, self->number, 1);
    hal_buffer *y = words_create(run, queue, 4000, 0, 0);
    uint32_t start = self->number, step = 1;
    for (int i = 0; i < 60; i++) {
        scale_dispatch(run, queue, kernel, i % 2 == 0 ? x : y, i % 2 == 0 ? y : x, 4000, 3,
                       self->number);
        start = start * 3 + self->number;
        step *= 3;
        if (i % 7 == 3) {
            case_ok(run, hal_queue_flush(queue, NULL), "flush");
        }
    }
    words_check(run, queue, x, 4000, start, step, "the result");
}

/* All threads ask for the same kernel at once, many times; one is kept for comparison. */
static void same_kernel(case_run *run, worker *self)
{
    self->kernel = scale_kernel(run, run->device);
    const size_t objects = run->object_count;
    for (int i = 0; i < 99; i++) {
        scale_kernel(run, run->device);
        case_release(run, objects);
    }
}

static void buffers(case_run *run, worker *self)
{
    hal_buffer *held[16] = {NULL};
    for (uint32_t i = 0; i < 2000; i++) {
        hal_buffer **place = &held[(i * 7 + self->number) % 16];
        hal_buffer_release(*place);
        *place = NULL;
        const uint64_t bytes =
            1000 + 4096 * ((i + self->number) % 5); /* not all the same at once */
        case_ok(run, hal_buffer_create(run->device, i % 3, bytes, place), "hal_buffer_create");
        hal_buffer_release(hal_buffer_retain(*place));
    }
    for (int i = 0; i < 16; i++) {
        hal_buffer_release(held[i]);
    }
}

static void messages(case_run *run, worker *self)
{
    char selection[32];
    snprintf(selection, sizeof selection, "absent%u", self->number);
    for (int i = 0; i < 50; i++) {
        hal_device *device = NULL;
        case_expect(run, hal_device_open(selection, &device), HAL_ERROR_NOT_FOUND, selection,
                    "an absent plugin");
    }
}

static void devices(case_run *run, worker *self)
{
    for (int i = 0; i < 100; i++) {
        hal_device *device = NULL;
        case_ok(run, hal_device_open(run->selection, &device), "hal_device_open");
        hal_device_release(device);
        case_check(run, device == run->device, "another device");
    }
}

/* out[0] = value */
static hal_kernel *kernel_of_value(case_run *run, uint32_t value)
{
    hal_ir_builder *b = case_builder(run, "value");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, value));
    return case_kernel(run, b);
}

/* Kernels that differ in a constant, created by all threads at once; each is the one that its
 * thread asked for. */
static void other_kernels(case_run *run, worker *self)
{
    enum { KERNELS = 6 };
    const uint32_t grid[3] = {1, 1, 1}, first = (uint32_t)run->seed + 100 * self->number;
    hal_kernel *kernels[KERNELS];
    hal_queue *queue = case_queue(run, run->device);
    hal_buffer *out = words_create(run, queue, 1, 0, 0);
    const hal_range range = range_of(out);
    for (uint32_t i = 0; i < KERNELS; i++) {
        kernels[i] = kernel_of_value(run, first + i);
    }
    for (uint32_t i = 0; i < KERNELS; i++) {
        case_ok(run, hal_queue_dispatch(queue, kernels[i], grid, &range, 1, NULL, 0), "dispatch");
        words_check(run, queue, out, 1, first + i, 0, "what a kernel of this thread wrote");
    }
}

/* out[i] = x[i'] + TURNS, where i' is TURNS places on in the group: in each turn a work-item passes
 * its value on through shared memory. */
static hal_kernel *kernel_of_turns(case_run *run, uint32_t items, uint32_t turns)
{
    hal_ir_builder *b = case_builder(run, "turns");
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, items);
    const hal_ir_value i = hal_ir_global_id(b, 0), item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value one = hal_ir_u32(b, 1), zero = hal_ir_u32(b, 0);
    const hal_ir_value next = hal_ir_rem(b, hal_ir_add(b, item, one), hal_ir_u32(b, items));
    const hal_ir_value value = hal_ir_var(b, hal_ir_load(b, x, i));
    hal_ir_for(b, zero, hal_ir_u32(b, turns), one);
    hal_ir_store(b, tile, item, hal_ir_add(b, hal_ir_get(b, value), one));
    hal_ir_barrier(b);
    hal_ir_set(b, value, hal_ir_load(b, tile, next));
    hal_ir_barrier(b);
    hal_ir_end(b);
    hal_ir_store(b, out, i, hal_ir_get(b, value));
    return case_kernel(run, b);
}

static uint64_t milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* Groups of all queues have their own shared memory. */
static void shared_memory(case_run *run, worker *self)
{
    enum { GROUPS = 24, TURNS = 16, LEAST = 3, MOST = 400, MILLISECONDS = 60 };
    const uint32_t most = run->info->max_group_items < run->info->max_group_size[0]
                              ? run->info->max_group_items
                              : run->info->max_group_size[0];
    const uint32_t items = most < 64 ? most : 64, count = GROUPS * items;
    const uint32_t grid[3] = {GROUPS, 1, 1}, start = 1000000 * self->number;
    hal_queue *queue = case_queue(run, run->device);
    hal_kernel *kernel = kernel_of_turns(run, items, TURNS);
    hal_buffer *x = words_create(run, queue, count, start, 1);
    uint32_t *words = case_allocate(run, count, sizeof *words);
    hal_buffer *out = words_create(run, queue, count, 0, 0);
    const uint64_t end = milliseconds() + MILLISECONDS;
    for (uint32_t time = 0; time < LEAST || (time < MOST && milliseconds() < end); time++) {
        const hal_range ranges[2] = {range_of(x), range_of(out)};
        case_ok(run, hal_queue_dispatch(queue, kernel, grid, ranges, 2, NULL, 0), "dispatch");
        case_ok(run, hal_queue_read(queue, out, 0, 4ull * count, words), "read");
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t item = i % items;
            const uint32_t expected = start + i - item + (item + TURNS) % items + TURNS;
            case_check(run, words[i] == expected,
                       "with other queues in flight word %u is %u instead of %u", i, words[i],
                       expected);
        }
    }
}

/* Memory, times and maps, asked for by all threads at once. */
static void questions(case_run *run, worker *self)
{
    enum { TURNS = 200 };
    hal_queue *queue = case_queue(run, run->device);
    hal_buffer *words = case_buffer(run, run->device, HAL_MEMORY_SHARED, 4096);
    hal_memory_statistics memory = {0};
    hal_point points[2] = {{0}};
    const bool has_times = (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0;
    for (int i = 0; i < 2; i++) {
        case_ok(run, hal_queue_fill(queue, range_of(words), self->number), "fill");
        case_ok(run, hal_queue_flush(queue, &points[i]), "flush");
    }
    case_ok(run, hal_queue_wait(queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (uint32_t i = 0; i < TURNS; i++) {
        const size_t objects = run->object_count;
        uint64_t nanoseconds = 0;
        void *pointer = NULL;
        case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
        if (has_times) {
            case_ok(run, hal_point_get_elapsed(points[0], points[1], &nanoseconds), "a time");
        }
        if (i % 16 == 0) {
            hal_buffer *mapped = case_buffer(run, run->device, HAL_MEMORY_UPLOAD, 70000 + 4096 * i);
            case_ok(run, hal_buffer_map_begin(mapped, &pointer), "map_begin");
            case_ok(run, hal_buffer_map_end(mapped), "map_end");
            case_queue(run, run->device);
            case_release(run, objects);
        }
    }
}

static const struct {
    const char *name;
    void (*work)(case_run *run, worker *self);
} works[] = {{"own_queues", own_queues},
             {"same_kernel", same_kernel},
             {"buffers", buffers},
             {"other_kernels", other_kernels},
             {"shared_memory", shared_memory},
             {"messages", messages},
             {"devices", devices},
             {"questions", questions}};

static void work_execute(case_run *run, const void *parameters)
{
    worker *self = *(worker *const *)parameters;
    self->work(run, self);
}

/* Held until all threads are made: else a busy system may run one after the other. */
static pthread_mutex_t start = PTHREAD_MUTEX_INITIALIZER;

static void *start_worker(void *argument)
{
    worker *self = argument;
    pthread_mutex_lock(&start);
    pthread_mutex_unlock(&start);
    case_execute(&self->run, work_execute, &self);
    return NULL;
}

static void run_workers(case_run *run, const void *parameters)
{
    const int which = *(const int *)parameters;
    worker workers[THREADS];
    unsigned started = 0;
    pthread_mutex_lock(&start);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.run = {.selection = run->selection,
                                      .name = run->name,
                                      .seed = run->seed,
                                      .device = run->device,
                                      .info = run->info},
                              .number = i,
                              .work = works[which].work};
        if (pthread_create(&workers[i].thread, NULL, start_worker, &workers[i]) == 0) {
            started++;
        } else {
            break;
        }
    }
    pthread_mutex_unlock(&start);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    bool is_same_kernel = true;
    for (unsigned i = 0; i < started; i++) {
        is_same_kernel = is_same_kernel && workers[i].kernel == workers[0].kernel;
    }
    for (unsigned i = 0; i < started; i++) {
        case_release(&workers[i].run, 0);
    }
    case_check(run, started == THREADS, "no thread could be made");
    for (unsigned i = 0; i < started; i++) {
        case_check(run, workers[i].run.status == CASE_PASSED, "thread %u: %s", i,
                   workers[i].run.detail);
    }
    case_check(run, is_same_kernel, "two threads got two kernels of the same IR");
}

static void *wait_for_point(void *argument)
{
    const hal_point *point = argument;
    return hal_point_wait(*point, HAL_WAIT_FOREVER) == HAL_OK ? argument : NULL;
}

/* Threads wait for points of a queue while another thread records on it. */
static void points(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, 100000, 1, 1);
    hal_buffer *y = words_create(run, run->queue, 100000, 0, 0);
    for (int turn = 0; turn < 20; turn++) {
        pthread_t thread;
        static hal_point point; /* the thread may outlive this function after a report */
        void *answer = NULL;
        scale_dispatch(run, run->queue, kernel, x, y, 100000, 3, (uint32_t)turn);
        case_ok(run, hal_queue_flush(run->queue, &point), "flush");
        case_check(run, pthread_create(&thread, NULL, wait_for_point, &point) == 0,
                   "no thread could be made");
        scale_dispatch(run, run->queue, kernel, x, y, 100000, 3, 0);
        const hal_status flushed = hal_queue_flush(run->queue, NULL);
        pthread_join(thread, &answer);
        case_ok(run, flushed, "flush");
        case_check(run, answer == (void *)&point, "the wait on another thread failed");
    }
}

void cases_hal_threads(case_list *list)
{
    for (int i = 0; i < (int)(sizeof works / sizeof works[0]); i++) {
        case_add(list, run_workers, &i, sizeof i, "threads/%s", works[i].name);
    }
    case_add(list, points, NULL, 0, "threads/points");
}
