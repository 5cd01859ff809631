/* threads.c: what the headers allow from several threads at once. */
#include <hal/hal.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "hal/hal_case.h"

#define THREADS 4u

/* Each thread has its own run; the first failure is copied to the case's run. */
typedef struct worker {
    case_run run;
    pthread_t thread;
    uint32_t number;
    hal_kernel *kernel;
    void (*work)(struct worker *worker);
} worker;

/* Each thread records, flushes and reads on its own queue. */
static void own_queues(worker *self)
{
    case_run *run = &self->run;
    hal_queue *queue = NULL;
    hal_kernel *kernel = scale_kernel(run, run->device);
    if (kernel != NULL && case_ok(run, hal_queue_create(run->device, &queue), "a queue")) {
        hal_buffer *x = words_create(run, queue, 4000, self->number, 1);
        hal_buffer *y = words_create(run, queue, 4000, 0, 0);
        uint32_t start = self->number, step = 1;
        for (int i = 0; i < 60 && x != NULL && y != NULL && case_is_well(run); i++) {
            scale_dispatch(run, queue, kernel, i % 2 == 0 ? x : y, i % 2 == 0 ? y : x, 4000, 3,
                           self->number);
            start = start * 3 + self->number;
            step *= 3;
            if (i % 7 == 3) {
                case_ok(run, hal_queue_flush(queue, NULL), "flush");
            }
        }
        if (x != NULL && y != NULL) {
            words_check(run, queue, x, 4000, start, step, "the result");
        }
        hal_buffer_release(x);
        hal_buffer_release(y);
    }
    hal_queue_destroy(queue);
    hal_kernel_release(kernel);
}

/* All threads ask for the same kernel at once, many times; one is kept for comparison. */
static void same_kernel(worker *self)
{
    for (int i = 0; i < 100 && case_is_well(&self->run); i++) {
        hal_kernel *kernel = scale_kernel(&self->run, self->run.device);
        if (self->kernel == NULL) {
            self->kernel = kernel;
        } else {
            hal_kernel_release(kernel);
        }
    }
}

static void buffers(worker *self)
{
    case_run *run = &self->run;
    hal_buffer *held[16] = {NULL};
    for (uint32_t i = 0; i < 2000 && case_is_well(run); i++) {
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

static void messages(worker *self)
{
    case_run *run = &self->run;
    char selection[32];
    snprintf(selection, sizeof selection, "absent%u", self->number);
    for (int i = 0; i < 50 && case_is_well(run); i++) {
        hal_device *device = NULL;
        case_expect(run, hal_device_open(selection, &device), HAL_ERROR_NOT_FOUND, selection,
                    "an absent plugin");
    }
}

static void devices(worker *self)
{
    case_run *run = &self->run;
    for (int i = 0; i < 100 && case_is_well(run); i++) {
        hal_device *device = NULL;
        if (case_ok(run, hal_device_open(run->selection, &device), "hal_device_open")) {
            case_check(run, device == run->device, "another device");
            hal_device_release(device);
        }
    }
}

static const struct {
    const char *name;
    void (*work)(worker *worker);
} works[] = {{"own_queues", own_queues},
             {"same_kernel", same_kernel},
             {"buffers", buffers},
             {"messages", messages},
             {"devices", devices}};

static void *start_worker(void *argument)
{
    worker *self = argument;
    self->work(self);
    return NULL;
}

static void run_workers(case_run *run, const void *parameters)
{
    const int which = *(const int *)parameters;
    worker workers[THREADS];
    unsigned started = 0;
    hal_kernel *kernels[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.run = *run, .number = i, .work = works[which].work};
        if (!case_check(run,
                        pthread_create(&workers[i].thread, NULL, start_worker, &workers[i]) == 0,
                        "no thread could be made")) {
            break;
        }
        started++;
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        kernels[i] = workers[i].kernel;
        if (workers[i].run.status != CASE_PASSED) {
            case_fail(run, "thread %u: %s", i, workers[i].run.detail);
        }
        case_check(run, kernels[i] == kernels[0], "two threads got two kernels of the same IR");
    }
    for (unsigned i = 0; i < started; i++) {
        hal_kernel_release(kernels[i]);
    }
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
    for (int turn = 0; turn < 20 && kernel != NULL && x != NULL && y != NULL; turn++) {
        pthread_t thread;
        hal_point point = {0};
        void *answer = NULL;
        scale_dispatch(run, run->queue, kernel, x, y, 100000, 3, (uint32_t)turn);
        if (!case_ok(run, hal_queue_flush(run->queue, &point), "flush") ||
            pthread_create(&thread, NULL, wait_for_point, &point) != 0) {
            break;
        }
        scale_dispatch(run, run->queue, kernel, x, y, 100000, 3, 0);
        case_ok(run, hal_queue_flush(run->queue, NULL), "flush");
        pthread_join(thread, &answer);
        case_check(run, answer == (void *)&point, "the wait on another thread failed");
    }
    hal_buffer_release(x);
    hal_buffer_release(y);
    hal_kernel_release(kernel);
}

void cases_hal_threads(case_list *list)
{
    for (int i = 0; i < (int)(sizeof works / sizeof works[0]); i++) {
        case_add(list, run_workers, &i, sizeof i, "threads/%s", works[i].name);
    }
    case_add(list, points, NULL, 0, "threads/points");
}
