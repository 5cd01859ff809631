/* OpenCL as the plugin calls it: through a table that is filled when the loader is opened. */
#ifndef HALYARD_OPENCL_API_H
#define HALYARD_OPENCL_API_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: 1.2 is the floor */
#include <CL/cl.h>
#include <CL/cl_ext.h>

#define SYMBOL(name) __typeof__(name) *name;
#define OPTIONAL(name) __typeof__(name) *name;
typedef struct opencl_api {
#include "symbols.inl"
} opencl_api;
#undef SYMBOL
#undef OPTIONAL

/* device.c fills it before anything else is called. */
extern opencl_api cl;

#endif
