/* What a device lets SPIR-V modules use: set by describe.c, read by the lowering. */
#ifndef PLUGINS_VULKAN_LOWER_TARGET_H
#define PLUGINS_VULKAN_LOWER_TARGET_H

#include <stdint.h>

/* Sets of float widths. */
enum { SPIRV_FLOAT_16 = 1, SPIRV_FLOAT_32 = 2, SPIRV_FLOAT_64 = 4 };

/* What a driver folds wrongly, and is hidden from it. */
enum {
    SPIRV_HIDES_CONSTANTS = 1, /* constants of floats that are 0, infinite or NaN; integers that are
                                * widened to 64 bits */
    SPIRV_HIDES_NAN = 2,       /* constants that are NaN */
    SPIRV_HIDES_FACTORS = 4,   /* constant factors of 64 bits from 2^31 to 2^32 */
    SPIRV_HIDES_NEGATIVES = 8, /* the negative of an integer in its absolute value */
};

typedef struct spirv_target {
    uint32_t push_bytes;     /* size limit of push constants */
    uint32_t subgroup_width; /* 0: none */
    uint32_t
        zero_inf_nan;   /* float widths whose signed zeros, infinities and NaN can be preserved */
    uint32_t denormals; /* float widths whose denormals can be preserved */
    uint32_t nearest_even;     /* float widths with rounding to nearest even */
    uint32_t half_converts;    /* 1: the device's conversion from f16 to f32 is exact */
    uint32_t half_rounds;      /* 1: the device's conversion from f32 to f16 is never folded away */
    uint32_t half_packs;       /* 1: PackHalf2x16 rounds, where the driver cannot fold it away */
    uint32_t shared_views;     /* 1: shared memory can be declared with several layouts */
    uint32_t shared_bytes;     /* of a group */
    uint32_t hides;            /* SPIRV_HIDES_* */
    uint32_t repairs_integral; /* 1: floor, trunc and rint of f64 are computed by additions */
    uint32_t repairs_division; /* 1: division and square root of f32 are corrected by fused
                                * multiply-adds and f64 */
} spirv_target;

#endif
