/* Operations on one work-item that are more than a C operator. Branches are such that the compiler
 * turns them into selects. */

static inline uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline double f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Equal floats with different bits are zeros: the negative one is the smaller. */
static inline float min_f32(float x, float y)
{
    float least = (x < y || x != x) ? x : y;
    return x == y ? f32_of_bits(bits_of_f32(x) | bits_of_f32(y)) : least;
}

static inline float max_f32(float x, float y)
{
    float greatest = (x > y || x != x) ? x : y;
    return x == y ? f32_of_bits(bits_of_f32(x) & bits_of_f32(y)) : greatest;
}

static inline double min_f64(double x, double y)
{
    double least = (x < y || x != x) ? x : y;
    return x == y ? f64_of_bits(bits_of_f64(x) | bits_of_f64(y)) : least;
}

static inline double max_f64(double x, double y)
{
    double greatest = (x > y || x != x) ? x : y;
    return x == y ? f64_of_bits(bits_of_f64(x) & bits_of_f64(y)) : greatest;
}

/* The quotient of 32-bit integers through f64 is exact: it is below the next integer by a relative
 * 2^-32 at least, and f64 rounds by 2^-53. */
static inline uint32_t div_u32(uint32_t x, uint32_t y)
{
    double quotient = (double)x / (double)(y == 0 ? 1 : y);
    return y == 0 ? 0 : (uint32_t)(int64_t)quotient;
}

static inline int32_t div_i32(int32_t x, int32_t y)
{
    double quotient = (double)x / (double)(y == 0 ? 1 : y);
    return y == 0 ? 0 : (int32_t)(uint32_t)(int64_t)quotient;
}

static inline uint64_t div_u64(uint64_t x, uint64_t y)
{
    return y == 0 ? 0 : x / y;
}

static inline int64_t div_i64(int64_t x, int64_t y)
{
    if (y == -1) {
        return (int64_t)(0 - (uint64_t)x);
    }
    return y == 0 ? 0 : x / y;
}

static inline uint32_t rem_u32(uint32_t x, uint32_t y)
{
    return y == 0 ? 0 : x - div_u32(x, y) * y;
}

static inline int32_t rem_i32(int32_t x, int32_t y)
{
    return y == 0 ? 0 : (int32_t)((uint32_t)x - (uint32_t)div_i32(x, y) * (uint32_t)y);
}

static inline uint64_t rem_u64(uint64_t x, uint64_t y)
{
    return y == 0 ? 0 : x % y;
}

static inline int64_t rem_i64(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

static inline uint64_t mulhi_u64(uint64_t x, uint64_t y)
{
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t middle = x1 * y0 + (x0 * y0 >> 32);
    uint64_t other = x0 * y1 + (uint32_t)middle;
    return x1 * y1 + (middle >> 32) + (other >> 32);
}

static inline int64_t mulhi_i64(int64_t x, int64_t y)
{
    uint64_t high = mulhi_u64((uint64_t)x, (uint64_t)y);
    high -= x < 0 ? (uint64_t)y : 0;
    high -= y < 0 ? (uint64_t)x : 0;
    return (int64_t)high;
}

/* Casts of floats to integers: saturating, NaN to 0. `under` is the least float in range, `over`
 * the first one above the range. */
#define SATURATE(x, to, under, over, least, most)                                                 \
    ((x) >= (over) ? (most) : (x) < (under) ? (least) : (x) != (x) ? 0 : (to)(x))

static inline int32_t i32_of_f32(float x)
{
    return SATURATE(x, int32_t, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX);
}

static inline uint32_t u32_of_f32(float x)
{
    return SATURATE(x, uint32_t, 0.0f, 0x1p32f, 0, UINT32_MAX);
}

static inline int64_t i64_of_f32(float x)
{
    return SATURATE(x, int64_t, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX);
}

static inline uint64_t u64_of_f32(float x)
{
    return SATURATE(x, uint64_t, 0.0f, 0x1p64f, 0, UINT64_MAX);
}

static inline int32_t i32_of_f64(double x)
{
    return SATURATE(x, int32_t, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
}

static inline uint32_t u32_of_f64(double x)
{
    return SATURATE(x, uint32_t, 0.0, 0x1p32, 0, UINT32_MAX);
}

static inline int64_t i64_of_f64(double x)
{
    return SATURATE(x, int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
}

static inline uint64_t u64_of_f64(double x)
{
    return SATURATE(x, uint64_t, 0.0, 0x1p64, 0, UINT64_MAX);
}

/* f16: the bits moved to f32's place are 2^-112 of the value, denormals too. */
static inline float f32_of_f16(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t bits = bits_of_f32(f32_of_bits(magnitude) * 0x1p112f);
    uint32_t special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;
    return f32_of_bits(bits | special | (uint32_t)(half & 0x8000) << 16);
}

/* To nearest even. Below 2^-14 adding 0.5, whose last place is that of f16's denormals, rounds. */
static inline uint16_t f16_of_f32(float x)
{
    uint32_t bits = bits_of_f32(x);
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t tiny = bits_of_f32(f32_of_bits(magnitude) + 0.5f) - 0x3f000000;
    uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t half = magnitude < 0x38800000 ? tiny : normal;
    half = magnitude >= 0x477ff000 ? special : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static inline float f32_of_bf16(uint16_t half)
{
    return f32_of_bits((uint32_t)half << 16);
}

static inline uint16_t bf16_of_f32(float x)
{
    uint32_t bits = bits_of_f32(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? (bits >> 16 | 0x40) : rounded);
}
