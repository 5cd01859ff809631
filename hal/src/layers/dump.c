/* The dump layer: HAL_DUMP=batch, or calls, writes each queue's batches, with the contents of their
 * memory before and after, to a file halyard-<process>-<number>.batch in HAL_DUMP_DIR, or in the
 * current folder. hal/dump.h has the format, hal-replay runs the files, docs/layers.md describes
 * both.
 *
 * Batches run one at a time: the host waits for the queue before and after each. */
#include "dump_queue.h"
#include "dump_contents.h"
#include "layer.h"
#include "plugin/host.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/platform.h"
#include "base/status.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Guards the whole layer. Its holder waits for devices, never for other threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(lock, HAL_FORK_LAYER)

static _Atomic bool has_calls, is_unfused;

bool hal_dump_has_calls(void)
{
    return atomic_load_explicit(&has_calls, memory_order_relaxed);
}

bool hal_dump_is_unfused(void)
{
    return atomic_load_explicit(&is_unfused, memory_order_relaxed);
}

void hal_dump_group_set(hal_queue *queue, const char *calls)
{
    pthread_mutex_lock(&lock);
    hal_dump_queue_set_calls(queue, calls);
    pthread_mutex_unlock(&lock);
}

void hal_dump_value_note(hal_queue *queue, const hal_range *range, hal_type type, uint64_t number,
                         const char *call)
{
    pthread_mutex_lock(&lock);
    hal_dump_queue_note_value(queue, range, type, number, call);
    pthread_mutex_unlock(&lock);
}

/* Creates a file and removes it: the folder has to take files. */
static hal_status dump_begin(void)
{
    static char *folder;
    const char *variable = secure_getenv("HAL_DUMP_DIR");
    hal_dump_file file;
    free(folder);
    folder = strdup(variable && *variable ? variable : ".");
    if (!folder || hal_dump_contents_start() != HAL_OK) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "HAL_DUMP=batch: no host memory");
    }
    const char *words = secure_getenv("HAL_DUMP");
    const hal_status status = hal_dump_file_create(folder, &file);
    if (file.handle >= 0) {
        unlink(file.path);
    }
    hal_dump_file_close(&file);
    hal_dump_queue_set_folder(folder);
    atomic_store(&has_calls, words && hal_list_has(words, "calls"));
    atomic_store(&is_unfused, words && hal_list_has(words, "unfused"));
    return status == HAL_OK ? HAL_OK : hal_host_failed(status, "opening a device");
}

static hal_status dump_before(hal_event *event)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&lock);
    if (event->kind == HAL_EVENT_SUBMIT) {
        status = hal_dump_queue_submitting(event);
    } else if (event->kind == HAL_EVENT_FREE) {
        const hal_dump_memory *memory = hal_dump_memory_find(event->memory);
        if (memory) {
            hal_dump_queue_memory_freeing(memory);
        }
        hal_dump_memory_freeing(event->memory);
    } else if (event->kind == HAL_EVENT_CLOSE) {
        hal_dump_queue_device_closing(event->device);
        hal_dump_device_closing(event->device);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void dump_after(const hal_event *event, hal_status status)
{
    pthread_mutex_lock(&lock);
    if (event->kind == HAL_EVENT_SUBMIT) {
        hal_dump_queue_submitted(event, status);
    } else if (status == HAL_OK && event->kind == HAL_EVENT_OPEN) {
        hal_dump_device_opened(event->device);
    } else if (status == HAL_OK && event->kind == HAL_EVENT_ALLOCATE) {
        hal_dump_memory_allocated(event);
    } else if (status == HAL_OK && event->kind == HAL_EVENT_COMPILE) {
        hal_dump_kernel_compiled(event);
    }
    pthread_mutex_unlock(&lock);
}

const hal_layer hal_layer_dump = {
    .bit = HAL_LAYER_DUMP,
    .hooks = HAL_HOOK_EVENTS,
    .begin = dump_begin,
    .before = dump_before,
    .after = dump_after,
};
