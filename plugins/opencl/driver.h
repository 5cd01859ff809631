/* The functions of OpenCL that the plugin calls, in a table that is filled when the loader is
 * opened. */
#ifndef PLUGINS_OPENCL_DRIVER_H
#define PLUGINS_OPENCL_DRIVER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: 1.2 is the floor */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <hal/plugin.h>

#define SYMBOL(name) __typeof__(name) *name;
#define OPTIONAL(name) __typeof__(name) *name;
typedef struct opencl_api {
#include "symbols.inl"
} opencl_api;
#undef SYMBOL
#undef OPTIONAL

extern opencl_api cl;

/* Opens the loader and fills the table. Threads: one at a time, as hal calls enumerate. */
hal_status opencl_driver_load(const hal_host *host);

#endif
