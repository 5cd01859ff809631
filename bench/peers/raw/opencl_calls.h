/* OpenCL without hal: the ICD loader, opened at run time, and the device of hal's plugin. */
#ifndef BENCH_PEERS_RAW_OPENCL_CALLS_H
#define BENCH_PEERS_RAW_OPENCL_CALLS_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#define OPENCL_CALLS(call)                                                                       \
    call(clGetPlatformIDs) call(clGetDeviceIDs) call(clGetDeviceInfo) call(clCreateContext)        \
    call(clReleaseContext) call(clCreateCommandQueue) call(clReleaseCommandQueue)                  \
    call(clCreateProgramWithSource) call(clBuildProgram) call(clReleaseProgram)                    \
    call(clCreateKernel) call(clReleaseKernel) call(clSetKernelArg)                                \
    call(clEnqueueNDRangeKernel) call(clFlush) call(clFinish) call(clCreateBuffer)                 \
    call(clReleaseMemObject) call(clEnqueueWriteBuffer) call(clEnqueueReadBuffer)                  \
    call(clEnqueueCopyBuffer)

typedef struct opencl_calls {
#define OPENCL_MEMBER(name) __typeof__(name) *name;
    OPENCL_CALLS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* in order */
} opencl_calls;

/* Fills in all of it for the device that `info` describes. False with a message. */
bool opencl_open(opencl_calls *cl, const hal_device_info *info, char *message, size_t bytes);
void opencl_close(opencl_calls *cl);

#endif
