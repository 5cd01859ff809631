/* A wrong program, by which validated.sh sees that the validate layer is on: it copies what nobody
 * wrote. */
#include <hal/hal.h>

int main(void)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    hal_buffer *buffer = NULL;
    if (hal_device_open(NULL, &device) == HAL_OK && hal_queue_create(device, &queue) == HAL_OK &&
        hal_buffer_create(device, HAL_MEMORY_DEVICE, 512, &buffer) == HAL_OK) {
        hal_queue_copy(queue, (hal_range){buffer, 0, 256}, (hal_range){buffer, 256, 256});
    }
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}
