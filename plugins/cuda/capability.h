/* What some devices have and others lack, as far as the plugin depends on it: each feature with its
 * effect here, and the condition for it in the table of capability.c. */
#ifndef PLUGINS_CUDA_CAPABILITY_H
#define PLUGINS_CUDA_CAPABILITY_H

#include <stdint.h>

/* X(name, effect) */
#define CUDA_FEATURES(X)                                                                    \
    X(APPROXIMATE_TANH, "fast tanh is one instruction")                                     \
    X(ASYNC_COPY, "asynchronous copies are cp.async, of 4, 8 or 16 bytes")                  \
    X(PACKED_HALVES, "one cvt rounds two f32 to f16 or bf16 and packs them into a word")    \
    X(NAN_EXTREMES, "min and max of f32 that return NaN where an operand is NaN")           \
    X(WARP_REDUCE, "one instruction reduces a 32-bit integer over a warp")                  \
    X(MATRIX_UNITS, "HAL_IR_MATRIX_MULTIPLY of f16, bf16 and f32 (as tf32)")                \
    X(MATRIX_F64, "HAL_IR_MATRIX_MULTIPLY of f64; devices with few units of f64 lack it")    \
    X(DEEP_MATRIX_F64, "units of f64 multiply 16 x 8 of 8 steps of k at once; else 8 x 8 "  \
                       "of 4, which newer devices do at half the rate")                     \
    X(EARLY_START, "kernels wait for the one before them by griddepcontrol.wait, so that "  \
                   "they may start early; ld.global.nc is left out, as inputs are written " \
                   "while the kernel is there")

enum {
#define FEATURE(name, effect) CUDA_FEATURE_NUMBER_##name,
    CUDA_FEATURES(FEATURE)
#undef FEATURE
};

enum {
#define FEATURE(name, effect) CUDA_FEATURE_##name = 1 << CUDA_FEATURE_NUMBER_##name,
    CUDA_FEATURES(FEATURE)
#undef FEATURE
};

/* The features of a compute capability, 10 * major + minor. Threads: any. */
uint32_t cuda_features(uint32_t capability);

#endif
