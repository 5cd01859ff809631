/* A child that is forked while another thread opens devices opens one itself.
 * devices: cpu template */
#include "process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 60, LIMIT_SECONDS = 60 };

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

static void child_run(void)
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

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, devices_open, NULL) != 0) {
        return PROCESS_SKIP;
    }
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            child_run();
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        int state = 0;
        if (children[i] < 0 || waitpid(children[i], &state, 0) != children[i] || state != 0) {
            process_fail("child %d: state %d", i, state);
        }
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    return process_end();
}
