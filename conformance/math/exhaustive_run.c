/* exhaustive_run.c: what hal-math-exhaustive runs, hal/ir_math.h as plain C. */
#include "math/exhaustive.h"
#include "math/scalar_reader.h"

#define INLINE static inline __attribute__((always_inline))

/* Functions of one argument: constant, name. */
#define UNARY(call)                                                                      \
    call(EXP, exp) call(EXP2, exp2) call(EXPM1, expm1) call(LOG, log) call(LOG2, log2)   \
        call(LOG1P, log1p) call(SIN, sin) call(COS, cos) call(TAN, tan) call(ATAN, atan) \
            call(TANH, tanh) call(ERF, erf) call(RSQRT, rsqrt)

#define CASE(constant, value)                \
    case MATH_##constant:                    \
        for (size_t i = 0; i < count; i++) { \
            result[i] = value;               \
        }                                    \
        break;
#define UNARY_F32(constant, name) CASE(constant, math_##name##_f32(0, x[i]))
#define UNARY_F64(constant, name) CASE(constant, math_##name##_f64(0, x[i]))

INLINE void run_f32(math_function function, const float *x, const float *y, float *result,
                    size_t count)
{
    switch (function) {
        UNARY(UNARY_F32)
        CASE(POW, math_pow_f32(0, x[i], y[i]))
        CASE(SQRT, sqrtf(x[i]))
        CASE(DIVIDE, x[i] / y[i])
    }
}

INLINE void run_f64(math_function function, const double *x, const double *y, double *result,
                    size_t count)
{
    switch (function) {
        UNARY(UNARY_F64)
        CASE(POW, math_pow_f64(0, x[i], y[i]))
        CASE(SQRT, sqrt(x[i]))
        CASE(DIVIDE, x[i] / y[i])
    }
}

#if defined(__x86_64__)
/* Where the machine fuses, its own fma rather than the C library's: 2^32 inputs take a while. */
#define FUSED static __attribute__((target("avx2,fma"), flatten))

FUSED void run_f32_fused(math_function function, const float *x, const float *y, float *result,
                         size_t count)
{
    run_f32(function, x, y, result, count);
}

FUSED void run_f64_fused(math_function function, const double *x, const double *y, double *result,
                         size_t count)
{
    run_f64(function, x, y, result, count);
}

static bool is_fused(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define run_f32_fused run_f32
#define run_f64_fused run_f64

static bool is_fused(void)
{
    return true;
}
#endif

void math_run_f32(math_function function, const float *x, const float *y, float *result,
                  size_t count)
{
    if (is_fused()) {
        run_f32_fused(function, x, y, result, count);
    } else {
        run_f32(function, x, y, result, count);
    }
}

void math_run_f64(math_function function, const double *x, const double *y, double *result,
                  size_t count)
{
    if (is_fused()) {
        run_f64_fused(function, x, y, result, count);
    } else {
        run_f64(function, x, y, result, count);
    }
}
