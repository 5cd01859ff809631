/* math_exhaustive_run.c: what hal-math-exhaustive runs, hal/ir_math.h as plain C. */
#include "math/exhaustive.h"
#include "math/scalar_reader.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void run_f32(math_function function, const float *x, const float *y, float *result,
                    size_t count);
INLINE void run_f64(math_function function, const double *x, const double *y, double *result,
                    size_t count);

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

static int is_fused(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define run_f32_fused run_f32
#define run_f64_fused run_f64

static int is_fused(void)
{
    return 1;
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

INLINE void run_f32(math_function function, const float *x, const float *y, float *result,
                    size_t count)
{
    switch (function) {
    case MATH_EXP:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_exp_f32(0, x[i]);
        }
        break;
    case MATH_EXP2:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_exp2_f32(0, x[i]);
        }
        break;
    case MATH_EXPM1:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_expm1_f32(0, x[i]);
        }
        break;
    case MATH_LOG:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_log_f32(0, x[i]);
        }
        break;
    case MATH_LOG2:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_log2_f32(0, x[i]);
        }
        break;
    case MATH_LOG1P:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_log1p_f32(0, x[i]);
        }
        break;
    case MATH_SIN:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_sin_f32(0, x[i]);
        }
        break;
    case MATH_COS:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_cos_f32(0, x[i]);
        }
        break;
    case MATH_TAN:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_tan_f32(0, x[i]);
        }
        break;
    case MATH_ATAN:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_atan_f32(0, x[i]);
        }
        break;
    case MATH_TANH:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_tanh_f32(0, x[i]);
        }
        break;
    case MATH_ERF:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_erf_f32(0, x[i]);
        }
        break;
    case MATH_RSQRT:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_rsqrt_f32(0, x[i]);
        }
        break;
    case MATH_POW:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_pow_f32(0, x[i], y[i]);
        }
        break;
    case MATH_SQRT:
        for (size_t i = 0; i < count; i++) {
            result[i] = sqrtf(x[i]);
        }
        break;
    case MATH_DIVIDE:
        for (size_t i = 0; i < count; i++) {
            result[i] = x[i] / y[i];
        }
        break;
    }
}

INLINE void run_f64(math_function function, const double *x, const double *y, double *result,
                    size_t count)
{
    switch (function) {
    case MATH_EXP:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_exp_f64(0, x[i]);
        }
        break;
    case MATH_EXP2:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_exp2_f64(0, x[i]);
        }
        break;
    case MATH_EXPM1:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_expm1_f64(0, x[i]);
        }
        break;
    case MATH_LOG:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_log_f64(0, x[i]);
        }
        break;
    case MATH_LOG2:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_log2_f64(0, x[i]);
        }
        break;
    case MATH_LOG1P:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_log1p_f64(0, x[i]);
        }
        break;
    case MATH_SIN:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_sin_f64(0, x[i]);
        }
        break;
    case MATH_COS:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_cos_f64(0, x[i]);
        }
        break;
    case MATH_TAN:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_tan_f64(0, x[i]);
        }
        break;
    case MATH_ATAN:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_atan_f64(0, x[i]);
        }
        break;
    case MATH_TANH:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_tanh_f64(0, x[i]);
        }
        break;
    case MATH_ERF:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_erf_f64(0, x[i]);
        }
        break;
    case MATH_RSQRT:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_rsqrt_f64(0, x[i]);
        }
        break;
    case MATH_POW:
        for (size_t i = 0; i < count; i++) {
            result[i] = math_pow_f64(0, x[i], y[i]);
        }
        break;
    case MATH_SQRT:
        for (size_t i = 0; i < count; i++) {
            result[i] = sqrt(x[i]);
        }
        break;
    case MATH_DIVIDE:
        for (size_t i = 0; i < count; i++) {
            result[i] = x[i] / y[i];
        }
        break;
    }
}
