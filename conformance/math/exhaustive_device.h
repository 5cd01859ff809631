/* a function of hal-math-exhaustive as a kernel on a device. */
#ifndef CONFORMANCE_MATH_EXHAUSTIVE_DEVICE_H
#define CONFORMANCE_MATH_EXHAUSTIVE_DEVICE_H

#include "math/exhaustive.h"

#include <hal/hal.h>

/* An open device, and what one function needs on it. */
typedef struct math_device {
    hal_device *device;
    hal_queue *queue;
    const hal_device_info *info;
    const math_case *function;
    hal_kernel *kernel;
    hal_buffer *arguments[2]; /* x and y; none where the kernel makes its input */
    hal_buffer *results;
    uint32_t group; /* work-items */
    size_t chunk;   /* the most inputs of one run */
} math_device;

/* Opens what the selection names, null for what HAL_BACKEND says; close also after an error. */
hal_status math_device_open(math_device *device, const char *selection);
void math_device_close(math_device *device);

/* Whether the device has the type of a function. */
bool math_device_offers(const math_device *device, const math_case *function);

/* Makes the kernel and the buffers of a function; begins anew for the next one. */
hal_status math_device_prepare(math_device *device, const math_case *function);

/* Runs the function over `count` of all inputs, from number `first` on at a step; or over samples
 * that the host made. Waits for the results. */
hal_status math_device_run_all(math_device *device, uint64_t first, uint64_t step, size_t count,
                               void *results);
hal_status math_device_run_samples(math_device *device, const void *x, const void *y, size_t count,
                                   void *results);

#endif
