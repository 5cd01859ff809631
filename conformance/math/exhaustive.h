/* the functions that hal-math-exhaustive checks, their references and inputs. */
#ifndef CONFORMANCE_MATH_EXHAUSTIVE_H
#define CONFORMANCE_MATH_EXHAUSTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum math_function {
    MATH_EXP,
    MATH_EXP2,
    MATH_EXPM1,
    MATH_LOG,
    MATH_LOG2,
    MATH_LOG1P,
    MATH_SIN,
    MATH_COS,
    MATH_TAN,
    MATH_ATAN,
    MATH_TANH,
    MATH_ERF,
    MATH_RSQRT,
    MATH_POW,
    MATH_SQRT,
    MATH_DIVIDE
} math_function;

typedef struct math_case {
    const char *name;
    math_function function;
    double bound;   /* in ULP, where arithmetic is exact */
    double promise; /* in ULP, on any device */
    double range;   /* some samples are uniform in [-range, range) */
    bool is_double;
    bool is_sampled;
    bool has_two_arguments;
} math_case;

/* Requirements on a device's results, from its exactness bits. */
typedef struct math_demand {
    double bound;        /* in ULP */
    bool is_rounded;     /* the one correctly rounded result, bit for bit */
    int keeps_denormals; /* else inputs and results that are denormal are not judged */
} math_demand;

/* The input with the largest error so far; distance < 0: none. */
typedef struct math_worst {
    double distance;
    double x, y;
    double result;
    long double reference;
} math_worst;

#define MATH_NO_WORST ((math_worst){-1.0, 0.0, 0.0, 0.0, 0.0L})

/* The most inputs of one call of math_judge_* and math_check_*. */
#define MATH_BLOCK 4096

extern const math_case math_cases[];
extern const size_t math_case_count;

/* `exactness` as in hal_device_info; MATH_EXACT claims everything, as plain C can. */
#define MATH_EXACT UINT32_MAX
math_demand math_demand_of(const math_case *function, uint32_t exactness);

/* Inputs number first, first + 1, ...: every bit pattern at that step, or samples of a seed: some
 * of any bit pattern, some special, most where the function is neither 0 nor infinite. */
void math_enumerate_f32(uint64_t first, uint64_t step, size_t count, float *x);
void math_sample_f32(uint64_t seed, uint64_t first, size_t count, float *x, float *y);
void math_sample_f64(const math_case *function, uint64_t seed, uint64_t first, size_t count,
                     double *x, double *y);

/* Holds results against the references and keeps the worst; y only for two arguments. */
void math_judge_f32(const math_case *function, const math_demand *demand, const float *x,
                    const float *y, const float *result, size_t count, math_worst *worst);
void math_judge_f64(const math_case *function, const math_demand *demand, const double *x,
                    const double *y, const double *result, size_t count, math_worst *worst);

/* Runs the functions of hal/ir_math.h as plain C and judges them. */
void math_check_f32(const math_case *function, const float *x, const float *y, size_t count,
                    math_worst *worst);
void math_check_f64(const math_case *function, const double *x, const double *y, size_t count,
                    math_worst *worst);
void math_run_f32(math_function function, const float *x, const float *y, float *result,
                  size_t count);
void math_run_f64(math_function function, const double *x, const double *y, double *result,
                  size_t count);

#endif
