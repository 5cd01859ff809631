/* hal/ir_types.h of plugin ABI 1.0, without its comments; it never changes. */
#ifndef TESTS_ABI_FROZEN_HAL_IR_TYPES_H
#define TESTS_ABI_FROZEN_HAL_IR_TYPES_H

#include <stdint.h>

#define HAL_TYPE_TABLE(X)                                           \
    X(BOOL, 1, 0, bool, 1, uint8_t, BOOL, BOOL, 0, 0, 0, 0)         \
    X(I8, 2, 0, i8, 1, int8_t, I32, SIGNED, 0, 0, 0, 0)             \
    X(U8, 3, 0, u8, 1, uint8_t, U32, UNSIGNED, 0, 0, 0, 0)          \
    X(I16, 4, 0, i16, 2, int16_t, I32, SIGNED, 0, 0, 0, 0)          \
    X(U16, 5, 0, u16, 2, uint16_t, U32, UNSIGNED, 0, 0, 0, 0)       \
    X(I32, 6, 0, i32, 4, int32_t, I32, SIGNED, 0, 0, 0, 0)          \
    X(U32, 7, 0, u32, 4, uint32_t, U32, UNSIGNED, 0, 0, 0, 0)       \
    X(I64, 8, 0, i64, 8, int64_t, I64, SIGNED, 0, 0, 0, 0)          \
    X(U64, 9, 0, u64, 8, uint64_t, U64, UNSIGNED, 0, 0, 0, 0)       \
    X(F16, 10, 0, f16, 2, uint16_t, F32, FLOAT, 11, -24, 15, 1)     \
    X(BF16, 11, 0, bf16, 2, uint16_t, F32, FLOAT, 8, -133, 127, 1)  \
    X(F32, 12, 0, f32, 4, float, F32, FLOAT, 24, -149, 127, 1)      \
    X(F64, 13, 0, f64, 8, double, F64, FLOAT, 53, -1074, 1023, 1)   \
    X(F8_E4M3, 14, 0, f8_e4m3, 1, uint8_t, F32, FLOAT, 4, -9, 8, 0)

typedef uint8_t hal_type;
#define HAL_TYPE_CONSTANT_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_##NAME = number,
enum {
    HAL_TYPE_NONE = 0,
    HAL_TYPE_TABLE(HAL_TYPE_CONSTANT_) HAL_TYPE_COUNT
};

typedef uint8_t hal_type_kind;
enum {
    HAL_TYPE_KIND_NONE = 0,
    HAL_TYPE_KIND_BOOL = 1,
    HAL_TYPE_KIND_SIGNED = 2,
    HAL_TYPE_KIND_UNSIGNED = 3,
    HAL_TYPE_KIND_FLOAT = 4
};

#define HAL_TYPE_BIT(type) (UINT32_C(1) << (type))

#define HAL_TYPE_BIT_IF_(NAME, condition) | ((condition) ? HAL_TYPE_BIT(HAL_TYPE_##NAME) : 0)
#define HAL_TYPE_IN_ALL_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_BIT_IF_(NAME, 1)
#define HAL_TYPE_IN_FLOATS_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_BIT_IF_(NAME, HAL_TYPE_KIND_##KIND == HAL_TYPE_KIND_FLOAT)
#define HAL_TYPE_IN_VALUES_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_BIT_IF_(NAME, HAL_TYPE_##NAME == HAL_TYPE_##VALUE)

#define HAL_STORAGE_TYPES    (UINT32_C(0) HAL_TYPE_TABLE(HAL_TYPE_IN_ALL_))
#define HAL_STORAGE_FLOATS   (UINT32_C(0) HAL_TYPE_TABLE(HAL_TYPE_IN_FLOATS_))
#define HAL_STORAGE_INTEGERS (HAL_STORAGE_TYPES & ~HAL_STORAGE_FLOATS & ~HAL_TYPES_BOOL)
#define HAL_STORAGE_NUMBERS  (HAL_STORAGE_TYPES & ~HAL_TYPES_BOOL)

#define HAL_TYPES_NONE     UINT32_C(0)
#define HAL_TYPES_BOOL     HAL_TYPE_BIT(HAL_TYPE_BOOL)
#define HAL_TYPES_VALUES   (UINT32_C(0) HAL_TYPE_TABLE(HAL_TYPE_IN_VALUES_))
#define HAL_TYPES_FLOATS   (HAL_TYPES_VALUES & HAL_STORAGE_FLOATS)
#define HAL_TYPES_INTEGERS (HAL_TYPES_VALUES & HAL_STORAGE_INTEGERS)
#define HAL_TYPES_NUMBERS  (HAL_TYPES_VALUES & ~HAL_TYPES_BOOL)
#define HAL_TYPES_LOGIC    (HAL_TYPES_INTEGERS | HAL_TYPES_BOOL)
#define HAL_TYPES_COUNTERS (HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32))

#define HAL_TYPES_MATRIX \
    (HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) | HAL_TYPE_BIT(HAL_TYPE_F32))

static inline uint32_t hal_type_size(hal_type type)
{
#define HAL_TYPE_BYTES_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) bytes,
    static const uint8_t sizes[HAL_TYPE_COUNT] = {0, HAL_TYPE_TABLE(HAL_TYPE_BYTES_)};
#undef HAL_TYPE_BYTES_
    return type < HAL_TYPE_COUNT ? sizes[type] : 0;
}

static inline hal_type hal_type_of_value(hal_type type)
{
#define HAL_TYPE_VALUE_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) HAL_TYPE_##VALUE,
    static const hal_type values[HAL_TYPE_COUNT] = {HAL_TYPE_NONE, HAL_TYPE_TABLE(HAL_TYPE_VALUE_)};
#undef HAL_TYPE_VALUE_
    return type < HAL_TYPE_COUNT ? values[type] : (hal_type)HAL_TYPE_NONE;
}

static inline hal_type_kind hal_type_kind_of(hal_type type)
{
#define HAL_TYPE_KIND_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_KIND_##KIND,
    static const hal_type_kind kinds[HAL_TYPE_COUNT] = {HAL_TYPE_KIND_NONE,
                                                        HAL_TYPE_TABLE(HAL_TYPE_KIND_)};
#undef HAL_TYPE_KIND_
    return type < HAL_TYPE_COUNT ? kinds[type] : (hal_type_kind)HAL_TYPE_KIND_NONE;
}

static inline int hal_type_is_value(hal_type type)
{
    return type != HAL_TYPE_NONE && type < HAL_TYPE_COUNT && hal_type_of_value(type) == type;
}

static inline int hal_type_is_float(hal_type type)
{
    return hal_type_kind_of(type) == HAL_TYPE_KIND_FLOAT;
}
static inline int hal_type_is_signed(hal_type type)
{
    return hal_type_kind_of(type) == HAL_TYPE_KIND_SIGNED;
}
static inline int hal_type_is_integer(hal_type type)
{
    return hal_type_is_signed(type) || hal_type_kind_of(type) == HAL_TYPE_KIND_UNSIGNED;
}

typedef struct hal_float_format {
    int32_t digits;
    int32_t least;
    int32_t highest;
    int32_t infinite;
} hal_float_format;
static inline hal_float_format hal_type_float_format(hal_type type)
{
#define HAL_TYPE_FORMAT_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) {__VA_ARGS__},
    static const hal_float_format formats[HAL_TYPE_COUNT] = {{0, 0, 0, 0},
                                                             HAL_TYPE_TABLE(HAL_TYPE_FORMAT_)};
#undef HAL_TYPE_FORMAT_
    return formats[type < HAL_TYPE_COUNT ? type : 0];
}

static inline int hal_type_is_narrow_float(hal_type type)
{
    return hal_type_is_float(type) && !hal_type_is_value(type);
}

static inline uint32_t hal_type_magnitude_mask(hal_type type)
{
    return (UINT32_C(1) << (8 * hal_type_size(type) - 1)) - 1;
}

static inline uint32_t hal_type_overflow_bits(hal_type type)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t magnitude = hal_type_magnitude_mask(type);
    return format.infinite ? magnitude >> (format.digits - 1) << (format.digits - 1) : magnitude;
}

static inline uint32_t hal_types_storable(uint32_t claimed)
{
    uint32_t types = claimed;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const hal_type bits = hal_type_size(type) == 1 ? HAL_TYPE_U8 : HAL_TYPE_U16;
        if (type == HAL_TYPE_BOOL || hal_type_is_narrow_float(type)) {
            types |= claimed & HAL_TYPE_BIT(bits) ? HAL_TYPE_BIT(type) : 0;
        }
    }
    return types;
}

#endif
