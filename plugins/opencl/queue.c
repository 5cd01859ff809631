/* Queues: an in-order queue of the driver each. Some batches, or all, have the event of their last
 * command as a mark, see point.c. Entries of the plugin's table. */
#include "queue.h"

#include "kernel.h"
#include "quirks.h"

#include <stdlib.h>

hal_status opencl_queue_make(hal_plugin_device *device, cl_command_queue imported,
                             hal_plugin_queue **queue)
{
    *queue = NULL;
    HAL_TRY(opencl_device_check(device));
    hal_plugin_queue *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory for a queue");
    }
    cl_int error = CL_SUCCESS;
    made->device = device;
    if (imported) {
        error = cl.clRetainCommandQueue(imported);
        made->commands = error == CL_SUCCESS ? imported : NULL;
    } else {
        made->commands = cl.clCreateCommandQueue(
            device->context, device->card->device,
            device->card->profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
    }
    if (!made->commands) {
        free(made);
        return opencl_fail_result(error, "%s: %s", device->card->info.name,
                                  imported ? "clRetainCommandQueue" : "clCreateCommandQueue");
    }
    made->marks_all = (device->card->quirks & OPENCL_QUIRK_EVENT_WAIT) != 0;
    made->serial = atomic_fetch_add(&device->serial, 1) + 1;
    pthread_mutex_init(&made->lock, NULL);
    *queue = made;
    return HAL_OK;
}

void opencl_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!queue) {
        return;
    }
    opencl_kernel_release_clones(device, queue->serial);
    if (opencl_device_check(device) == HAL_OK) {
        if (queue->arguments) {
            cl.clReleaseMemObject(queue->arguments);
        }
        cl.clReleaseCommandQueue(queue->commands);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
