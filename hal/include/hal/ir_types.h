/* The element types, in one table. Everything that differs between types is a column here; the
 * rest of hal, ops and the plugins ask for properties and do not list types.
 *
 * To add a type, add a row with `since` one above the last released minor version, and raise
 * HAL_PLUGIN_ABI_MINOR (hal/plugin.h). docs/plugin-abi.md has the rules. */
#ifndef HAL_IR_TYPES_H
#define HAL_IR_TYPES_H

#include <stdint.h>

/* X(NAME, number, since, name, bytes, ctype, VALUE, KIND, digits, least, highest, infinite), in
 * ascending order of the numbers:
 *   NAME     HAL_TYPE_<NAME> is the constant, `number` its value, which never changes
 *   since    the minor version of the plugin ABI that added the type
 *   name     in text and messages, e.g. f32
 *   bytes    of an element in memory
 *   ctype    the C type with the same bits
 *   VALUE    the type that a value has after a load. A type that is its own VALUE is a value type;
 *            the others exist in memory only
 *   KIND     BOOL, SIGNED, UNSIGNED or FLOAT
 *   digits, least, highest   of floats: bits of the significand with the implicit one, exponent of
 *            the smallest denormal (a power of two), exponent of the largest finite number
 *   infinite 1: a float with infinities, as in IEEE 754. 0: numbers have their place, only all ones
 *            is NaN, and what exceeds the largest number becomes NaN */
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

/* An element type. Memory may hold any of them. Values are BOOL, I32, U32, I64, U64, F32 or F64:
 * a load widens, a store narrows (floats to nearest even, integers by dropping high bits). BOOL
 * takes one byte, 0 or 1. */
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

/* A set of types is a word with the bit of each member. */
#define HAL_TYPE_BIT(type) (UINT32_C(1) << (type))

/* Sets that follow from the table: each row adds its bit where the row fits. */
#define HAL_TYPE_BIT_IF_(NAME, condition) | ((condition) ? HAL_TYPE_BIT(HAL_TYPE_##NAME) : 0)
#define HAL_TYPE_IN_ALL_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_BIT_IF_(NAME, 1)
#define HAL_TYPE_IN_FLOATS_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_BIT_IF_(NAME, HAL_TYPE_KIND_##KIND == HAL_TYPE_KIND_FLOAT)
#define HAL_TYPE_IN_VALUES_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_BIT_IF_(NAME, HAL_TYPE_##NAME == HAL_TYPE_##VALUE)

/* In memory: all types, all floats, all integers. BOOL is neither float nor integer. */
#define HAL_STORAGE_TYPES    (UINT32_C(0) HAL_TYPE_TABLE(HAL_TYPE_IN_ALL_))
#define HAL_STORAGE_FLOATS   (UINT32_C(0) HAL_TYPE_TABLE(HAL_TYPE_IN_FLOATS_))
#define HAL_STORAGE_INTEGERS (HAL_STORAGE_TYPES & ~HAL_STORAGE_FLOATS & ~HAL_TYPES_BOOL)
#define HAL_STORAGE_NUMBERS  (HAL_STORAGE_TYPES & ~HAL_TYPES_BOOL)

/* Of values: all value types, and subsets of them. */
#define HAL_TYPES_NONE     UINT32_C(0)
#define HAL_TYPES_BOOL     HAL_TYPE_BIT(HAL_TYPE_BOOL)
#define HAL_TYPES_VALUES   (UINT32_C(0) HAL_TYPE_TABLE(HAL_TYPE_IN_VALUES_))
#define HAL_TYPES_FLOATS   (HAL_TYPES_VALUES & HAL_STORAGE_FLOATS)
#define HAL_TYPES_INTEGERS (HAL_TYPES_VALUES & HAL_STORAGE_INTEGERS)
#define HAL_TYPES_NUMBERS  (HAL_TYPES_VALUES & ~HAL_TYPES_BOOL)
#define HAL_TYPES_LOGIC    (HAL_TYPES_INTEGERS | HAL_TYPES_BOOL)
#define HAL_TYPES_COUNTERS (HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32))

/* Element types of the matrices A and B of MATRIX_MULTIPLY. */
#define HAL_TYPES_MATRIX                                                                    \
    (HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) | HAL_TYPE_BIT(HAL_TYPE_F32) | \
     HAL_TYPE_BIT(HAL_TYPE_F64))

/* Bytes of one element in memory; 0 for HAL_TYPE_NONE and numbers that are not a type. */
static inline uint32_t hal_type_size(hal_type type)
{
#define HAL_TYPE_BYTES_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) bytes,
    static const uint8_t sizes[HAL_TYPE_COUNT] = {0, HAL_TYPE_TABLE(HAL_TYPE_BYTES_)};
#undef HAL_TYPE_BYTES_
    return type < HAL_TYPE_COUNT ? sizes[type] : 0;
}

/* The type that a value has after a load from memory of `type`. */
static inline hal_type hal_type_of_value(hal_type type)
{
#define HAL_TYPE_VALUE_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) HAL_TYPE_##VALUE,
    static const hal_type values[HAL_TYPE_COUNT] = {HAL_TYPE_NONE, HAL_TYPE_TABLE(HAL_TYPE_VALUE_)};
#undef HAL_TYPE_VALUE_
    return type < HAL_TYPE_COUNT ? values[type] : (hal_type)HAL_TYPE_NONE;
}

/* What kind of number a type is: HAL_TYPE_KIND_*. */
static inline hal_type_kind hal_type_kind_of(hal_type type)
{
#define HAL_TYPE_KIND_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) \
    HAL_TYPE_KIND_##KIND,
    static const hal_type_kind kinds[HAL_TYPE_COUNT] = {HAL_TYPE_KIND_NONE,
                                                        HAL_TYPE_TABLE(HAL_TYPE_KIND_)};
#undef HAL_TYPE_KIND_
    return type < HAL_TYPE_COUNT ? kinds[type] : (hal_type_kind)HAL_TYPE_KIND_NONE;
}

/* Whether values may be of a type, or only memory. */
static inline int hal_type_is_value(hal_type type)
{
    return type != HAL_TYPE_NONE && type < HAL_TYPE_COUNT && hal_type_of_value(type) == type;
}

/* Whether a type is a float, and whether it is an integer (BOOL is neither). */
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

/* The format of a float; all zeros for other types. */
typedef struct hal_float_format {
    int32_t digits;   /* bits of the significand, with the implicit one */
    int32_t least;    /* exponent of the smallest denormal */
    int32_t highest;  /* exponent of the largest finite number */
    int32_t infinite; /* whether there are infinities; what is too large becomes NaN otherwise */
} hal_float_format;
static inline hal_float_format hal_type_float_format(hal_type type)
{
#define HAL_TYPE_FORMAT_(NAME, number, since, name, bytes, ctype, VALUE, KIND, ...) {__VA_ARGS__},
    static const hal_float_format formats[HAL_TYPE_COUNT] = {{0, 0, 0, 0},
                                                             HAL_TYPE_TABLE(HAL_TYPE_FORMAT_)};
#undef HAL_TYPE_FORMAT_
    return formats[type < HAL_TYPE_COUNT ? type : 0];
}

/* Whether a type is a float that exists in memory only (F16, BF16, F8_E4M3): a load widens it. */
static inline int hal_type_is_narrow_float(hal_type type)
{
    return hal_type_is_float(type) && !hal_type_is_value(type);
}

/* Of a float of at most 32 bits: all bits but the sign. */
static inline uint32_t hal_type_magnitude_mask(hal_type type)
{
    return (UINT32_C(1) << (8 * hal_type_size(type) - 1)) - 1;
}

/* Of a float of at most 32 bits: the bits that a number too large for the type becomes, its
 * infinity or NaN. Larger magnitudes are NaN. */
static inline uint32_t hal_type_overflow_bits(hal_type type)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t magnitude = hal_type_magnitude_mask(type);
    return format.infinite ? magnitude >> (format.digits - 1) << (format.digits - 1) : magnitude;
}

/* The types that kernels may have in memory on a device which claims `claimed`: hal keeps narrow
 * floats and BOOL as unsigned integers of their size where the plugin does not store them. */
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
