/* The functions of one and two values against the C library in double precision, in units in the
 * last place, and their corners. */
#include "ops_fixture.h"

typedef struct function {
    ops_unary_function number;
    double (*reference)(double x);
    double low, high; /* of the sampled arguments */
    double ulps;
} function;

static double identity(double x)
{
    return x;
}
static double negative(double x)
{
    return -x;
}
static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}
static double square(double x)
{
    return x * x;
}
static double relu(double x)
{
    return isnan(x) ? x : x > 0 ? x : 0;
}
static double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double reciprocal(double x)
{
    return 1 / x;
}
static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double silu(double x)
{
    return x * sigmoid(x);
}
static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}
static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* The bounds of what is one operation of the IR are those of its polynomials, with room for the
 * reference's own rounding in F64; compositions get what their parts add up to. */
static const function functions[] = {
    {OPS_IDENTITY, identity, -1e3, 1e3, 0},
    {OPS_NEG, negative, -1e3, 1e3, 0},
    {OPS_ABS, fabs, -1e3, 1e3, 0},
    {OPS_SIGN, sign, -1e3, 1e3, 0},
    {OPS_SQUARE, square, -1e3, 1e3, 0.5},
    {OPS_RELU, relu, -1e3, 1e3, 0},
    {OPS_SQRT, sqrt, 0, 1e6, 0.5},
    {OPS_RSQRT, rsqrt, 1e-6, 1e6, 2},
    {OPS_RECIPROCAL, reciprocal, -1e3, 1e3, 0.5},
    {OPS_EXP, exp, -80, 80, 2},
    {OPS_EXP2, exp2, -120, 120, 2},
    {OPS_EXPM1, expm1, -5, 5, 3},
    {OPS_LOG, log, 1e-6, 1e6, 2},
    {OPS_LOG2, log2, 1e-6, 1e6, 3},
    {OPS_LOG10, log10, 1e-6, 1e6, 3},
    {OPS_LOG1P, log1p, -0.9, 100, 3},
    {OPS_SIN, sin, -100, 100, 4},
    {OPS_COS, cos, -100, 100, 4},
    {OPS_TAN, tan, -100, 100, 5},
    {OPS_ASIN, asin, -1, 1, 5},
    {OPS_ACOS, acos, -1, 1, 5},
    {OPS_ATAN, atan, -100, 100, 5},
    {OPS_SINH, sinh, -80, 80, 6},
    {OPS_COSH, cosh, -80, 80, 6},
    {OPS_TANH, tanh, -10, 10, 5},
    {OPS_ERF, erf, -4, 4, 16},
    {OPS_SIGMOID, sigmoid, -80, 80, 4},
    {OPS_SILU, silu, -80, 80, 5},
    {OPS_SOFTPLUS, softplus, -60, 60, 4},
    {OPS_FLOOR, floor, -1e3, 1e3, 0},
    {OPS_CEIL, ceil, -1e3, 1e3, 0},
    {OPS_TRUNC, trunc, -1e3, 1e3, 0},
    {OPS_ROUND, rint, -1e3, 1e3, 0},
};

static void values(void **state)
{
    (void)state;
    const int64_t n = 3000;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const function *f = &functions[i];
        for (int t = 0; t < 2; t++) {
            hal_type type = t ? HAL_TYPE_F64 : HAL_TYPE_F32;
            box x = box_make(type, 1, &n, NULL, f->low, f->high);
            box y = box_make(type, 1, &n, NULL, 0, 1);
            ok(ops_unary(test_context, f->number, &x.t, &y.t));
            double *want = box_want(&y);
            for (int64_t j = 0; j < n; j++) {
                want[y.t.offset + j] = f->reference(x.host[x.t.offset + j]);
            }
            box_expect(&y, want, f->ulps + (t ? 1 : 0), 0);
            free(want);
            box_free(&x);
            box_free(&y);
        }
    }
}

/* gelu cancels where x is negative: the bound is absolute there. */
static void gelu_values(void **state)
{
    (void)state;
    const int64_t n = 3000;
    box x = box_make(HAL_TYPE_F32, 1, &n, NULL, -8, 8);
    box y = box_make(HAL_TYPE_F32, 1, &n, NULL, 0, 1);
    ok(ops_unary(test_context, OPS_GELU, &x.t, &y.t));
    double *want = box_want(&y);
    for (int64_t j = 0; j < n; j++) {
        want[y.t.offset + j] = gelu(x.host[x.t.offset + j]);
    }
    box_expect(&y, want, 4, 4e-7);
    free(want);
    box_free(&x);
    box_free(&y);
}

/* Zeros with their signs, infinities and NaN through every float function that C has too; 89.25,
 * whose exponential overflows, and half of it does not. */
static void corners(void **state)
{
    (void)state;
    const double special[10] = {
        0.0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 1.0, -1.0, 100, 89.25, -89.25};
    const int64_t n = 10;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const function *f = &functions[i];
        if (f->number == OPS_SILU) {
            continue; /* -inf times 0 */
        }
        box x = box_make(HAL_TYPE_F32, 1, &n, NULL, 0, 1);
        memcpy(x.host + x.t.offset, special, sizeof special);
        box_upload(&x);
        float got[10];
        ops_tensor y;
        ok(ops_tensor_create(test_context, HAL_TYPE_F32, 1, &n, &y));
        ok(ops_unary(test_context, f->number, &x.t, &y));
        ok(ops_tensor_read(test_context, &y, got, sizeof got));
        for (int j = 0; j < 10; j++) {
            double want = in_type(HAL_TYPE_F32, f->reference(special[j]));
            double bound = 16 * float_unit(HAL_TYPE_F32, want);
            int same = (isnan(want) && isnan(got[j])) || (double)got[j] == want ||
                       fabs((double)got[j] - want) <= bound;
            int signs = want != 0 || got[j] != 0 || !signbit(want) == !signbit(got[j]);
            if (!same || !signs) {
                fail_msg("%s(%g) = %g, wanted %g", ops_unary_name(f->number), special[j],
                         (double)got[j], want);
            }
        }
        ops_tensor_release(&y);
        box_free(&x);
    }
}

static void classes(void **state)
{
    (void)state;
    const double special[4] = {0.0, -(double)INFINITY, (double)NAN, 3e38};
    const uint8_t want[3][4] = {{0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 0, 1}};
    const int64_t n = 4;
    box x = box_make(HAL_TYPE_F32, 1, &n, NULL, 0, 1);
    memcpy(x.host + x.t.offset, special, sizeof special);
    box_upload(&x);
    ops_tensor y;
    ok(ops_tensor_create(test_context, HAL_TYPE_BOOL, 1, &n, &y));
    for (int i = 0; i < 3; i++) {
        uint8_t got[4];
        ok(ops_unary(test_context, (ops_unary_function)(OPS_IS_NAN + i), &x.t, &y));
        ok(ops_tensor_read(test_context, &y, got, sizeof got));
        assert_memory_equal(got, want[i], 4);
    }
    ops_tensor_release(&y);
    box_free(&x);
}

static double host_binary(ops_binary_function f, double x, double y)
{
    int64_t a = (int64_t)x, b = (int64_t)y;
    switch (f) {
    case OPS_ADD:
        return x + y;
    case OPS_SUB:
        return x - y;
    case OPS_MUL:
        return x * y;
    case OPS_DIV:
        return x / y;
    case OPS_REM:
        return fmod(x, y);
    case OPS_MINIMUM:
        return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
    case OPS_MAXIMUM:
        return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
    case OPS_POW:
        return pow(x, y);
    case OPS_ATAN2:
        return atan2(x, y);
    case OPS_AND:
        return (double)(a & b);
    case OPS_OR:
        return (double)(a | b);
    case OPS_XOR:
        return (double)(a ^ b);
    case OPS_SHL:
        return (double)(a << (b & 31));
    case OPS_SHR:
        return (double)(a >> (b & 31));
    case OPS_EQ:
        return x == y;
    case OPS_NE:
        return x != y;
    case OPS_LT:
        return x < y;
    case OPS_LE:
        return x <= y;
    case OPS_GT:
        return x > y;
    default:
        return x >= y;
    }
}

static int is_comparison(ops_binary_function f)
{
    return f >= OPS_EQ;
}

static void try_binary(ops_binary_function f, hal_type type, const box *x, const box *y,
                       double ulps)
{
    box z = box_make(is_comparison(f) ? (hal_type)HAL_TYPE_BOOL : type, 1, x->t.shape, NULL, 0, 1);
    ok(ops_binary(test_context, f, &x->t, &y->t, &z.t));
    double *want = box_want(&z);
    for (int64_t i = 0; i < x->t.shape[0]; i++) {
        double value = host_binary(f, x->host[x->t.offset + i], y->host[y->t.offset + i]);
        want[z.t.offset + i] = hal_type_is_integer(z.t.type) ? trunc(value) : value;
    }
    box_expect(&z, want, ulps, 0);
    free(want);
    box_free(&z);
}

static void binary_floats(void **state)
{
    (void)state;
    const int64_t n = 2000;
    for (ops_binary_function f = OPS_ADD; f < OPS_BINARY_COUNT; f++) {
        if (f >= OPS_AND && f <= OPS_SHR) {
            continue;
        }
        for (int t = 0; t < 2; t++) {
            hal_type type = t ? HAL_TYPE_F64 : HAL_TYPE_F32;
            box x = box_make(type, 1, &n, NULL, f == OPS_POW ? 0 : -20, 20);
            box y = box_make(type, 1, &n, NULL, -20, 20);
            const double special[6] = {0,           -0.0, (double)INFINITY, -(double)INFINITY,
                                       (double)NAN, 1};
            for (int i = 0; i < 36; i++) {
                x.host[x.t.offset + i] = special[i % 6];
                y.host[y.t.offset + i] = special[i / 6];
            }
            for (int i = 40; i < 80; i++) {
                y.host[y.t.offset + i] = x.host[x.t.offset + i];
            }
            box_upload(&x);
            box_upload(&y);
            double ulps = f == OPS_POW ? 16 : f == OPS_ATAN2 ? 6 : f == OPS_DIV ? 0.5 : 0.5;
            try_binary(f, type, &x, &y, ulps);
            box_free(&x);
            box_free(&y);
        }
    }
}

static void binary_integers(void **state)
{
    (void)state;
    const int64_t n = 500;
    for (ops_binary_function f = OPS_ADD; f < OPS_BINARY_COUNT; f++) {
        if (f == OPS_POW || f == OPS_ATAN2) {
            continue;
        }
        for (int t = 0; t < 2; t++) {
            hal_type type = t ? HAL_TYPE_I32 : HAL_TYPE_U32;
            int shift = f == OPS_SHL || f == OPS_SHR;
            int positive = shift || f == OPS_SUB;
            box x = box_make(type, 1, &n, NULL, t && !positive ? -90 : positive ? 2000 : 0, 9000);
            box y = box_make(type, 1, &n, NULL, t && !shift ? -90 : 1, shift ? 40 : 90);
            for (int64_t i = 0; i < y.count; i++) {
                /* Shifts keep their bits: the wrapping of larger ones is the IR's affair. */
                y.host[i] = shift && y.host[i] > 12 ? y.host[i] - 12 : y.host[i];
                y.host[i] = shift ? fmod(y.host[i], 16) : y.host[i];
                y.host[i] = y.host[i] == 0 && (f == OPS_DIV || f == OPS_REM) ? 1 : y.host[i];
            }
            box_upload(&y);
            try_binary(f, type, &x, &y, 0);
            box_free(&x);
            box_free(&y);
        }
    }
}

static void names(void **state)
{
    (void)state;
    for (int i = 0; i < OPS_UNARY_COUNT; i++) {
        assert_non_null(ops_unary_name((ops_unary_function)i));
    }
    for (int i = 0; i < OPS_BINARY_COUNT; i++) {
        assert_non_null(ops_binary_name((ops_binary_function)i));
    }
    assert_string_equal(ops_unary_name(OPS_SIGMOID), "sigmoid");
    assert_null(ops_unary_name((ops_unary_function)-1));
    assert_null(ops_binary_name(OPS_BINARY_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),        cmocka_unit_test(gelu_values),
        cmocka_unit_test(corners),       cmocka_unit_test(classes),
        cmocka_unit_test(binary_floats), cmocka_unit_test(binary_integers),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
