/* Steps of the transcendental functions: the polynomials of hal/ir_math.h on plain C scalars, in
 * loops that keep everything in registers, so the bits are those of the expanded IR. */
#include <hal/ir_math_scalar.h>

/* Functions that are the same for all numbers: opcode, type, C type, name. */
#define MATH_OF(X, T, t, name)                                                                    \
    X(EXP, T, t, math_exp_##name)                                                                 \
    X(EXP2, T, t, math_exp2_##name)                                                               \
    X(EXPM1, T, t, math_expm1_##name)                                                             \
    X(RSQRT, T, t, math_rsqrt_##name)
/* Functions with a cheaper variant for operands of the usual range: the variant, and whether the n
 * operands at a are in that range. */
#define MATH_SPLIT_OF(X, T, t, name)                                                              \
    X(LOG, T, t, math_log_##name, math_log_##name##_fast, normal_##name(a, n))                    \
    X(LOG2, T, t, math_log2_##name, math_log2_##name##_fast, normal_##name(a, n))                 \
    X(LOG1P, T, t, math_log1p_##name, math_log1p_##name##_fast, beyond_minus_one_##name(a, n))
#define MATH_BINARY_OF(X, T, t, name) X(POW, T, t, math_pow_##name)
#define EACH_MATH(X)                                                                              \
    MATH_OF(X, F32, float, f32)                                                                   \
    MATH_OF(X, F64, double, f64)                                                                  \
    X(ATAN, F64, double, math_atan_f64)                                                           \
    X(TANH, F64, double, math_tanh_f64)                                                           \
    X(ERF, F64, double, math_erf_f64)
#define EACH_MATH_SPLIT(X)                                                                        \
    MATH_SPLIT_OF(X, F32, float, f32)                                                             \
    MATH_SPLIT_OF(X, F64, double, f64)                                                            \
    X(SIN, F64, double, math_sin_f64, math_sin_f64_fast, small_angles_f64(a, n))                  \
    X(COS, F64, double, math_cos_f64, math_cos_f64_fast, small_angles_f64(a, n))                  \
    X(TAN, F64, double, math_tan_f64, math_tan_f64_fast, small_angles_f64(a, n))                  \
    X(ATAN, F32, float, math_atan_f32, math_atan_f32_near, below_f32(a, n, 1.0f))                 \
    X(TANH, F32, float, math_tanh_f32, math_tanh_f32_near, below_f32(a, n, 1.0f))                 \
    X(ERF, F32, float, math_erf_f32, math_erf_f32_near, below_f32(a, n, 1.0f))
/* Functions of angles: no reduction if all are near 0, the short one if all are small. */
#define EACH_MATH_ANGLE(X)                                                                        \
    X(SIN, F32, float, math_sin_f32)                                                              \
    X(COS, F32, float, math_cos_f32)                                                              \
    X(TAN, F32, float, math_tan_f32)
#define EACH_MATH_BINARY(X) MATH_BINARY_OF(X, F32, float, f32) MATH_BINARY_OF(X, F64, double, f64)

#define FLAT __attribute__((flatten))

#define DEFINE_MATH(op, T, t, function)                                                           \
    static FLAT const cpu_step *op##_##T(cpu_worker *worker, const cpu_step *step)                \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a];                                                      \
        uint32_t n = lanes_of(step);                                                              \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            d[i] = function(0, a[i]);                                                             \
        }                                                                                         \
        return step + 1;                                                                          \
    }

/* Whether all magnitudes are below the limit, NaN not: the bits of floats, as integers, have the
 * order of magnitudes. The first block decides most negative answers. */
#define DEFINE_BELOW(name, t, u)                                                                  \
    static bool block_below_##name(const t *a, uint32_t n, t limit)                               \
    {                                                                                             \
        u most = 0;                                                                               \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            const u size = math_bits_##name(a[i]) & ~(u)0 >> 1;                                    \
            most = most > size ? most : size;                                                     \
        }                                                                                         \
        return most < math_bits_##name(limit);                                                     \
    }                                                                                             \
    static bool below_##name(const t *a, uint32_t n, t limit)                                     \
    {                                                                                             \
        return block_below_##name(a, CPU_BLOCK, limit) && block_below_##name(a, n, limit);        \
    }
#define DEFINE_NONE(test, t, u, is_rare)                                                          \
    static FLAT bool test(const t *a, uint32_t n)                                                 \
    {                                                                                             \
        u rare = 0;                                                                               \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            rare = is_rare(0, a[i]) ? 1 : rare;                                                   \
        }                                                                                         \
        return rare == 0;                                                                         \
    }
DEFINE_BELOW(f32, float, uint32_t)
DEFINE_BELOW(f64, double, uint64_t)
DEFINE_NONE(normal_f32, float, uint32_t, math_log_f32_is_rare)
DEFINE_NONE(normal_f64, double, uint64_t, math_log_f64_is_rare)
DEFINE_NONE(beyond_minus_one_f32, float, uint32_t, math_log1p_f32_is_rare)
DEFINE_NONE(beyond_minus_one_f64, double, uint64_t, math_log1p_f64_is_rare)

static bool small_angles_f32(const float *a, uint32_t n)
{
    return below_f32(a, n, MATH_SMALL_ANGLES_F32);
}

static bool small_angles_f64(const double *a, uint32_t n)
{
    return below_f64(a, n, MATH_SMALL_ANGLES_F64);
}

#define DEFINE_MATH_LOOP(name, t, function)                                                       \
    static FLAT void name(t *d, const t *a, uint32_t n)                                           \
    {                                                                                             \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            d[i] = function(0, a[i]);                                                             \
        }                                                                                         \
    }
#define DEFINE_MATH_CHOICE(name, t, condition, yes, no)                                           \
    static void name(t *d, const t *a, uint32_t n)                                                \
    {                                                                                             \
        if (condition) {                                                                          \
            yes(d, a, n);                                                                         \
        } else {                                                                                  \
            no(d, a, n);                                                                          \
        }                                                                                         \
    }
/* Operands are examined in pieces, so that an unusual one affects its piece only. */
enum { MATH_PIECE = 256 };
#define DEFINE_MATH_PIECES(name, t, piece)                                                        \
    static const cpu_step *name(cpu_worker *worker, const cpu_step *step)                         \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a];                                                      \
        for (uint32_t first = 0; first < step->n; first += MATH_PIECE) {                          \
            const uint32_t left = step->n - first;                                                \
            const uint32_t n = left < MATH_PIECE ? left : (uint32_t)MATH_PIECE;                   \
            piece(d + first, a + first, n & ~(uint32_t)(CPU_BLOCK - 1));                          \
        }                                                                                         \
        return step + 1;                                                                          \
    }

#define DEFINE_MATH_SPLIT(op, T, t, function, usual_function, usual)                              \
    DEFINE_MATH_LOOP(op##_##T##_usual, t, usual_function)                                         \
    DEFINE_MATH_LOOP(op##_##T##_any, t, function)                                                 \
    DEFINE_MATH_CHOICE(op##_##T##_piece, t, usual, op##_##T##_usual, op##_##T##_any)              \
    DEFINE_MATH_PIECES(op##_##T, t, op##_##T##_piece)
#define DEFINE_MATH_ANGLE(op, T, t, function)                                                     \
    DEFINE_MATH_LOOP(op##_##T##_near, t, function##_near)                                         \
    DEFINE_MATH_LOOP(op##_##T##_small, t, function##_fast)                                        \
    DEFINE_MATH_LOOP(op##_##T##_any, t, function)                                                 \
    DEFINE_MATH_CHOICE(op##_##T##_far, t, small_angles_f32(a, n), op##_##T##_small,               \
                       op##_##T##_any)                                                            \
    DEFINE_MATH_CHOICE(op##_##T##_piece, t, below_f32(a, n, MATH_NEAR_ANGLES_F32),                \
                       op##_##T##_near, op##_##T##_far)                                           \
    DEFINE_MATH_PIECES(op##_##T, t, op##_##T##_piece)

#define DEFINE_MATH_FORM(name, piece, t, x_uniform, y_uniform)                                    \
    static const cpu_step *name(cpu_worker *worker, const cpu_step *step)                         \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a], *b = worker->slots[step->b];                         \
        const t x_of_all = a[0], y_of_all = b[0];                                                 \
        t x[CPU_BLOCK], y[CPU_BLOCK];                                                             \
        for (uint32_t first = 0; first < step->n; first += CPU_BLOCK) {                           \
            for (uint32_t k = 0; k < CPU_BLOCK; k++) {                                            \
                x[k] = (x_uniform) ? x_of_all : a[first + k];                                     \
                y[k] = (y_uniform) ? y_of_all : b[first + k];                                     \
            }                                                                                     \
            piece(d + first, x, y);                                                               \
        }                                                                                         \
        return step + 1;                                                                          \
    }
#define DEFINE_MATH_BINARY(op, T, t, function)                                                    \
    static FLAT uint32_t op##_##T##_fast(t *d, const t *x, const t *y)                            \
    {                                                                                             \
        uint32_t rare = 0;                                                                        \
        EACH_LANE(CPU_BLOCK)                                                                      \
        {                                                                                         \
            d[i] = function##_fast(0, x[i], y[i]);                                                \
            rare |= (uint32_t)function##_is_rare(0, x[i], y[i]);                                  \
        }                                                                                         \
        return rare;                                                                              \
    }                                                                                             \
    static FLAT void op##_##T##_rare(t *d, const t *x, const t *y)                                \
    {                                                                                             \
        EACH_LANE(CPU_BLOCK)                                                                      \
        {                                                                                         \
            const t again = function##_rare(0, x[i], y[i]);                                       \
            d[i] = function##_is_rare(0, x[i], y[i]) ? again : d[i];                              \
        }                                                                                         \
    }                                                                                             \
    static void op##_##T##_piece(t *d, const t *x, const t *y)                                    \
    {                                                                                             \
        if (op##_##T##_fast(d, x, y) != 0) {                                                      \
            op##_##T##_rare(d, x, y);                                                             \
        }                                                                                         \
    }                                                                                             \
    DEFINE_MATH_FORM(op##_##T##_0, op##_##T##_piece, t, 0, 0)                                     \
    DEFINE_MATH_FORM(op##_##T##_1, op##_##T##_piece, t, 1, 0)                                     \
    DEFINE_MATH_FORM(op##_##T##_2, op##_##T##_piece, t, 0, 1)

EACH_MATH(DEFINE_MATH)
EACH_MATH_SPLIT(DEFINE_MATH_SPLIT)
EACH_MATH_ANGLE(DEFINE_MATH_ANGLE)
EACH_MATH_BINARY(DEFINE_MATH_BINARY)
