/* OpenCL's own calls. Arguments are set for each dispatch, as in programs whose buffers change;
 * the queue is in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/raw/opencl_calls.h"
#include "peers/raw/apis.h"

typedef struct raw_opencl_device {
    raw_device base;
    opencl_calls cl;
    cl_program program;
    cl_kernel empty, bound, step;
    cl_mem x, y, source, target;
    unsigned turn; /* which of x and y the next step reads */
    uint64_t copy_bytes;
} raw_opencl_device;

static const char text[] = "__kernel void empty(void) {}\n"
                           "__kernel void bound(__global const float *x, __global float *y) {}\n"
                           "__kernel void next(__global const uint *x, __global uint *y) {\n"
                           "    const uint i = (uint)get_global_id(0);\n"
                           "    y[i] = 3 * x[i] + i;\n"
                           "}\n";

static bool well(raw_opencl_device *d, cl_int code, const char *call)
{
    return code == CL_SUCCESS || raw_fail(&d->base, call, code);
}

static bool make(raw_device *device)
{
    raw_opencl_device *d = (raw_opencl_device *)device;
    const opencl_calls *cl = &d->cl;
    const char *source = text;
    cl_int code = CL_SUCCESS;
    d->program = cl->clCreateProgramWithSource(cl->context, 1, &source, NULL, &code);
    if (!well(d, code, "clCreateProgramWithSource") ||
        !well(d, cl->clBuildProgram(d->program, 1, &cl->device, "", NULL, NULL),
              "clBuildProgram")) {
        return false;
    }
    d->empty = cl->clCreateKernel(d->program, "empty", &code);
    if (!well(d, code, "clCreateKernel")) {
        return false;
    }
    d->bound = cl->clCreateKernel(d->program, "bound", &code);
    if (!well(d, code, "clCreateKernel")) {
        return false;
    }
    d->step = cl->clCreateKernel(d->program, "next", &code);
    if (!well(d, code, "clCreateKernel")) {
        return false;
    }
    d->x = cl->clCreateBuffer(cl->context, CL_MEM_READ_WRITE, RAW_READ_MOST, NULL, &code);
    if (!well(d, code, "clCreateBuffer")) {
        return false;
    }
    d->y = cl->clCreateBuffer(cl->context, CL_MEM_READ_WRITE, RAW_READ_MOST, NULL, &code);
    return well(d, code, "clCreateBuffer");
}

static void release(raw_opencl_device *d, cl_mem *memory)
{
    if (*memory) {
        d->cl.clReleaseMemObject(*memory);
    }
    *memory = NULL;
}

static void close_device(raw_device *device)
{
    raw_opencl_device *d = (raw_opencl_device *)device;
    const opencl_calls *cl = &d->cl;
    cl->clFinish(cl->queue);
    release(d, &d->x);
    release(d, &d->y);
    release(d, &d->source);
    release(d, &d->target);
    if (d->empty) {
        cl->clReleaseKernel(d->empty);
    }
    if (d->bound) {
        cl->clReleaseKernel(d->bound);
    }
    if (d->step) {
        cl->clReleaseKernel(d->step);
    }
    if (d->program) {
        cl->clReleaseProgram(d->program);
    }
    opencl_close(&d->cl);
    free(d);
}

static bool open_device(raw_device *device, const hal_device_info *info, char *message,
                        size_t bytes)
{
    raw_opencl_device *d = (raw_opencl_device *)device;
    return opencl_open(&d->cl, info, message, bytes);
}

static bool launch(raw_opencl_device *d, cl_kernel kernel, size_t items, size_t group)
{
    return well(
        d,
        d->cl.clEnqueueNDRangeKernel(d->cl.queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL),
        "clEnqueueNDRangeKernel");
}

/* Sets the arguments and launches. */
static bool launch_on(raw_opencl_device *d, cl_kernel kernel, const cl_mem *x, const cl_mem *y,
                      size_t items, size_t group)
{
    return well(d, d->cl.clSetKernelArg(kernel, 0, sizeof *x, x), "clSetKernelArg") &&
           well(d, d->cl.clSetKernelArg(kernel, 1, sizeof *y, y), "clSetKernelArg") &&
           launch(d, kernel, items, group);
}

static bool finish(raw_opencl_device *d)
{
    return well(d, d->cl.clFinish(d->cl.queue), "clFinish");
}

static void run_empty(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls && launch(d, d->empty, 1, 1); i++) {
    }
    finish(d);
}

static void run_bound(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls && launch_on(d, d->bound, &d->x, &d->y, 1, 1); i++) {
    }
    finish(d);
}

static void run_step(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls; i++, d->turn ^= 1) {
        if (!launch_on(d, d->step, d->turn ? &d->y : &d->x, d->turn ? &d->x : &d->y, RAW_STEP_WORDS,
                       RAW_STEP_GROUP)) {
            break;
        }
    }
    finish(d);
}

static bool step_words(raw_device *device, int calls, uint32_t words[])
{
    raw_opencl_device *d = (raw_opencl_device *)device;
    const size_t bytes = RAW_STEP_WORDS * sizeof *words;
    memset(words, 0, bytes);
    if (!well(d,
              d->cl.clEnqueueWriteBuffer(d->cl.queue, d->turn ? d->y : d->x, CL_TRUE, 0, bytes,
                                         words, 0, NULL, NULL),
              "clEnqueueWriteBuffer")) {
        return false;
    }
    run_step(d, calls);
    return !d->base.failed &&
           well(d,
                d->cl.clEnqueueReadBuffer(d->cl.queue, d->turn ? d->y : d->x, CL_TRUE, 0, bytes,
                                          words, 0, NULL, NULL),
                "clEnqueueReadBuffer");
}

static void run_alone(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls && launch(d, d->empty, 1, 1) && finish(d); i++) {
    }
}

static void run_alone_read(void *user, int calls)
{
    raw_opencl_device *d = user;
    char host[RAW_READ_MOST];
    for (int i = 0; i < calls; i++) {
        if (!launch(d, d->empty, 1, 1) ||
            !well(d,
                  d->cl.clEnqueueReadBuffer(d->cl.queue, d->y, CL_TRUE, 0, d->base.read_bytes, host,
                                            0, NULL, NULL),
                  "clEnqueueReadBuffer")) {
            break;
        }
    }
}

/* Drivers that allocate on first use do less work here. */
static void run_allocate(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls && !d->base.failed; i++) {
        cl_int code = CL_SUCCESS;
        cl_mem memory =
            d->cl.clCreateBuffer(d->cl.context, CL_MEM_READ_WRITE, RAW_ALLOCATION, NULL, &code);
        if (well(d, code, "clCreateBuffer")) {
            well(d, d->cl.clReleaseMemObject(memory), "clReleaseMemObject");
        }
    }
}

static void run_copy(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!well(d,
                  d->cl.clEnqueueCopyBuffer(d->cl.queue, d->source, d->target, 0, 0,
                                            (size_t)d->copy_bytes, 0, NULL, NULL),
                  "clEnqueueCopyBuffer")) {
            break;
        }
    }
    finish(d);
}

static bool make_copy(raw_device *device, uint64_t bytes)
{
    raw_opencl_device *d = (raw_opencl_device *)device;
    const opencl_calls *cl = &d->cl;
    uint32_t mark = 0x5eed5eedu, found = 0;
    const size_t last = (size_t)bytes - sizeof mark;
    cl_int code = CL_SUCCESS;
    d->copy_bytes = bytes;
    release(d, &d->source);
    release(d, &d->target);
    d->source = cl->clCreateBuffer(cl->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (!well(d, code, "clCreateBuffer")) {
        return false;
    }
    d->target = cl->clCreateBuffer(cl->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (!well(d, code, "clCreateBuffer") ||
        !well(d,
              cl->clEnqueueWriteBuffer(cl->queue, d->source, CL_TRUE, last, sizeof mark, &mark, 0,
                                       NULL, NULL),
              "clEnqueueWriteBuffer")) {
        return false;
    }
    run_copy(d, 1);
    return well(d,
                cl->clEnqueueReadBuffer(cl->queue, d->target, CL_TRUE, last, sizeof found, &found,
                                        0, NULL, NULL),
                "clEnqueueReadBuffer") &&
           (found == mark || raw_fail(&d->base, "clEnqueueCopyBuffer, whose bytes are wrong,", 0));
}

static void run_write(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!well(d,
                  d->cl.clEnqueueWriteBuffer(d->cl.queue, d->target, CL_TRUE, 0, d->base.host_bytes,
                                             d->base.host, 0, NULL, NULL),
                  "clEnqueueWriteBuffer")) {
            break;
        }
    }
}

static void run_read(void *user, int calls)
{
    raw_opencl_device *d = user;
    for (int i = 0; i < calls; i++) {
        if (!well(d,
                  d->cl.clEnqueueReadBuffer(d->cl.queue, d->target, CL_TRUE, 0, d->base.host_bytes,
                                            d->base.host, 0, NULL, NULL),
                  "clEnqueueReadBuffer")) {
            break;
        }
    }
}

const raw_api raw_opencl = {.plugin = "opencl",
                            .device_bytes = sizeof(raw_opencl_device),
                            .open = open_device,
                            .make = make,
                            .close = close_device,
                            .empty = run_empty,
                            .bound = run_bound,
                            .step = run_step,
                            .step_words = step_words,
                            .alone = run_alone,
                            .alone_read = run_alone_read,
                            .allocate = run_allocate,
                            .copy = run_copy,
                            .write = run_write,
                            .read = run_read,
                            .make_copy = make_copy};
