/* What is known of single drivers and cannot be asked of them: each quirk with its name and effect
 * here, and the conditions in the table of quirks.c. */
#ifndef PLUGINS_OPENCL_QUIRKS_H
#define PLUGINS_OPENCL_QUIRKS_H

#include <hal/status.h>
#include <stdint.h>

/* X(name, name in HAL_OPENCL_QUIRKS, effect) */
#define OPENCL_QUIRKS(X)                                                                       \
    X(SHADOW, "shadow",                                                                        \
      "mapped memory is host memory with a copy on the device, also where "                    \
      "fine-grained sharing is offered")                                                       \
    X(BUFFER_ARGUMENTS, "buffer_arguments",                                                    \
      "offsets and scalars are passed in a buffer, not "                                       \
      "by value")                                                                              \
    X(LAZY_MEMORY, "lazy_memory",                                                              \
      "a new buffer is written once, so that a lack of memory is "                             \
      "reported when it is allocated")                                                         \
    X(NO_PROFILING, "no_profiling",                                                            \
      "queues have no profiling: no device times, but cheaper "                                \
      "commands")                                                                              \
    X(SCALAR_ACCESS, "scalar_access",                                                          \
      "accesses are of single elements, since the compiler "                                   \
      "vectorises over work-items")                                                            \
    X(SOFTWARE, "software",                                                                    \
      "the device is listed as software, last but one in the order of "                        \
      "devices")                                                                               \
    X(FMA_NOT_FUSED, "fma_not_fused", "fused multiply-add is not claimed")                     \
    X(NO_DENORMALS, "no_denormals", "denormals are not claimed")                               \
    X(NO_HALF, "no_half", "f16 is not offered: hal converts by integer operations")            \
    X(OWN_CACHE, "own_cache", "no binaries are stored in hal's cache, as the driver has one")  \
    X(EAGER, "eager", "commands start when they are enqueued: batches are not flushed")        \
    X(WRONG_GROUP_LIMIT, "wrong_group_limit",                                                  \
      "the driver's limit of the group of a kernel "                                           \
      "is ignored")                                                                            \
    X(FMA_OF_ZERO, "fma_of_zero", "fma is not used for products of zero")                      \
    X(PAGEABLE, "pageable", "mapped memory is not pinned")                                     \
    X(SLOW_HALF, "slow_half",                                                                  \
      "halves are converted by integer operations, which are "                                 \
      "vectorised")                                                                            \
    X(NO_SUBGROUPS, "no_subgroups",                                                            \
      "subgroups are not offered: hal emulates them in shared "                                \
      "memory")                                                                                \
    X(WARPS, "warps",                                                                          \
      "subgroups are warps of 32, matrix units and asynchronous copies are used and narrow "   \
      "floats are converted, by PTX in OpenCL C")                                              \
    X(EVENT_WAIT, "event_wait",                                                                \
      "a wait without limit is for an event, which each batch has, "                           \
      "not for the queue")                                                                     \
    X(OWN_DECLARATIONS, "own_declarations",                                                    \
      "kernels declare the functions that they call, "                                         \
      "and the driver's header is left out")                                                   \
    X(WRONG_INTEGRAL, "wrong_integral",                                                        \
      "operands of floor, trunc and rint that are constants are hidden from the compiler")     \
    X(WRONG_WIDENING, "wrong_widening",                                                        \
      "integers that are widened from i32 to 64 bits are hidden from the compiler")            \
    X(WRONG_ZEROS, "wrong_zeros",                                                              \
      "constants of floats that are 0 or NaN are hidden from the compiler")                    \
    X(WRONG_EXTREMA, "wrong_extrema",                                                          \
      "constants of f64 that are 0 or NaN are hidden from the compiler, in kernels with "      \
      "min or max of f64")                                                                     \
    X(WRONG_ABS, "wrong_abs",                                                                  \
      "the negative of an integer in its absolute value is hidden from the compiler")          \
    X(WRONG_FILLS, "wrong_fills", "fills far inside a buffer are made of parts of the buffer") \
    X(LIMITED_LOOPS, "limited_loops", "the iterations of a kernel's loops are limited")        \
    X(CALLED_ITEMS, "called_items",                                                            \
      "kernels of halves whose groups have short rows call a "                                 \
      "function for the work-item")

enum {
#define QUIRK(name, text, effect) OPENCL_QUIRK_NUMBER_##name,
    OPENCL_QUIRKS(QUIRK)
#undef QUIRK
        OPENCL_QUIRK_COUNT
};

enum {
#define QUIRK(name, text, effect) OPENCL_QUIRK_##name = 1 << OPENCL_QUIRK_NUMBER_##name,
    OPENCL_QUIRKS(QUIRK)
#undef QUIRK
};

/* The quirks of a device, by the names of platform and device. HAL_OPENCL_QUIRKS, a list with
 * commas, adds quirks, or removes those with a minus before the name. Threads: any.
 *   reasons  of each quirk that the driver or the list has, also of those that are removed; null
 *            for the others */
uint32_t opencl_quirks(const char *platform, const char *device,
                       const char *reasons[OPENCL_QUIRK_COUNT]);

/* Their names. */
extern const char *const opencl_quirk_names[OPENCL_QUIRK_COUNT];

/* Checks HAL_OPENCL_QUIRKS. Threads: any. Errors: INVALID_ARGUMENT. */
hal_status opencl_quirks_check(void);

#endif
