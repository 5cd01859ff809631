/* See probe_kernel.h. */
#include "probe_kernel.h"

#include <hal/ir_build.h>
#include <stdarg.h>
#include <string.h>

void probe_wrong(probe *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (p->reason[0] == 0) {
        vsnprintf(p->reason, sizeof p->reason, format, arguments);
    }
    va_end(arguments);
}

hal_status probe_run_ir(probe *p, hal_ir_kernel *ir, uint32_t groups, uint32_t count,
                        const probe_data *data)
{
    hal_kernel *kernel = NULL;
    hal_range ranges[PROBE_BUFFERS] = {{NULL, 0, 0}};
    const uint32_t grid[3] = {groups, 1, 1};
    hal_status status = hal_kernel_create(p->device, ir, &kernel);
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        ranges[i].length = HAL_WHOLE;
        status = hal_buffer_create(p->device, HAL_MEMORY_DEVICE, data[i].bytes, &ranges[i].buffer);
        if (status == HAL_OK) {
            status = hal_queue_write(p->queue, ranges[i].buffer, 0, data[i].data, data[i].bytes);
        }
    }
    if (status == HAL_OK) {
        status = hal_queue_dispatch(p->queue, kernel, grid, ranges, count, NULL, 0);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = hal_queue_read(p->queue, ranges[i].buffer, 0, data[i].bytes, data[i].data);
    }
    for (uint32_t i = 0; i < count; i++) {
        hal_buffer_release(ranges[i].buffer);
    }
    hal_kernel_release(kernel);
    hal_ir_kernel_destroy(ir);
    return status;
}

hal_status probe_run(probe *p, const char *text, uint32_t groups, uint32_t count,
                     const probe_data *data)
{
    hal_ir_kernel *ir = NULL;
    const hal_status status = hal_ir_parse(text, strlen(text), &ir);
    return status == HAL_OK ? probe_run_ir(p, ir, groups, count, data) : status;
}
