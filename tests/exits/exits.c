/* Promise 5: processes end with status 0 while threads are at work: those of the cpu plugin on a
 * batch that nobody waits for, and one of the program's own that records and flushes for ever. Half
 * of them end by returning from main, half by exit in the other thread.
 * usage: exits COUNT   runs itself that many times */
#include <hal/hal.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { AT_ONCE = 4, BYTES = 4 << 20 };

static hal_device *device;
static hal_buffer *buffers[2];
static _Atomic int is_busy;

static hal_status keep_busy(hal_queue *queue)
{
    hal_status status = hal_queue_fill(queue, (hal_range){buffers[0], 0, HAL_WHOLE}, 7);
    if (status == HAL_OK) {
        status = hal_queue_copy(queue, (hal_range){buffers[0], 0, BYTES},
                                (hal_range){buffers[1], 0, BYTES});
    }
    return status == HAL_OK ? hal_queue_flush(queue, NULL) : status;
}

static void *work_for_ever(void *argument)
{
    const int ends = *(const int *)argument;
    hal_queue *queue = NULL;
    hal_status status = hal_queue_create(device, &queue);
    for (int i = 0; status == HAL_OK; i++) {
        status = keep_busy(queue);
        is_busy = 1;
        if (ends && i == 3) {
            exit(0);
        }
        if (i % 16 == 15) {
            hal_queue_wait(queue, HAL_WAIT_FOREVER);
        }
    }
    fprintf(stderr, "%s\n", hal_status_message());
    _Exit(2);
}

static int be_child(int ends)
{
    static int argument;
    hal_queue *queue = NULL;
    pthread_t thread;
    argument = ends;
    alarm(60); /* one that does not end is ended by a signal, which is seen */
    if (hal_device_open("cpu", &device) || hal_queue_create(device, &queue) ||
        hal_buffer_create(device, HAL_MEMORY_DEVICE, BYTES, &buffers[0]) ||
        hal_buffer_create(device, HAL_MEMORY_DEVICE, BYTES, &buffers[1]) ||
        pthread_create(&thread, NULL, work_for_ever, &argument) != 0) {
        fprintf(stderr, "%s\n", hal_status_message());
        return 1;
    }
    if (ends) {
        pthread_join(thread, NULL); /* it ends the process */
    }
    while (!is_busy) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return keep_busy(queue) == HAL_OK ? 0 : 1;
}

/* Waits for one child; 0 if it ended well. */
static int end_one(void)
{
    int status = 0;
    if (wait(&status) > 0 && status == 0) {
        return 0;
    }
    fprintf(stderr, "a process ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[1], "main") == 0 || strcmp(argv[1], "thread") == 0) {
        return be_child(argc == 2 && strcmp(argv[1], "thread") == 0);
    }
    const int count = atoi(argv[1]);
    int running = 0, failed = 0;
    for (int i = 0; i < count && !failed; i++) {
        char main_name[] = "main", thread_name[] = "thread";
        char *const child[] = {argv[0], i % 2 ? main_name : thread_name, NULL};
        failed += posix_spawn(&(pid_t){0}, argv[0], NULL, NULL, child, environ) != 0;
        running++;
        if (running == AT_ONCE) {
            failed += end_one();
            running--;
        }
    }
    for (; running > 0; running--) {
        failed += end_one();
    }
    printf("%d of %d processes did not end with 0\n", failed, count);
    return failed != 0;
}
