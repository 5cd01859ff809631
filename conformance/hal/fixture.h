/* fixture.h: what the cases of the layer share: a small kernel and buffers of u32. What they make
 * is released at the case's end. */
#ifndef CONFORMANCE_HAL_FIXTURE_H
#define CONFORMANCE_HAL_FIXTURE_H

#include "case/case.h"

/* out[i] = x[i] * scale + shift for i < count, all u32; bindings x and out. */
typedef struct scale_scalars {
    uint32_t count, scale, shift;
} scale_scalars;

#define SCALE_GROUP 32u

hal_ir_kernel *scale_ir(case_run *run);
hal_kernel *scale_kernel(case_run *run, hal_device *device);

/* Opens the device under test, and a queue, in a process that has none. */
void device_open_here(case_run *run);
/* Releases the device at the case's end. */
void device_own(case_run *run, hal_device *device);

/* Records the kernel. */
void scale_dispatch(case_run *run, hal_queue *queue, hal_kernel *kernel, hal_buffer *x,
                    hal_buffer *out, uint32_t count, uint32_t scale, uint32_t shift);

/* A buffer of `count` words, filled with i * step + start. */
hal_buffer *words_create(case_run *run, hal_queue *queue, uint32_t count, uint32_t start,
                         uint32_t step);

/* Reads `count` words and compares them with i * step + start. */
void words_check(case_run *run, hal_queue *queue, hal_buffer *buffer, uint32_t count,
                 uint32_t start, uint32_t step, const char *what);

/* The description of C = A B in F32, of `size` rows and columns. */
hal_gemm_description square_product(uint32_t size);

/* The whole buffer. */
static inline hal_range range_of(hal_buffer *buffer)
{
    return (hal_range){buffer, 0, HAL_WHOLE};
}

#endif
