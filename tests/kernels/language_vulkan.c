/* language_vulkan.c: SPIR-V as the Vulkan plugin writes it, for a device with all features that
 * the plugin queries and 128 bytes of push constants. Called through languages.c. */
#include "languages.h"

#include <vulkan/lower/lower.h>

void *language_vulkan(const hal_ir_kernel *kernel, size_t *length, char *message, size_t bytes)
{
    const uint32_t every = SPIRV_FLOAT_16 | SPIRV_FLOAT_32 | SPIRV_FLOAT_64;
    const spirv_target target = {.push_bytes = 128,
                                 .subgroup_width = 32,
                                 .zero_inf_nan = every,
                                 .denormals = every,
                                 .nearest_even = every,
                                 .half_converts = 1,
                                 .half_rounds = 1,
                                 .shared_views = 1,
                                 .shared_bytes = 48u << 10};
    spirv_module module = {0};
    if (spirv_lower(kernel, &target, &module, message, (uint32_t)bytes) != HAL_OK) {
        return NULL;
    }
    *length = (size_t)module.word_count * 4;
    return module.words;
}
