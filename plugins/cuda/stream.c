/* Idle streams of each device, kept for the next queue. */
#include "stream.h"

#include <kit/fork.h>
#include <string.h>

enum { MAX_IDLE = 8 };

typedef struct idle_streams {
    cuda_stream streams[MAX_IDLE];
    uint32_t count;
} idle_streams;

static idle_streams idle_of[CUDA_MAX_DEVICES]; /* by ordinal, under the lock */
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

static void idle_reset(void)
{
    memset(idle_of, 0, sizeof idle_of);
}
KIT_FORK_RESET(idle_lock, idle_reset)

hal_status cuda_stream_acquire(const hal_plugin_device *device, cuda_stream *stream)
{
    idle_streams *idle = &idle_of[device->ordinal];
    *stream = NULL;
    pthread_mutex_lock(&idle_lock);
    if (idle->count > 0) {
        *stream = idle->streams[--idle->count];
    }
    pthread_mutex_unlock(&idle_lock);
    return *stream != NULL
               ? HAL_OK
               : cuda_check(cuda_functions()->cuStreamCreate(stream, CUDA_STREAM_NON_BLOCKING),
                            "creating a stream");
}

void cuda_stream_release(const hal_plugin_device *device, cuda_stream stream)
{
    idle_streams *idle = &idle_of[device->ordinal];
    pthread_mutex_lock(&idle_lock);
    const bool kept = stream && idle->count < MAX_IDLE;
    if (kept) {
        idle->streams[idle->count++] = stream;
    }
    pthread_mutex_unlock(&idle_lock);
    if (stream && !kept) {
        cuda_functions()->cuStreamDestroy_v2(stream);
    }
}

void cuda_stream_forget(const hal_plugin_device *device)
{
    pthread_mutex_lock(&idle_lock);
    idle_of[device->ordinal].count = 0; /* the driver destroys them with the context */
    pthread_mutex_unlock(&idle_lock);
}
