/* planted_fault.c: runs a kernel of conformance's level sanitize, with its fault or without and
 * with no check, so that another tool can be asked about it (planted_faults.py).
 *
 * planted_fault --list | DEVICE NAME wrong|right */
#include <hal/hal.h>

#include "ir/sanitize_faults.h"

#include <stdio.h>
#include <string.h>

/* Bindings are the ends of buffers of as many bytes, which the pool allocates as they are, so that
 * who knows allocations and not bindings sees accesses behind the end. */
enum { BUFFER_BYTES = 1 << 20 };

static const float one = 1;

static hal_status fill(hal_queue *queue, const sanitize_fault *fault, bool is_wrong, uint32_t at,
                       hal_range *binding)
{
    uint32_t bits = 1;
    if (at < 2) {
        memcpy(&bits, &one, sizeof bits);
    }
    hal_range filled = *binding;
    filled.length -= is_wrong ? fault->unwritten[at] : 0;
    return filled.length > 0 ? hal_queue_fill(queue, filled, bits) : HAL_OK;
}

static hal_status run(hal_device *device, hal_queue *queue, const sanitize_fault *fault,
                      bool is_wrong, hal_range bindings[static SANITIZE_BINDINGS])
{
    static const uint32_t grid[3] = {4, 1, 1};
    char text[SANITIZE_TEXT_BYTES];
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    sanitize_fault_text(fault, is_wrong ? fault->wrong : fault->right, text);
    hal_status status = hal_ir_parse(text, strlen(text), &ir);
    status = status == HAL_OK ? hal_kernel_create(device, ir, &kernel) : status;
    hal_ir_kernel_destroy(ir);
    for (uint32_t i = 0; status == HAL_OK && i < SANITIZE_BINDINGS; i++) {
        const uint64_t bytes = fault->bytes[i] && is_wrong ? fault->bytes[i] : 1024;
        bindings[i].length = bytes;
        bindings[i].offset = (BUFFER_BYTES - bytes) / 16 * 16;
        status = hal_buffer_create(device, HAL_MEMORY_DEVICE, BUFFER_BYTES, &bindings[i].buffer);
        status = status == HAL_OK ? fill(queue, fault, is_wrong, i, &bindings[i]) : status;
    }
    if (status == HAL_OK) {
        status = hal_queue_dispatch(queue, kernel, grid, bindings, SANITIZE_BINDINGS, NULL, 0);
    }
    status = status == HAL_OK ? hal_queue_wait(queue, HAL_WAIT_FOREVER) : status;
    hal_kernel_release(kernel);
    return status;
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (size_t i = 0; i < sanitize_fault_count; i++) {
            puts(sanitize_faults[i].name);
        }
        return 0;
    }
    const sanitize_fault *fault = NULL;
    for (size_t i = 0; count == 4 && i < sanitize_fault_count; i++) {
        fault = strcmp(sanitize_faults[i].name, arguments[2]) == 0 ? &sanitize_faults[i] : fault;
    }
    if (!fault) {
        fputs("usage: planted_fault --list | DEVICE NAME wrong|right\n", stderr);
        return 2;
    }
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    hal_range bindings[SANITIZE_BINDINGS] = {0};
    hal_status status = hal_device_open(arguments[1], &device);
    status = status == HAL_OK ? hal_queue_create(device, &queue) : status;
    if (status == HAL_OK) {
        status = run(device, queue, fault, strcmp(arguments[3], "wrong") == 0, bindings);
    }
    if (status != HAL_OK) { /* such as a device that the fault has broken */
        printf("%s: %s\n", hal_status_name(status), hal_status_message());
    }
    for (uint32_t i = 0; i < SANITIZE_BINDINGS; i++) {
        hal_buffer_release(bindings[i].buffer);
    }
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}
