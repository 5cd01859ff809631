/* Which drivers have which quirk, with the reason; see quirks.h. */
#include "quirks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Conditions: the driver, and a variable that is set in the environment, where there is one. */
typedef struct quirk_row {
    VkDriverId driver;
    const char *variable;
    uint32_t quirks;
    const char *reason;
} quirk_row;

static const quirk_row rows[] = {
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .quirks = VULKAN_QUIRK_EXACT_DIVIDE,
     .reason = "division and square root are the processor's, through LLVM; its fma is a product "
               "and a sum, and its threads flush denormals"},
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .quirks = VULKAN_QUIRK_WRONG_INTEGRAL,
     .reason = "on some processors rint of f64 gives 0 for -0 and 1 for 1.5, and trunc leaves "
               "fractions: found by ir/rint and ir/trunc on one without AVX-512"},
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .quirks = VULKAN_QUIRK_WRONG_CONSTANTS,
     .reason = "gallivm stores nothing for x / 0, takes 0 / x for 0 and x + 0 for x; NIR compares "
               "widened integers with wrong constants: found by ir/constants with Mesa 22.3"},
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .quirks = VULKAN_QUIRK_LANES_IN_ORDER,
     .reason = "lanes are taken along x"},
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .quirks = VULKAN_QUIRK_COMPILES_LATE,
     .reason = "machine code is made when a dispatch is executed, even one with no groups"},
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .quirks = VULKAN_QUIRK_LIMITED_LOOPS,
     .reason = "gallivm ends all loops of a kernel silently after 65,535 iterations in total"},
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .quirks = VULKAN_QUIRK_LATE_TIMELINES,
     .reason = "the thread of a queue reads and signals timelines for a moment after their values "
               "are reached: destroying one then crashed one run in six"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_EXACT_FMA,
     .reason = "FFMA and DFMA round once"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_EXACT_DOUBLES,
     .reason = "f64 has no approximations of division and square root, only IEEE sequences"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_FOLDS_HALVES,
     .reason = "f32 to f16 and back is folded to nothing, without rounding: found by "
               "ir/narrow(from=f32,to=f16) with driver 580.159"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_LANES_IN_ORDER,
     .reason = "subgroups are warps of 32, filled in order"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_MATRICES_IN_ORDER,
     .reason = "a cooperative matrix is the operand of mma.sync; hal-probe checks it"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_WRONG_NAN,
     .reason = "makes constant NaN of f32 quiet: found by ir/constants(nan) with driver 580.159"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_WRONG_FACTORS,
     .reason = "takes the factor 2^31 of an integer that was widened from i32 for -2^31: found by "
               "ir/constants(opcode=mul) with driver 580.159"},
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .quirks = VULKAN_QUIRK_WRONG_ABS,
     .reason = "shifts abs of the least i64 as if it were positive: found by ir/pairs with driver "
               "580.159"},
    {.driver = VK_DRIVER_ID_MESA_RADV,
     .quirks = VULKAN_QUIRK_EXACT_FMA,
     .reason = "v_fma_f32 and v_fma_f64 round once; division of f64 is by a reciprocal"},
    {.driver = VK_DRIVER_ID_MESA_RADV,
     .quirks = VULKAN_QUIRK_WRONG_CONSTANTS,
     .reason = "its NIR is llvmpipe's; not tried on hardware"},
    {.driver = VK_DRIVER_ID_MESA_RADV,
     .quirks = VULKAN_QUIRK_LANES_IN_ORDER,
     .reason = "waves are filled in order"},
    {.driver = VK_DRIVER_ID_MESA_RADV,
     .variable = "RADV_FORCE_FAMILY",
     .quirks = VULKAN_QUIRK_NO_HARDWARE,
     .reason = "lists devices of that generation, which compile and have no hardware"},
    {.driver = VK_DRIVER_ID_AMD_OPEN_SOURCE,
     .quirks = VULKAN_QUIRK_EXACT_FMA | VULKAN_QUIRK_LANES_IN_ORDER,
     .reason = "the instructions and the order of lanes of RADV; not tried on hardware"},
    {.driver = VK_DRIVER_ID_AMD_PROPRIETARY,
     .quirks = VULKAN_QUIRK_EXACT_FMA | VULKAN_QUIRK_LANES_IN_ORDER,
     .reason = "the instructions and the order of lanes of RADV; not tried on hardware"},
    {.driver = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
     .quirks = VULKAN_QUIRK_EXACT_FMA,
     .reason = "mad rounds once from the eighth generation on, which OpenCL's fma relies on; not "
               "tried on hardware"},
    {.driver = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
     .quirks = VULKAN_QUIRK_WRONG_CONSTANTS,
     .reason = "its NIR is llvmpipe's; not tried on hardware"},
    {.driver = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
     .quirks = VULKAN_QUIRK_LANES_IN_ORDER,
     .reason = "threads of a group of one dimension take its work-items in order; not tried on "
               "hardware"},
};

static bool row_applies(const quirk_row *row, VkDriverId driver)
{
    return row->driver == driver && (!row->variable || getenv(row->variable) != NULL);
}

const char *const vulkan_quirk_names[VULKAN_QUIRK_COUNT] = {
#define QUIRK(name, text, effect) [VULKAN_QUIRK_NUMBER_##name] = (text),
    VULKAN_QUIRKS(QUIRK)
#undef QUIRK
};

uint32_t vulkan_quirks(VkDriverId driver, const char *reasons[VULKAN_QUIRK_COUNT])
{
    uint32_t quirks = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        quirks |= row_applies(&rows[i], driver) ? rows[i].quirks : 0;
        for (uint32_t bit = 0; bit < VULKAN_QUIRK_COUNT && row_applies(&rows[i], driver); bit++) {
            reasons[bit] = rows[i].quirks >> bit & 1 ? rows[i].reason : reasons[bit];
        }
    }
    return quirks;
}

const char *vulkan_quirks_variable(VkDriverId driver)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].variable && row_applies(&rows[i], driver)) {
            return rows[i].variable;
        }
    }
    return NULL;
}
