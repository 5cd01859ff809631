/* Steps of the transcendental functions: the polynomials of hal/ir_math.h on plain C scalars, in
 * loops that keep everything in registers, so the bits are those of the expanded IR. */
#include <kit/math_scalar.h>

/* Functions without a rare path: opcode, type, C type, name. */
#define MATH_OF(X, T, t, name)                                                                    \
    X(EXP, T, t, math_exp_##name)                                                                 \
    X(EXP2, T, t, math_exp2_##name)                                                               \
    X(EXPM1, T, t, math_expm1_##name)                                                             \
    X(ATAN, T, t, math_atan_##name)                                                               \
    X(TANH, T, t, math_tanh_##name)                                                               \
    X(ERF, T, t, math_erf_##name)                                                                 \
    X(RSQRT, T, t, math_rsqrt_##name)
#define MATH_RARE_OF(X, T, t, name)                                                               \
    X(LOG, T, t, math_log_##name)                                                                 \
    X(LOG2, T, t, math_log2_##name)                                                               \
    X(LOG1P, T, t, math_log1p_##name)                                                             \
    X(SIN, T, t, math_sin_##name)                                                                 \
    X(COS, T, t, math_cos_##name)                                                                 \
    X(TAN, T, t, math_tan_##name)
#define MATH_BINARY_OF(X, T, t, name) X(POW, T, t, math_pow_##name)
#define EACH_MATH(X)        MATH_OF(X, F32, float, f32) MATH_OF(X, F64, double, f64)
#define EACH_MATH_RARE(X)   MATH_RARE_OF(X, F32, float, f32) MATH_RARE_OF(X, F64, double, f64)
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

/* The fast part runs over pieces whose operands are kept, since the result may lie in their place;
 * where a piece has lanes that want the rare part, that runs over the piece as well. */
enum { MATH_PIECE = 64 };
#define DEFINE_MATH_RARE(op, T, t, function)                                                      \
    static FLAT uint32_t op##_##T##_fast(t *d, const t *kept, uint32_t n)                         \
    {                                                                                             \
        uint32_t rare = 0;                                                                        \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            d[i] = function##_fast(0, kept[i]);                                                   \
            rare |= (uint32_t)function##_is_rare(0, kept[i]);                                     \
        }                                                                                         \
        return rare;                                                                              \
    }                                                                                             \
    static FLAT void op##_##T##_rare(t *d, const t *kept, uint32_t n)                             \
    {                                                                                             \
        EACH_LANE(n)                                                                              \
        {                                                                                         \
            const t again = function##_rare(0, kept[i]);                                          \
            d[i] = function##_is_rare(0, kept[i]) ? again : d[i];                                 \
        }                                                                                         \
    }                                                                                             \
    static const cpu_step *op##_##T(cpu_worker *worker, const cpu_step *step)                     \
    {                                                                                             \
        t *d = worker->slots[step->d];                                                            \
        const t *a = worker->slots[step->a];                                                      \
        t kept[MATH_PIECE];                                                                       \
        for (uint32_t first = 0; first < step->n; first += MATH_PIECE) {                          \
            const uint32_t left = step->n - first;                                                \
            const uint32_t n = (left < MATH_PIECE ? left : (uint32_t)MATH_PIECE) &                \
                               ~(uint32_t)(CPU_BLOCK - 1);                                        \
            memcpy(kept, a + first, n * sizeof(t));                                               \
            if (op##_##T##_fast(d + first, kept, n) != 0) {                                       \
                op##_##T##_rare(d + first, kept, n);                                              \
            }                                                                                     \
        }                                                                                         \
        return step + 1;                                                                          \
    }

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
EACH_MATH_RARE(DEFINE_MATH_RARE)
EACH_MATH_BINARY(DEFINE_MATH_BINARY)
