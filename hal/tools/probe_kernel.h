/* A kernel of hal-probe over memory of the host, and the reason for which a feature is wrong. */
#ifndef HAL_TOOLS_PROBE_KERNEL_H
#define HAL_TOOLS_PROBE_KERNEL_H

#include <hal/hal.h>
#include <stdio.h>

enum { PROBE_BUFFERS = 4, PROBE_REASON_BYTES = 256 };

typedef struct probe {
    hal_device *device;
    hal_queue *queue;
    const hal_device_info *info;
    FILE *answers;
    char reason[PROBE_REASON_BYTES]; /* why an answer is wrong; "": it is right */
} probe;

/* Memory of the host: written to a buffer before a kernel runs, and read after it. */
typedef struct probe_data {
    void *data;
    uint64_t bytes;
} probe_data;

/* Keeps the first reason. */
void probe_wrong(probe *p, const char *format, ...) HAL_PRINTF(2, 3);

/* Runs a kernel over `count` buffers of the data, and takes the kernel's IR. */
hal_status probe_run_ir(probe *p, hal_ir_kernel *ir, uint32_t groups, uint32_t count,
                        const probe_data *data);
/* The same of a kernel's text. */
hal_status probe_run(probe *p, const char *text, uint32_t groups, uint32_t count,
                     const probe_data *data);

#endif
