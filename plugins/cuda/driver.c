/* The CUDA driver's library, opened at run time, and the table of its functions. Loaded by
 * device.c; the table is read by every file that calls the driver. */
#include "driver.h"

#include <kit/library.h>
#include <stdbool.h>

static cuda_driver functions;
static bool is_loaded;

const cuda_driver *cuda_functions(void)
{
    return &functions;
}

hal_status cuda_driver_load(const hal_host *host)
{
    static const kit_symbol symbols[] = {
#define SYMBOL(name, parameters) {#name, offsetof(cuda_driver, name), 1},
#define OPTIONAL(name, parameters) {#name, offsetof(cuda_driver, name), 0},
#include "symbols.inl"
#undef SYMBOL
#undef OPTIONAL
    };
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const kit_library library = {
        .title = "the CUDA driver",
        .names = names,
        .remedy = "install the NVIDIA driver, 510 or newer; no toolkit is needed",
        .missing = HAL_ERROR_DRIVER_MISSING,
        .symbols = symbols,
        .symbol_count = sizeof symbols / sizeof symbols[0],
    };
    const hal_status status = is_loaded ? HAL_OK : kit_library_open(host, &library, &functions);
    is_loaded = status == HAL_OK;
    return status;
}
