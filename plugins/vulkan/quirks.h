/* What is known of single drivers and cannot be asked of them: each quirk with its effect here, and
 * the condition for it in the table of quirks.c. Nothing else in the plugin looks at a driver. */
#ifndef PLUGINS_VULKAN_QUIRKS_H
#define PLUGINS_VULKAN_QUIRKS_H

#include <stdint.h>
#include <vulkan/vulkan_core.h>

/* X(name, name in hal-info, effect) */
#define VULKAN_QUIRKS(X)                                                                           \
    X(EXACT_FMA, "exact_fma", "fused multiply-add is claimed")                                     \
    X(EXACT_DIVIDE, "exact_divide", "division and square root are claimed")                        \
    X(EXACT_DOUBLES, "exact_doubles", "they are claimed where the lowering corrects those of f32") \
    X(FOLDS_HALVES, "folds_halves",                                                                \
      "f32 is rounded to f16 by PackHalf2x16, whose result is hidden from "                        \
      "the driver")                                                                                \
    X(LANES_IN_ORDER, "lanes_in_order",                                                            \
      "subgroups are offered: in a group of one dimension lanes are "                              \
      "in the order of work-items")                                                                \
    X(MATRICES_IN_ORDER, "matrices_in_order",                                                      \
      "matrix units are offered: a lane has the elements of a 16x8x16 "                            \
      "product that docs/ir.md says, in that order")                                               \
    X(WRONG_CONSTANTS, "wrong_constants",                                                          \
      "constants of floats that are 0, infinite or NaN, and widened integers, are "                \
      "hidden from the driver")                                                                    \
    X(WRONG_NAN, "wrong_nan", "constants that are NaN are hidden from the driver")                 \
    X(WRONG_FACTORS, "wrong_factors",                                                              \
      "constant factors of 64 bits from 2^31 to 2^32 are hidden from the driver")                  \
    X(WRONG_ABS, "wrong_abs",                                                                      \
      "the negative of an integer in its absolute value is hidden from the driver")                \
    X(WRONG_INTEGRAL, "wrong_integral", "floor, trunc and rint of f64 are computed by additions")  \
    X(LIMITED_LOOPS, "limited_loops", "the iterations of a kernel's loops are limited")            \
    X(COMPILES_LATE, "compiles_late", "a new kernel is dispatched once with no groups")            \
    X(LATE_TIMELINES, "late_timelines",                                                            \
      "the device's queue is idle before a timeline is destroyed")                                 \
    X(NO_HARDWARE, "no_hardware", "kernels are made, and nothing is allocated or run")

enum {
#define QUIRK(name, text, effect) VULKAN_QUIRK_NUMBER_##name,
    VULKAN_QUIRKS(QUIRK)
#undef QUIRK
        VULKAN_QUIRK_COUNT
};

enum {
#define QUIRK(name, text, effect) VULKAN_QUIRK_##name = 1 << VULKAN_QUIRK_NUMBER_##name,
    VULKAN_QUIRKS(QUIRK)
#undef QUIRK
};

/* The quirks of a driver; 0 for one that is not in the table. Reads the environment.
 *   reasons  of each quirk that the driver has; null for the others */
uint32_t vulkan_quirks(VkDriverId driver, const char *reasons[VULKAN_QUIRK_COUNT]);

/* Their names. */
extern const char *const vulkan_quirk_names[VULKAN_QUIRK_COUNT];

/* The variable of the environment that gives the driver a quirk, or null. */
const char *vulkan_quirks_variable(VkDriverId driver);

#endif
