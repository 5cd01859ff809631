/* Elements as bits: the unsigned type that moves every pattern. */
#ifndef OPS_SRC_KERNELS_BITS_H
#define OPS_SRC_KERNELS_BITS_H

#include "tensor/context.h"

/* The unsigned type of the same size, where the device has it; else the type itself. */
static inline hal_type ops_bits_type(const ops_context *context, hal_type type)
{
    static const hal_type unsigned_of[9] = {0, HAL_TYPE_U8, HAL_TYPE_U16, 0, HAL_TYPE_U32, 0,
                                            0, 0,           HAL_TYPE_U64};
    const hal_type bits = unsigned_of[hal_type_size(type)];
    const bool stored = (context->info->storage_types & HAL_TYPE_BIT(bits)) != 0;
    const bool computed =
        (context->info->arithmetic_types & HAL_TYPE_BIT(hal_type_of_value(bits))) != 0;
    return stored && computed ? bits : type;
}

#endif
