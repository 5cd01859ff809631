/* hal_case.h: what the cases of the layer share: a small kernel and buffers of u32. */
#ifndef HAL_CONFORMANCE_HAL_CASE_H
#define HAL_CONFORMANCE_HAL_CASE_H

#include "case.h"

/* out[i] = x[i] * scale + shift for i < count, all u32; bindings x and out. */
typedef struct scale_scalars {
    uint32_t count, scale, shift;
} scale_scalars;

#define SCALE_GROUP 32u

/* The kernel's IR, and the kernel; null after reporting. To be freed by hal_ir_kernel_destroy and
 * hal_kernel_release. */
hal_ir_kernel *scale_ir(case_run *run);
hal_kernel *scale_kernel(case_run *run, hal_device *device);

/* Records the kernel; false after reporting. */
bool scale_dispatch(case_run *run, hal_queue *queue, hal_kernel *kernel, hal_buffer *x,
                    hal_buffer *out, uint32_t count, uint32_t scale, uint32_t shift);

/* A buffer of `count` words, filled with i * step + start; null after reporting. */
hal_buffer *words_create(case_run *run, hal_queue *queue, uint32_t count, uint32_t start,
                         uint32_t step);

/* Reads `count` words and compares them with i * step + start. */
bool words_check(case_run *run, hal_queue *queue, hal_buffer *buffer, uint32_t count,
                 uint32_t start, uint32_t step, const char *what);

#endif
