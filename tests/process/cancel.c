/* Promise 26: a call is no cancellation point: a thread that is cancelled while it is inside one
 * ends after the call, and other threads keep using the device. devices: cpu pocl lavapipe */
#include "process.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 4, ROUNDS = 3, BYTES = 24 << 20 };
static const char *const names[KINDS] = {"a read", "a write", "work", "an open"};

static process_device shared;
static uint8_t *memory;
static atomic_int turns;

typedef struct victim {
    int kind;
    hal_queue *queue;
    hal_buffer *buffer;
} victim;

static void *victim_run(void *argument)
{
    victim *v = argument;
    int before;
    for (;;) {
        hal_device *device = NULL;
        switch (v->kind) {
        case 0:
            PROCESS_OK(hal_queue_read(v->queue, v->buffer, 0, BYTES, memory));
            break;
        case 1:
            PROCESS_OK(hal_queue_write(v->queue, v->buffer, 0, memory, BYTES));
            break;
        case 2:
            PROCESS_OK(hal_queue_fill(v->queue, (hal_range){v->buffer, 0, HAL_WHOLE}, 5));
            PROCESS_OK(hal_queue_wait(v->queue, HAL_WAIT_FOREVER));
            break;
        default:
            PROCESS_OK(hal_device_open(NULL, &device));
            hal_device_release(device);
            break;
        }
        /* Here the program's own code is a cancellation point. */
        atomic_fetch_add(&turns, 1);
        pthread_testcancel();
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
        if (before != PTHREAD_CANCEL_ENABLE) {
            process_fail("%s leaves cancellation disabled", names[v->kind]);
        }
    }
    return NULL;
}

/* A victim dies inside a call; whether another thread's work is right after it. */
static void round_run(int kind, int round)
{
    victim v = {.kind = kind};
    pthread_t thread;
    PROCESS_OK(hal_queue_create(shared.device, &v.queue));
    PROCESS_OK(hal_buffer_create(shared.device, HAL_MEMORY_DEVICE, BYTES, &v.buffer));
    atomic_store(&turns, 0);
    pthread_create(&thread, NULL, victim_run, &v);
    while (atomic_load(&turns) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    nanosleep(&(struct timespec){.tv_nsec = 1000000 + 300000 * round}, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    uint8_t byte = 0;
    PROCESS_OK(hal_queue_fill(v.queue, (hal_range){v.buffer, 0, HAL_WHOLE}, 0x07070707));
    PROCESS_OK(hal_queue_read(v.queue, v.buffer, BYTES / 2, 1, &byte));
    if (byte != 7) {
        process_fail("after %s: byte %u instead of 7", names[kind], byte);
    }
    hal_buffer_release(v.buffer);
    hal_queue_destroy(v.queue);
}

int main(void)
{
    alarm(100); /* threads that wait for one that is gone */
    memory = calloc(1, BYTES);
    shared = process_open();
    for (int kind = 0; kind < KINDS; kind++) {
        for (int round = 0; round < ROUNDS; round++) {
            round_run(kind, round);
        }
    }
    process_close(&shared);
    free(memory);
    return process_end();
}
