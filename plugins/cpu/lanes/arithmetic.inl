/* Steps of arithmetic, bits, comparisons and casts. A row of a list is an operation on one value
 * type: opcode, type, C types of result and operands, and an expression of the operands x, y, z. */

/* Sums of neighbouring bits, which compilers vectorise without a population count. */
static inline uint32_t popcount_u32(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

static inline uint64_t popcount_u64(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    x += x >> 8; /* additions: a product of 64 bits is slow in vectors */
    x += x >> 16;
    return (x + (x >> 32)) & 0x7f;
}

#define FLOAT_UNARY(X, T, t, suffix)                                                              \
    X(NEG, T, t, t, -x)                                                                           \
    X(ABS, T, t, t, __builtin_fabs##suffix(x))                                                    \
    X(SQRT, T, t, t, __builtin_sqrt##suffix(x))                                                   \
    X(FLOOR, T, t, t, __builtin_floor##suffix(x))                                                 \
    X(TRUNC, T, t, t, __builtin_trunc##suffix(x))                                                 \
    X(RINT, T, t, t, __builtin_rint##suffix(x))

#define INTEGER_UNARY(X, T, t, u)                                                                 \
    X(NEG, T, t, t, 0 - (u)x)                                                                     \
    X(NOT, T, t, t, ~x)

#define EACH_UNARY(X)                                                                             \
    FLOAT_UNARY(X, F32, float, f)                                                                 \
    FLOAT_UNARY(X, F64, double, )                                                                 \
    INTEGER_UNARY(X, I32, int32_t, uint32_t)                                                      \
    INTEGER_UNARY(X, U32, uint32_t, uint32_t)                                                     \
    INTEGER_UNARY(X, I64, int64_t, uint64_t)                                                      \
    INTEGER_UNARY(X, U64, uint64_t, uint64_t)                                                     \
    X(ABS, I32, int32_t, int32_t, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)                          \
    X(ABS, U32, uint32_t, uint32_t, x)                                                            \
    X(ABS, I64, int64_t, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)                          \
    X(ABS, U64, uint64_t, uint64_t, x)                                                            \
    X(POPCOUNT, I32, int32_t, int32_t, popcount_u32((uint32_t)x))                                 \
    X(POPCOUNT, U32, uint32_t, uint32_t, popcount_u32(x))                                         \
    X(POPCOUNT, I64, int64_t, int64_t, popcount_u64((uint64_t)x))                                 \
    X(POPCOUNT, U64, uint64_t, uint64_t, popcount_u64(x))                                         \
    X(NOT, BOOL, uint8_t, uint8_t, x ^ 1)

#define COMPARISON(X, T, t)                                                                       \
    X(EQ, T, uint8_t, t, x == y)                                                                  \
    X(NE, T, uint8_t, t, x != y)                                                                  \
    X(LT, T, uint8_t, t, x < y)                                                                   \
    X(LE, T, uint8_t, t, x <= y)

#define FLOAT_BINARY(X, T, t, suffix, name)                                                       \
    X(ADD, T, t, t, x + y)                                                                        \
    X(SUB, T, t, t, x - y)                                                                        \
    X(MUL, T, t, t, x *y)                                                                         \
    X(DIV, T, t, t, x / y)                                                                        \
    X(REM, T, t, t, fmod##suffix(x, y))                                                           \
    X(MIN, T, t, t, min_##name(x, y))                                                             \
    X(MAX, T, t, t, max_##name(x, y))                                                             \
    COMPARISON(X, T, t)

#define INTEGER_BINARY(X, T, t, u, bits, name)                                                    \
    X(ADD, T, t, t, (u)x + (u)y)                                                                  \
    X(SUB, T, t, t, (u)x - (u)y)                                                                  \
    X(MUL, T, t, t, (u)x *(u)y)                                                                   \
    X(DIV, T, t, t, div_##name(x, y))                                                             \
    X(REM, T, t, t, rem_##name(x, y))                                                             \
    X(MIN, T, t, t, x < y ? x : y)                                                                \
    X(MAX, T, t, t, x > y ? x : y)                                                                \
    X(AND, T, t, t, x &y)                                                                         \
    X(OR, T, t, t, x | y)                                                                         \
    X(XOR, T, t, t, x ^ y)                                                                        \
    X(SHL, T, t, t, (u)x << ((u)y & (bits - 1)))                                                  \
    X(SHR, T, t, t, x >> ((u)y & (bits - 1)))                                                     \
    COMPARISON(X, T, t)

#define EACH_BINARY(X)                                                                            \
    FLOAT_BINARY(X, F32, float, f, f32)                                                           \
    FLOAT_BINARY(X, F64, double, , f64)                                                           \
    INTEGER_BINARY(X, I32, int32_t, uint32_t, 32, i32)                                            \
    INTEGER_BINARY(X, U32, uint32_t, uint32_t, 32, u32)                                           \
    INTEGER_BINARY(X, I64, int64_t, uint64_t, 64, i64)                                            \
    INTEGER_BINARY(X, U64, uint64_t, uint64_t, 64, u64)                                           \
    X(MULHI, I32, int32_t, int32_t, (uint64_t)((int64_t)x * y) >> 32)                             \
    X(MULHI, U32, uint32_t, uint32_t, ((uint64_t)x * y) >> 32)                                    \
    X(MULHI, I64, int64_t, int64_t, mulhi_i64(x, y))                                              \
    X(MULHI, U64, uint64_t, uint64_t, mulhi_u64(x, y))                                            \
    X(AND, BOOL, uint8_t, uint8_t, x &y)                                                          \
    X(OR, BOOL, uint8_t, uint8_t, x | y)                                                          \
    X(XOR, BOOL, uint8_t, uint8_t, x ^ y)                                                         \
    X(EQ, BOOL, uint8_t, uint8_t, x == y)                                                         \
    X(NE, BOOL, uint8_t, uint8_t, x != y)

enum { CPU_TERNARY_FMA = 0, CPU_TERNARY_SELECT = 1 };
#define EACH_TERNARY(X)                                                                           \
    X(FMA, F32, float, float, float, __builtin_fmaf(x, y, z))                                     \
    X(FMA, F64, double, double, double, __builtin_fma(x, y, z))                                   \
    X(SELECT, BOOL, uint8_t, uint8_t, uint8_t, x ? y : z)                                         \
    X(SELECT, I32, int32_t, uint8_t, int32_t, x ? y : z)                                          \
    X(SELECT, U32, uint32_t, uint8_t, uint32_t, x ? y : z)                                        \
    X(SELECT, I64, int64_t, uint8_t, int64_t, x ? y : z)                                          \
    X(SELECT, U64, uint64_t, uint8_t, uint64_t, x ? y : z)                                        \
    X(SELECT, F32, float, uint8_t, float, x ? y : z)                                              \
    X(SELECT, F64, double, uint8_t, double, x ? y : z)

#define CASTS_FROM(X, from, f)                                                                    \
    X(from, BOOL, uint8_t, f, x != 0)                                                             \
    X(from, F32, float, f, (float)x)                                                              \
    X(from, F64, double, f, (double)x)
#define CASTS_OF_INTEGER(X, from, f)                                                              \
    CASTS_FROM(X, from, f)                                                                        \
    X(from, I32, int32_t, f, (int32_t)x)                                                          \
    X(from, U32, uint32_t, f, (uint32_t)x)                                                        \
    X(from, I64, int64_t, f, (int64_t)x)                                                          \
    X(from, U64, uint64_t, f, (uint64_t)x)
#define CASTS_OF_FLOAT(X, from, f, name)                                                          \
    CASTS_FROM(X, from, f)                                                                        \
    X(from, I32, int32_t, f, i32_of_##name(x))                                                    \
    X(from, U32, uint32_t, f, u32_of_##name(x))                                                   \
    X(from, I64, int64_t, f, i64_of_##name(x))                                                    \
    X(from, U64, uint64_t, f, u64_of_##name(x))
#define EACH_CAST(X)                                                                              \
    CASTS_OF_INTEGER(X, BOOL, uint8_t)                                                            \
    CASTS_OF_INTEGER(X, I32, int32_t)                                                             \
    CASTS_OF_INTEGER(X, U32, uint32_t)                                                            \
    CASTS_OF_INTEGER(X, I64, int64_t)                                                             \
    CASTS_OF_INTEGER(X, U64, uint64_t)                                                            \
    CASTS_OF_FLOAT(X, F32, float, f32)                                                            \
    CASTS_OF_FLOAT(X, F64, double, f64)

/* Narrowing to a storage type and back; types that change nothing need no step. */
#define EACH_NARROW(X)                                                                            \
    X(I8, int32_t, int32_t, (int8_t)x)                                                            \
    X(U8, uint32_t, uint32_t, (uint8_t)x)                                                         \
    X(I16, int32_t, int32_t, (int16_t)x)                                                          \
    X(U16, uint32_t, uint32_t, (uint16_t)x)                                                       \
    X(F16, float, float, f32_of_f16(f16_of_f32(x)))                                               \
    X(BF16, float, float, f32_of_bf16(bf16_of_f32(x)))

#define DEFINE_LOOP_1(name, r, t, expression)                                                     \
    static const cpu_step *name(cpu_worker *worker, const cpu_step *step)                         \
    {                                                                                             \
        r *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a];                                                      \
        uint32_t n = lanes_of(step);                                                              \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            t x = a[i];                                                                           \
            d[i] = (r)(expression);                                                               \
        }                                                                                         \
        return step + 1;                                                                          \
    }

/* A uniform operand is read before the loop: the result may overwrite it. */
#define DEFINE_LOOP_2(name, r, t, x_uniform, y_uniform, expression)                               \
    static const cpu_step *name(cpu_worker *worker, const cpu_step *step)                         \
    {                                                                                             \
        r *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a], *b = worker->slots[step->b];                         \
        const t x_of_all = a[0], y_of_all = b[0];                                                 \
        uint32_t n = lanes_of(step);                                                              \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            t x = (x_uniform) ? x_of_all : a[i];                                                  \
            t y = (y_uniform) ? y_of_all : b[i];                                                  \
            d[i] = (r)(expression);                                                               \
        }                                                                                         \
        return step + 1;                                                                          \
    }

#define DEFINE_LOOP_3(name, r, tx, t, form, expression)                                           \
    static const cpu_step *name(cpu_worker *worker, const cpu_step *step)                         \
    {                                                                                             \
        r *d = worker->slots[step->d];                                                            \
        const tx *a = worker->slots[step->a];                                                     \
        const t *b = worker->slots[step->b], *c = worker->slots[step->c];                         \
        const tx x_of_all = a[0];                                                                 \
        const t y_of_all = b[0], z_of_all = c[0];                                                 \
        uint32_t n = lanes_of(step);                                                              \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            tx x = ((form) & 1) ? x_of_all : a[i];                                                \
            t y = ((form) & 2) ? y_of_all : b[i];                                                 \
            t z = ((form) & 4) ? z_of_all : c[i];                                                 \
            d[i] = (r)(expression);                                                               \
        }                                                                                         \
        return step + 1;                                                                          \
    }

#define DEFINE_UNARY(op, T, r, t, expression) DEFINE_LOOP_1(op##_##T, r, t, expression)
#define DEFINE_BINARY(op, T, r, t, expression)                                                    \
    DEFINE_LOOP_2(op##_##T##_0, r, t, 0, 0, expression)                                           \
    DEFINE_LOOP_2(op##_##T##_1, r, t, 1, 0, expression)                                           \
    DEFINE_LOOP_2(op##_##T##_2, r, t, 0, 1, expression)
#define DEFINE_TERNARY(op, T, r, tx, t, expression)                                               \
    DEFINE_LOOP_3(op##_##T##_0, r, tx, t, 0, expression)                                          \
    DEFINE_LOOP_3(op##_##T##_1, r, tx, t, 1, expression)                                          \
    DEFINE_LOOP_3(op##_##T##_2, r, tx, t, 2, expression)                                          \
    DEFINE_LOOP_3(op##_##T##_3, r, tx, t, 3, expression)                                          \
    DEFINE_LOOP_3(op##_##T##_4, r, tx, t, 4, expression)                                          \
    DEFINE_LOOP_3(op##_##T##_5, r, tx, t, 5, expression)                                          \
    DEFINE_LOOP_3(op##_##T##_6, r, tx, t, 6, expression)
#define DEFINE_CAST(from, to, r, t, expression) DEFINE_LOOP_1(cast_##from##_##to, r, t, expression)
#define DEFINE_NARROW(T, r, t, expression) DEFINE_LOOP_1(narrow_##T, r, t, expression)

EACH_UNARY(DEFINE_UNARY)
EACH_BINARY(DEFINE_BINARY)
EACH_TERNARY(DEFINE_TERNARY)
EACH_CAST(DEFINE_CAST)
EACH_NARROW(DEFINE_NARROW)
