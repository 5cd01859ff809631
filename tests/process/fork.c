/* A child that is forked while another thread opens devices opens one itself; with "compiling"
 * that thread also creates kernels, and the child computes.
 * devices: cpu template
 * run: compiling */
#include "process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 60, LIMIT_SECONDS = 60, STEP_MICROSECONDS = 30 };
/* Kinds of work whose kernels share state of the process: functions, and elements in lines. */
enum { FIRST_SHARED = 2, SHARED = 6, COUNT = 100 };

static atomic_bool is_over;

static void *devices_open(void *user)
{
    (void)user;
    while (!atomic_load(&is_over)) {
        hal_device *device = NULL;
        PROCESS_OK(hal_device_open(NULL, &device));
        hal_device_release(device);
    }
    return NULL;
}

/* Creates the kernels of a process that has none: what they share is made meanwhile. */
static void *kernels_create(void *opened)
{
    for (int work = FIRST_SHARED; work < FIRST_SHARED + SHARED; work++) {
        process_work(opened, work, COUNT);
    }
    return NULL;
}

static void child_open(void)
{
    alarm(LIMIT_SECONDS); /* ends a child that hangs */
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    PROCESS_OK(hal_device_open(NULL, &device));
    PROCESS_OK(hal_queue_create(device, &queue));
    PROCESS_OK(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    fflush(stdout);
    _exit(0);
}

static void child_compute(void)
{
    alarm(LIMIT_SECONDS);
    process_device opened = process_open();
    kernels_create(&opened);
    fflush(stdout);
    _exit(0);
}

static int child_wait(pid_t child)
{
    int state = 0;
    return child < 0 || waitpid(child, &state, 0) != child ? -1 : state;
}

/* Forks a child while another thread of this process creates its first kernels. */
static void parent_compile(int number)
{
    pthread_t thread;
    alarm(2 * LIMIT_SECONDS);
    process_device opened = process_open();
    if (pthread_create(&thread, NULL, kernels_create, &opened) != 0) {
        _exit(PROCESS_SKIP);
    }
    usleep((useconds_t)(number * STEP_MICROSECONDS));
    const pid_t child = fork();
    if (child == 0) {
        child_compute();
    }
    const int state = child_wait(child);
    pthread_join(thread, NULL);
    fflush(stdout);
    _exit(state == 0 ? 0 : 1);
}

int main(int argc, char **argv)
{
    const bool compiles = argc > 1 && strcmp(argv[1], "compiling") == 0;
    pthread_t thread;
    setenv("HAL_CACHE_DIR", "off", 1);
    if (!compiles && pthread_create(&thread, NULL, devices_open, NULL) != 0) {
        return PROCESS_SKIP;
    }
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0 && compiles) {
            parent_compile(i);
        } else if (children[i] == 0) {
            child_open();
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        const int state = child_wait(children[i]);
        if (state != 0) {
            process_fail("child %d: state %d", i, state);
        }
    }
    if (!compiles) {
        atomic_store(&is_over, true);
        pthread_join(thread, NULL);
    }
    return process_end();
}
