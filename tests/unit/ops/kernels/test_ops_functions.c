/* What hal-conformance does not ask of the functions of one and two values: gelu's absolute bound,
 * arguments close to overflow, atan2 of all pairs of special values, and the names. */
#include "ops_fixture.h"

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

/* gelu cancels where x is negative: the bound is absolute there. */
static void gelu_values(void **state)
{
    const int64_t n = 3000;
    box x = box_make(HAL_TYPE_F32, 1, &n, NULL, -8, 8);
    box y = box_make(HAL_TYPE_F32, 1, &n, NULL, 0, 1);
    ok(ops_unary(test_context, OPS_GELU, &x.t, &y.t));
    double *want = box_want(&y);
    for (int64_t j = 0; j < n; j++) {
        want[y.t.offset + j] = gelu(x.host[x.t.offset + j]);
    }
    box_check(&y, want, 4, 4e-7);
    boxes_free(&x, &y);
}

/* The exponential of 89.25 overflows, half of it does not. */
static void close_to_overflow(void **state)
{
    const float x[2] = {89.25f, -89.25f};
    const int64_t n = 2;
    for (int i = 0; i < 2; i++) {
        float got[2];
        ops_tensor in, out;
        ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, &n, x, &in));
        ok(ops_tensor_create(test_context, HAL_TYPE_F32, 1, &n, &out));
        ok(ops_unary(test_context, i == 0 ? OPS_SINH : OPS_COSH, &in, &out));
        ok(ops_tensor_read(test_context, &out, sizeof got, got));
        for (int j = 0; j < 2; j++) {
            const double want = i == 0 ? sinh((double)x[j]) : cosh((double)x[j]);
            assert_true(fabs((double)got[j] - want) <= 16 * float_unit(HAL_TYPE_F32, want));
        }
        ops_tensor_release(&in);
        ops_tensor_release(&out);
    }
}

static void atan2_of_special_values(void **state)
{
    const double special[6] = {0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 1};
    const int64_t n = 36;
    for (int t = 0; t < 2; t++) {
        const hal_type type = t ? HAL_TYPE_F64 : HAL_TYPE_F32;
        box y = box_make(type, 1, &n, NULL, 0, 1), x = box_make(type, 1, &n, NULL, 0, 1);
        box z = box_make(type, 1, &n, NULL, 0, 1);
        double *want = box_want(&z);
        for (int i = 0; i < 36; i++) {
            y.host[y.t.offset + i] = special[i % 6];
            x.host[x.t.offset + i] = special[i / 6];
            want[z.t.offset + i] = atan2(special[i % 6], special[i / 6]);
        }
        box_upload(&y);
        box_upload(&x);
        ok(ops_binary(test_context, OPS_ATAN2, &y.t, &x.t, &z.t));
        box_check(&z, want, 6, 0);
        boxes_free(&x, &y, &z);
    }
}

static void names(void **state)
{
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
        cmocka_unit_test(gelu_values),
        cmocka_unit_test(close_to_overflow),
        cmocka_unit_test(atan2_of_special_values),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
