/* A queue's thread for batches that take long, see background.h. It ends when it has none. */
#include "background.h"

#include <kit/fp.h>
#include <kit/host.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct cpu_late_batch {
    cpu_late_batch *next;
    hal_plugin_queue *queue;
    const hal_host *host;
    cpu_late_run *run;
    hal_batch batch; /* its arrays follow this structure */
    hal_plugin_wait *waits;
    uint32_t first, wait_count;
    uint64_t value;
};

/* Copies an array to `*at`, which moves on by a multiple of 16 bytes. */
static void *array_put(uint8_t **at, const void *array, size_t bytes)
{
    void *copy = *at;
    if (bytes > 0) {
        memcpy(copy, array, bytes);
    }
    *at += (bytes + 15) / 16 * 16;
    return copy;
}

static cpu_late_batch *late_create(const hal_batch *batch, const hal_plugin_wait *waits,
                                   uint32_t wait_count)
{
    const size_t commands = batch->command_count * sizeof(hal_command);
    const size_t bindings = batch->binding_count * sizeof(hal_binding);
    const size_t wait_bytes = wait_count * sizeof(hal_plugin_wait);
    const size_t head = (sizeof(cpu_late_batch) + 15) / 16 * 16;
    cpu_late_batch *late =
        malloc(head + commands + bindings + wait_bytes + batch->scalar_bytes + 4 * 16);
    if (!late) {
        return NULL;
    }
    uint8_t *at = (uint8_t *)late + head;
    *late = (cpu_late_batch){.batch = {.size = sizeof(hal_batch),
                                       .command_count = batch->command_count,
                                       .binding_count = batch->binding_count,
                                       .scalar_bytes = batch->scalar_bytes},
                             .wait_count = wait_count};
    late->batch.commands = array_put(&at, batch->commands, commands);
    late->batch.bindings = array_put(&at, batch->bindings, bindings);
    late->waits = array_put(&at, waits, wait_bytes);
    late->batch.scalars = array_put(&at, batch->scalars, batch->scalar_bytes);
    return late;
}

static cpu_late_batch *late_take(cpu_background *background)
{
    pthread_mutex_lock(&background->lock);
    cpu_late_batch *late = background->first;
    if (late) {
        background->first = late->next;
    } else {
        background->is_running = false;
    }
    pthread_mutex_unlock(&background->lock);
    return late;
}

static void *thread_main(void *user)
{
    cpu_background *background = user;
    kit_fp fp;
    kit_fp_enter(&fp);
    cpu_late_batch *late;
    while ((late = late_take(background)) != NULL) {
        kit_host_enter(late->host);
        late->run(late->queue, &late->batch, late->first, late->waits, late->wait_count,
                  late->value);
        free(late);
    }
    kit_fp_leave(&fp);
    return NULL;
}

/* The signals of the program are for its own threads. The caller holds the lock. */
static bool thread_start(cpu_background *background)
{
    sigset_t all, before;
    if (background->is_joinable) { /* it has left its loop */
        pthread_join(background->thread, NULL);
        background->is_joinable = false;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    background->is_joinable =
        pthread_create(&background->thread, NULL, thread_main, background) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return background->is_joinable;
}

void cpu_background_init(cpu_background *background)
{
    *background = (cpu_background){.first = NULL};
    pthread_mutex_init(&background->lock, NULL);
}

void cpu_background_deinit(cpu_background *background)
{
    if (background->is_joinable) {
        pthread_join(background->thread, NULL);
    }
    pthread_mutex_destroy(&background->lock);
}

bool cpu_background_take(cpu_background *background, hal_plugin_queue *queue, cpu_late_run *run,
                         bool only_behind, const hal_batch *batch, uint32_t first,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    pthread_mutex_lock(&background->lock);
    const bool wanted = background->is_running || !only_behind;
    pthread_mutex_unlock(&background->lock);
    cpu_late_batch *late = wanted ? late_create(batch, waits, wait_count) : NULL;
    if (!late) {
        return false;
    }
    late->queue = queue;
    late->host = kit_host();
    late->run = run;
    late->first = first;
    late->value = value;
    pthread_mutex_lock(&background->lock);
    if (background->first) {
        background->last->next = late;
    } else {
        background->first = late;
    }
    background->last = late;
    const bool taken = background->is_running || thread_start(background);
    background->is_running = taken;
    if (!taken) {
        background->first = NULL;
        free(late);
    }
    pthread_mutex_unlock(&background->lock);
    return taken;
}
