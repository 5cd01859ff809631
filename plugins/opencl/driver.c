/* The OpenCL loader, opened at run time, and the table of its functions. Loaded by device.c. */
#include "driver.h"

#include <kit/library.h>
#include <stddef.h>

opencl_api cl;

hal_status opencl_driver_load(const hal_host *host)
{
    static const char *const names[] = {"libOpenCL.so.1", NULL};
#define SYMBOL(name) {#name, offsetof(opencl_api, name), 1},
#define OPTIONAL(name) {#name, offsetof(opencl_api, name), 0},
    static const kit_symbol symbols[] = {
#include "symbols.inl"
#undef SYMBOL
#undef OPTIONAL
    };
    static const kit_library library = {
        .title = "the OpenCL loader",
        .names = names,
        .remedy = "install the package that has libOpenCL.so.1 (ocl-icd-libopencl1 on Debian), or "
                  "the vendor's driver that brings one",
        .missing = HAL_ERROR_LIBRARY_MISSING,
        .symbols = symbols,
        .symbol_count = sizeof symbols / sizeof symbols[0],
    };
    return cl.clGetPlatformIDs ? HAL_OK : kit_library_open(host, &library, &cl);
}
