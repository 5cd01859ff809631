/* Habits of drivers that no query tells: one table, a reason for each row. */
#ifndef HALYARD_OPENCL_QUIRKS_H
#define HALYARD_OPENCL_QUIRKS_H

#include <hal/status.h>
#include <stdint.h>

enum {
    /* Mapped memory is the host's, with a copy of it on the device that is brought up to date
     * around each use, even where fine-grained sharing is offered. */
    OPENCL_QUIRK_SHADOW = 1,
    /* Offsets and scalars go through a buffer, not through an argument by value. */
    OPENCL_QUIRK_BUFFER_ARGUMENTS = 2,
    /* Memory is taken at its first use: a new buffer is touched, so that its lack is told. */
    OPENCL_QUIRK_LAZY_MEMORY = 4,
    /* Queues without profiling: no device time, but cheaper commands. */
    OPENCL_QUIRK_NO_PROFILING = 8,
    /* Work-items are what the compiler makes vectors of: accesses are of single elements. */
    OPENCL_QUIRK_SCALAR_ACCESS = 16,
    /* A processor behind a graphics driver: last but one in the order of devices. */
    OPENCL_QUIRK_SOFTWARE = 32,
    /* Fused multiply-add is claimed and not always fused. */
    OPENCL_QUIRK_FMA_NOT_FUSED = 64,
    /* Denormals are claimed and not always kept. */
    OPENCL_QUIRK_NO_DENORMALS = 128,
    /* vload_half and vstore_half are wrong: hal converts by integer operations. */
    OPENCL_QUIRK_NO_HALF = 256,
    /* No binaries in hal's cache: for drivers whose own cache saves as much. */
    OPENCL_QUIRK_OWN_CACHE = 512,
    /* What it says of the largest group of a kernel is not so. */
    OPENCL_QUIRK_WRONG_GROUP_LIMIT = 1024,
    /* fma(x, -0, 0) is -0. */
    OPENCL_QUIRK_FMA_OF_ZERO = 2048,
    /* Mapped memory is not pinned, for drivers that are slower with it. */
    OPENCL_QUIRK_PAGEABLE = 4096,
    /* Halves are converted by integer operations, which become vectors. */
    OPENCL_QUIRK_SLOW_HALF = 8192,
    /* Subgroups are left to hal, which carries them out through shared memory. */
    OPENCL_QUIRK_NO_SUBGROUPS = 16384,
    /* A wait is for the batch's event, not for the queue. */
    OPENCL_QUIRK_EVENT_WAIT = 32768,
    /* Kernels declare what they call, and the header that declares everything is left out. */
    OPENCL_QUIRK_OWN_DECLARATIONS = 65536,
    /* Kernels of halves whose groups have short rows are a call of a function for the work-item. */
    OPENCL_QUIRK_CALLED_ITEMS = 131072
};

/* The quirks of a device, by names of platform and device; those that HAL_OPENCL_QUIRKS names are
 * added (a comma list), or taken away where a minus precedes the name, to try the other way.
 * Threads: any. */
uint32_t opencl_quirks(const char *platform, const char *device);

/* Whether HAL_OPENCL_QUIRKS can be followed. Threads: any. Errors: INVALID_ARGUMENT. */
hal_status opencl_quirks_check(void);

#endif
