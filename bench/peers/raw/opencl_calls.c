/* OpenCL without hal, see opencl_calls.h. */
#include "peers/raw/opencl_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

static bool load(opencl_calls *cl, char *message, size_t bytes);
static cl_device_id find_device(const opencl_calls *cl, const char *wanted);

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

static bool load(opencl_calls *cl, char *message, size_t bytes)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(message, bytes, "%s", dlerror());
        return false;
    }
    void *symbol;
#define OPENCL_LOAD(name)                                           \
    symbol = dlsym(library, #name);                                 \
    if (!symbol) {                                                  \
        snprintf(message, bytes, "libOpenCL.so.1 lacks %s", #name); \
        return false;                                               \
    }                                                               \
    memcpy(&cl->name, &symbol, sizeof symbol);
    OPENCL_CALLS(OPENCL_LOAD)
#undef OPENCL_LOAD
    return true;
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
