/* OpenCL without hal. */
#include "peers/raw/opencl_calls.h"

#include <stdio.h>
#include <string.h>

#include "peers/library.h"

enum { MOST = 64 };

static bool load(opencl_calls *cl, char *message, size_t bytes)
{
#define OPENCL_SYMBOL(name) {&cl->name, #name},
    const library_symbol symbols[] = {OPENCL_CALLS(OPENCL_SYMBOL)};
#undef OPENCL_SYMBOL
    return library_open("libOpenCL.so.1", symbols, sizeof symbols / sizeof symbols[0], message,
                        bytes);
}

/* The plugin shows the device's own name, perhaps with words around it. */
static cl_device_id find_device(const opencl_calls *cl, const char *wanted)
{
    cl_platform_id platforms[MOST];
    cl_uint platform_count = 0;
    cl->clGetPlatformIDs(MOST, platforms, &platform_count);
    for (cl_uint p = 0; p < platform_count && p < MOST; p++) {
        cl_device_id devices[MOST];
        cl_uint device_count = 0;
        if (cl->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST, devices, &device_count) !=
            CL_SUCCESS) {
            continue;
        }
        for (cl_uint d = 0; d < device_count && d < MOST; d++) {
            char name[256] = "";
            cl->clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name - 1, name, NULL);
            if (name[0] != 0 && strncmp(wanted, name, strnlen(wanted, 127)) == 0) {
                return devices[d];
            }
            if (name[0] != 0 && strstr(wanted, name)) {
                return devices[d];
            }
        }
    }
    return NULL;
}

bool opencl_open(opencl_calls *cl, const hal_device_info *info, char *message, size_t bytes)
{
    cl_int code = CL_SUCCESS;
    *cl = (opencl_calls){0};
    if (!load(cl, message, bytes)) {
        return false;
    }
    cl->device = find_device(cl, info->name);
    if (!cl->device) {
        snprintf(message, bytes, "OpenCL has no device called %s", info->name);
        return false;
    }
    cl->context = cl->clCreateContext(NULL, 1, &cl->device, NULL, NULL, &code);
    if (code == CL_SUCCESS) {
        cl->queue = cl->clCreateCommandQueue(cl->context, cl->device, 0, &code);
    }
    if (code != CL_SUCCESS) {
        snprintf(message, bytes, "OpenCL: no context or queue for %s: %d", info->name, code);
        opencl_close(cl);
        return false;
    }
    return true;
}

void opencl_close(opencl_calls *cl)
{
    if (cl->queue) {
        cl->clReleaseCommandQueue(cl->queue);
    }
    if (cl->context) {
        cl->clReleaseContext(cl->context);
    }
    cl->queue = NULL;
    cl->context = NULL;
}
