/* threads.c: what the headers allow from several threads at once. */
#include <hal/hal.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "hal/hal_case.h"

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
        case_ok(run, hal_buffer_create(run->device, i % 3, 1000 + 4096 * (i % 5), place),
                "hal_buffer_create");
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

static const struct {
    const char *name;
    void (*work)(case_run *run, worker *self);
} works[] = {{"own_queues", own_queues},
             {"same_kernel", same_kernel},
             {"buffers", buffers},
             {"messages", messages},
             {"devices", devices}};

static void work_execute(case_run *run, const void *parameters)
{
    worker *self = *(worker *const *)parameters;
    self->work(run, self);
}

static void *start_worker(void *argument)
{
    worker *self = argument;
    case_execute(&self->run, work_execute, &self);
    return NULL;
}

static void run_workers(case_run *run, const void *parameters)
{
    const int which = *(const int *)parameters;
    worker workers[THREADS];
    unsigned started = 0;
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
