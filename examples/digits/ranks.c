/* The ranks of a training program, see ranks.h. */
#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A rank of this process: its device, and its communicator once it is created. */
typedef struct rank_job {
    const ranks_program *program;
    hal_device *device;
    hal_comm *comm;
    pthread_t thread;
    int good;
} rank_job;

static void *rank_start(void *argument)
{
    rank_job *job = argument;
    const ranks_program *program = job->program;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    int good =
        hal_queue_create(job->device, &queue) == HAL_OK || ranks_fail(program, "making a queue");
    good = good && (ops_context_create(queue, &context) == HAL_OK ||
                    ranks_fail(program, "making a context"));
    job->good = good && program->rank_run(program->user, context, job->comm);
    if (!job->good) {
        hal_comm_abort(job->comm, hal_status_message());
    }
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    return NULL;
}

/* One rank, on this thread; of the communicator of the launcher's processes. */
static int process_run(const ranks_program *program)
{
    rank_job job = {.program = program};
    if (hal_device_open(program->device, &job.device) != HAL_OK) {
        return ranks_fail(program, "opening the device");
    }
    if (hal_comm_create_from_environment(job.device, 0, &job.comm) == HAL_OK) {
        rank_start(&job);
    } else {
        ranks_fail(program, "joining the communicator");
    }
    hal_comm_destroy(job.comm);
    hal_device_release(job.device);
    return job.good;
}

/* The devices of the ranks: the selected one and the next ones of its plugin (cuda:0, cuda:1, ...)
 * if there are as many of one name, else the selected one for each. Returns 0 after a message. */
static int devices_open(const ranks_program *program, hal_device **devices)
{
    char selection[96];
    int differ = 1;
    if (hal_device_open(program->device, &devices[0]) != HAL_OK) {
        return ranks_fail(program, "opening the device");
    }
    const char *plugin = hal_device_get_plugin_name(devices[0]);
    const char *name = hal_device_get_info(devices[0])->name;
    const uint32_t first = hal_device_get_index(devices[0]);
    const uint32_t last = first + (uint32_t)program->ranks - 1;
    for (int i = 1; i < program->ranks && differ; i++) {
        snprintf(selection, sizeof(selection), "%s:%u", plugin, first + (uint32_t)i);
        const hal_status status = hal_device_open(selection, &devices[i]);
        if (status != HAL_OK && status != HAL_ERROR_NOT_FOUND) {
            return ranks_fail(program, "opening the next device");
        }
        differ = status == HAL_OK && strcmp(hal_device_get_info(devices[i])->name, name) == 0;
    }
    for (int i = 1; i < program->ranks && !differ; i++) {
        hal_device_release(devices[i]);
        devices[i] = hal_device_retain(devices[0]);
    }
    if (!differ) {
        printf("All %d ranks use %s:%u.\n", program->ranks, plugin, first);
    } else if (program->ranks > 1) {
        printf("The ranks use %s:%u to %s:%u.\n", plugin, first, plugin, last);
    }
    return 1;
}

/* All ranks in this process, with a thread each. */
static int threads_run(const ranks_program *program)
{
    rank_job jobs[RANKS_MAX];
    hal_device *devices[RANKS_MAX] = {0};
    hal_comm *comms[RANKS_MAX] = {0};
    const int ranks = program->ranks;
    int good = devices_open(program, devices), started = 0;
    good = good && (hal_comm_create_local(devices, (uint32_t)ranks, 0, comms) == HAL_OK ||
                    ranks_fail(program, "creating the communicator"));
    for (; good && started < ranks; started++) {
        jobs[started] =
            (rank_job){.program = program, .device = devices[started], .comm = comms[started]};
        if (pthread_create(&jobs[started].thread, NULL, rank_start, &jobs[started]) != 0) {
            fprintf(stderr, "%s: no thread for rank %d\n", program->name, started);
            hal_comm_abort(comms[started], "no thread");
            good = 0;
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(jobs[i].thread, NULL);
        good = good && jobs[i].good;
    }
    for (int i = 0; i < ranks; i++) {
        hal_comm_destroy(comms[i]);
        hal_device_release(devices[i]);
    }
    return good;
}

int ranks_run(const ranks_program *program)
{
    return program->ranks > 0 ? threads_run(program) : process_run(program);
}

int ranks_fail(const ranks_program *program, const char *what)
{
    fprintf(stderr, "%s: %s failed: %s\n", program->name, what, hal_status_message());
    return 0;
}
