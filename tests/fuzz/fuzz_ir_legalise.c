/* Fuzz target: the legaliser turns every kernel that the parser accepts into one that verifies, or
 * reports that the device cannot run it; legalising the result again does not change it. The first
 * byte chooses what the device lacks. Run by ./dev check as the ctest fuzz_ir_legalise. */
#include <hal/ir_build.h>
#include <stdlib.h>
#include <string.h>

#include "ir/legalise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static hal_device_info device(uint8_t lacks)
{
    const uint32_t all = HAL_STORAGE_TYPES;
    const uint32_t halves = (HAL_STORAGE_FLOATS & ~HAL_TYPES_VALUES) | HAL_TYPES_BOOL;
    return (hal_device_info){.size = sizeof(hal_device_info),
                             .name = "Fuzzed",
                             .subgroup_width = lacks & 1 ? 0 : 32,
                             .max_group_items = UINT32_MAX,
                             .max_group_size = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                             .shared_bytes = UINT32_MAX,
                             .max_bindings = HAL_IR_MAX_BINDINGS,
                             .max_vector_bytes = lacks & 2 ? 4 : 64,
                             .storage_types = lacks & 4 ? all & ~halves : all,
                             .arithmetic_types = all,
                             .exactness = lacks & 8 ? 0 : 15,
                             .features = lacks & 16 ? HAL_FEATURE_FAST_MATH
                                                     : HAL_FEATURE_ASYNC_COPY |
                                                           HAL_FEATURE_ATOMIC_64,
                             .math_f32 = lacks & 32 ? 0 : UINT32_MAX,
                             .math_f64 = lacks & 64 ? 0 : UINT32_MAX};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hal_ir_kernel *kernel = NULL, *legal = NULL, *again = NULL;
    if (size < 1 || hal_ir_parse((const char *)data + 1, size - 1, &kernel) != HAL_OK) {
        return 0;
    }
    const hal_device_info info = device(data[0]);
    const hal_status status = hal_ir_legalise(kernel, &info, &legal);
    if (status == HAL_OK) {
        uint64_t hash[2], hash_again[2];
        if (hal_ir_verify(legal) != HAL_OK ||
            hal_ir_legalise(legal, &info, &again) != HAL_OK) {
            abort();
        }
        hal_ir_hash(legal, hash);
        hal_ir_hash(again, hash_again);
        if (memcmp(hash, hash_again, sizeof hash) != 0) {
            abort();
        }
    } else if (status != HAL_ERROR_UNSUPPORTED) {
        abort();
    }
    hal_ir_kernel_destroy(kernel);
    hal_ir_kernel_destroy(legal);
    hal_ir_kernel_destroy(again);
    return 0;
}
