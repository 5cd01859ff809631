/* The table of drivers. Called by describe.c. */
#include "quirks.h"

#include <hal/plugin.h>
#include <stdlib.h>

static const vulkan_quirks table[] = {
    /* llvmpipe. Division and square root are the processor's own, through LLVM. Its fma is a
     * product and a sum, and its threads flush denormals, so neither is claimed. Lanes are taken
     * along x. Machine code is made when a dispatch is executed; one without groups does too. */
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .exactness = HAL_EXACT_DIVIDE | HAL_EXACT_SQRT,
     .lanes_in_order = 1,
     .compiles_late = 1},
    /* NVIDIA. FFMA and DFMA round once; subgroups are warps of 32 in order. Division and square
     * root of f32 are approximations of the kind that Vulkan allows; there are none of f64, whose
     * sequences are the ones of IEEE. ir/narrow(from=f32,to=f16) found the halves folded (driver
     * 580.159). */
    {.driver = VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     .exactness = HAL_EXACT_FMA,
     .exact_doubles = 1,
     .folds_halves = 1,
     .lanes_in_order = 1},
    /* RADV. v_fma_f32 and v_fma_f64 round once; waves are filled in order. Division of f64 is a
     * product with a reciprocal. With the variable it makes devices of any generation that compile
     * and have no hardware. */
    {.driver = VK_DRIVER_ID_MESA_RADV,
     .exactness = HAL_EXACT_FMA,
     .lanes_in_order = 1,
     .null_variable = "RADV_FORCE_FAMILY"},
    /* AMD's own drivers: the same instructions, the same order of lanes. Not tried on hardware. */
    {.driver = VK_DRIVER_ID_AMD_OPEN_SOURCE, .exactness = HAL_EXACT_FMA, .lanes_in_order = 1},
    {.driver = VK_DRIVER_ID_AMD_PROPRIETARY, .exactness = HAL_EXACT_FMA, .lanes_in_order = 1},
    /* Intel, from the eighth generation on: mad rounds once, which OpenCL's fma relies on as well;
     * threads of a group of one dimension take its work-items in order. Not tried on hardware. */
    {.driver = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
     .exactness = HAL_EXACT_FMA,
     .lanes_in_order = 1},
};

const vulkan_quirks *vulkan_quirks_of(VkDriverId driver)
{
    static const vulkan_quirks unknown = {0};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].driver == driver) {
            return &table[i];
        }
    }
    return &unknown;
}

int vulkan_quirks_is_null(const vulkan_quirks *quirks)
{
    return quirks->null_variable != NULL && getenv(quirks->null_variable) != NULL;
}
